#include "daemon/grpc/report.h"

#include <cstdlib>

/* The number behind "name": in a piece of JSON of ours; 0 where it is not. */
static double number(const std::string &json, const char *name, size_t from = 0,
                     size_t end = std::string::npos)
{
    std::string key = std::string("\"") + name + "\": ";
    size_t at = json.find(key, from);

    return at == std::string::npos || at >= end ? 0
                                                : strtod(json.c_str() + at + key.size(), nullptr);
}

/* Partitions run beside each other, so that their sum is no time that anybody waited: the longest one is. */
static void read_partitions(const std::string &json, Report *out)
{
    double longest = -1;

    for (size_t at = json.find("{\"partition\": "); at != std::string::npos;
         at = json.find("{\"partition\": ", at + 1)) {
        size_t end = json.find('\n', at);
        double total = number(json, "total_ms", at, end);
        if (total <= longest)
            continue;
        longest = total;
        out->params_ms = number(json, "params_ms", at, end);
        out->synthesis_ms = number(json, "synthesis_ms", at, end);
        out->prove_ms = number(json, "transform_ms", at, end) + number(json, "msm_ms", at, end);
    }
}

Report report_read(const std::string &json)
{
    Report out;
    std::string key = "\n  \"content_sha256\": \"";
    size_t at = json.find(key);

    if (at != std::string::npos)
        out.content_sha256 = json.substr(at + key.size(), 64);
    out.waited_ms = number(json, "waited_ms");
    out.ran_ms = number(json, "ran_ms");
    read_partitions(json, &out);
    return out;
}
