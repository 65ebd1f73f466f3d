#include "daemon/grpc/state.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sys/stat.h>

static const size_t text_max = 4 << 20;

static const struct {
    const char *circuit_id, *size;
} circuits[] = {{"porep-2k", "2KiB"},
                {"porep-8m", "8MiB"},
                {"porep-512m", "512MiB"},
                {"porep-32g", "32GiB"},
                {"porep-64g", "64GiB"}};

bool circuit_is_known(const std::string &circuit_id)
{
    for (const auto &c : circuits) {
        if (circuit_id == c.circuit_id)
            return true;
    }
    return false;
}

/* The number behind a word at the begin of a line, 0 where there is none: "proofd_uptime_seconds 17". */
static uint64_t value(const std::string &text, const std::string &key)
{
    size_t at = ("\n" + text).find("\n" + key + " ");

    return at == std::string::npos ? 0 : strtoull(text.c_str() + at + key.size() + 1, nullptr, 10);
}

/* The rest of the line behind a word. */
static std::string word(const std::string &text, const std::string &key)
{
    size_t at = ("\n" + text).find("\n" + key + " ");

    if (at == std::string::npos)
        return "";
    at += key.size() + 1;
    return text.substr(at, text.find('\n', at) - at);
}

static bool is_number(const std::string &text)
{
    return !text.empty() && text.size() < 9 &&
           text.find_first_not_of("0123456789") == std::string::npos;
}

static void read_counts(const std::string &metrics, ServiceState *out)
{
    auto jobs = [&](const char *state) {
        return static_cast<uint32_t>(
            value(metrics, std::string("proofd_jobs{state=\"") + state + "\"}"));
    };

    out->pending = jobs("queued");
    out->in_progress = jobs("synthesizing") + jobs("proving");
    out->done = value(metrics, "proofd_jobs_done_total");
    out->failed = value(metrics, "proofd_jobs_failed_total");
    out->uptime_s = value(metrics, "proofd_uptime_seconds");
}

static void read_memory(const Mount &mount, ServiceState *out)
{
    std::vector<std::string> nodes;
    std::string text;

    if (mount.list("nodes", &nodes) < 0)
        return;
    for (const std::string &n : nodes) {
        if (!is_number(n) || mount.read("nodes/" + n + "/hugepages", text_max, &text) < 0)
            continue;
        out->memory_bytes += value(text, "arena_bytes") + value(text, "parameter_bytes");
        out->memory_limit_bytes += value(text, "limit_bytes");
    }
}

/* A job that is being proved on the node, as `status` says it: the k-th for its k-th GPU. Which of two GPUs of a node has which is not told. */
static std::string job_of_node(const std::string &status, uint64_t node, size_t k)
{
    size_t at = ("\n" + status).find("\nengine      node " + std::to_string(node) + ":");

    if (at == std::string::npos)
        return "";
    for (at = status.find('\n', at);
         at != std::string::npos && status.compare(at, 13, "\n            ") == 0;
         at = status.find('\n', at + 1)) {
        std::string line = status.substr(at + 13, status.find('\n', at + 1) - at - 13);
        if (line.rfind("job ", 0) != 0 || line.find(": proving,") == std::string::npos || k-- > 0)
            continue;
        std::string id = line.substr(4, line.find(' ', 4) - 4);
        /* Lines of engines begin like that, too: "1 of 2 permits in use". */
        size_t jobs = status.find("\nkept ", at);
        size_t job =
            jobs == std::string::npos ? jobs : status.find("\n            " + id + " ", jobs + 1);
        if (job == std::string::npos)
            return "";
        job += 13 + id.size() + 1;
        return status.substr(job, status.find(": ", job) - job);
    }
    return "";
}

static void read_gpus(const Mount &mount, const std::string &status, ServiceState *out)
{
    std::vector<std::string> gpus;
    std::vector<uint64_t> busy_nodes;
    std::string text;

    if (mount.list("gpus", &gpus) < 0)
        return;
    for (const std::string &g : gpus) {
        GpuState gpu;
        if (!is_number(g) || mount.read("gpus/" + g + "/status", text_max, &text) < 0)
            continue;
        gpu.ordinal = static_cast<uint32_t>(strtoul(g.c_str(), nullptr, 10));
        gpu.name = word(text, "kind");
        gpu.memory_bytes = value(text, "memory_bytes");
        gpu.memory_free_bytes = value(text, "memory_free_bytes");
        if (value(text, "proving") + value(text, "finishing") > 0) {
            uint64_t node = value(text, "node");
            size_t k = 0;
            for (uint64_t n : busy_nodes)
                k += n == node;
            busy_nodes.push_back(node);
            gpu.job = job_of_node(status, node, k);
        }
        out->gpus.push_back(gpu);
    }
}

/* How many engines say "holds parameters: 32GiB (...), ...". */
static uint32_t holders_of(const std::string &status, const std::string &size)
{
    static const char key[] = "holds parameters: ";
    uint32_t n = 0;

    for (size_t at = status.find(key); at != std::string::npos; at = status.find(key, at + 1)) {
        std::string line =
            " " + status.substr(at + sizeof(key) - 1, status.find('\n', at) - at - sizeof(key) + 1);
        n += line.find(" " + size + " (") != std::string::npos;
    }
    return n;
}

/* "parameters  32GiB: PATH (official, ...)" */
static uint64_t bytes_of_file(const std::string &status, const std::string &size)
{
    std::string key = "\nparameters  " + size + ": ";
    size_t at = status.find(key);
    struct stat st;

    if (at == std::string::npos)
        return 0;
    at += key.size();
    std::string path = status.substr(at, status.find('\n', at) - at);
    path = path.substr(0, path.rfind(" ("));
    return stat(path.c_str(), &st) == 0 ? static_cast<uint64_t>(st.st_size) : 0;
}

static void read_params(const std::string &metrics, const std::string &status, bool with_gpus,
                        ServiceState *out)
{
    for (const auto &c : circuits) {
        ParamsState p;
        std::string key = std::string("proofd_parameters{size=\"") + c.size + "\"";
        if (metrics.find(key) == std::string::npos)
            continue;
        p.circuit_id = c.circuit_id;
        p.holders = holders_of(status, c.size);
        p.in_memory = p.holders > 0;
        p.on_gpu = p.in_memory && with_gpus;
        p.bytes = bytes_of_file(status, c.size);
        out->params.push_back(p);
    }
}

/* ---- parameters by name ---- */

static std::string params_file(const std::string &circuit_id)
{
    for (const auto &c : circuits) {
        if (circuit_id == c.circuit_id)
            return std::string("params/") + c.size;
    }
    return "params/none";
}

/* "node 0 host yes bytes 17 in_use 0 used_ms 5 trust official", "node 0 gpu 0 resident bytes 17", "node 0 load waits",
 * "node 0 loading 43%", "node 0 load failed: WHY". */
static void read_place(const std::string &line, ParamsPlaces *out)
{
    size_t bytes = line.find(" bytes "), failed = line.find(" failed: ");
    bool host = line.find(" host ") != std::string::npos;

    if (line.rfind("node ", 0) != 0)
        return;
    if (failed != std::string::npos) {
        out->failure = line.substr(0, failed) + line.substr(failed + strlen(" failed"));
    } else if (bytes != std::string::npos) {
        out->nodes += host;
        out->holders += host && line.find(" trust ") != std::string::npos;
        out->bytes += strtoull(line.c_str() + bytes + strlen(" bytes "), nullptr, 10);
    } else {
        out->pending = true;
    }
}

int params_read(const Mount &mount, const std::string &circuit_id, ParamsPlaces *out)
{
    std::string text;
    int ret = mount.serves();

    if (ret == 0)
        ret = mount.read(params_file(circuit_id), text_max, &text);
    if (ret < 0)
        return ret;
    *out = ParamsPlaces();
    for (size_t at = 0, end; at < text.size(); at = end + 1) {
        end = text.find('\n', at);
        end = end == std::string::npos ? text.size() : end;
        read_place(text.substr(at, end - at), out);
    }
    return 0;
}

int params_ask(const Mount &mount, const std::string &circuit_id, const char *what)
{
    return mount.write(params_file(circuit_id), what);
}

int state_read(const Mount &mount, ServiceState *out)
{
    std::string metrics, status;
    int ret = mount.read("metrics", text_max, &metrics);

    if (ret == 0)
        ret = mount.read("status", text_max, &status);
    if (ret < 0)
        return ret == -ENOENT ? -ENOTCONN : ret;
    read_counts(metrics, out);
    read_memory(mount, out);
    read_gpus(mount, status, out);
    read_params(metrics, status, !out->gpus.empty(), out);
    return 0;
}
