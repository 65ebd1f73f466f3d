#include "daemon/grpc/names.h"

#include <openssl/sha.h>
#include <sys/random.h>

extern "C" {
#include "numa/base.h"
}

static const char prefix[] = "grpc-";
static const size_t name_max = 180; /* leaves room for a temporary name around it, in 245 */

static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
}

static void append_escaped(std::string *out, char c)
{
    static const char digits[] = "0123456789ABCDEF";
    unsigned byte = static_cast<unsigned char>(c);

    *out += '%';
    *out += digits[byte >> 4];
    *out += digits[byte & 15];
}

static std::string hex_of(const void *bytes, size_t len)
{
    std::string out(2 * len + 1, '\0');

    hex_encode(&out[0], bytes, len);
    out.pop_back();
    return out;
}

std::string job_name_of(const std::string &request_id)
{
    std::string name = prefix;
    unsigned char digest[SHA256_DIGEST_LENGTH];

    for (char c : request_id) {
        if (is_plain(c))
            name += c;
        else
            append_escaped(&name, c);
    }
    if (name.size() <= name_max)
        return name;
    SHA256(reinterpret_cast<const unsigned char *>(request_id.data()), request_id.size(), digest);
    return prefix + ("%h" + hex_of(digest, sizeof(digest)));
}

bool request_id_of(const std::string &job_name, std::string *out)
{
    size_t begin = sizeof(prefix) - 1;
    std::string id;

    if (job_name.compare(0, begin, prefix) != 0)
        return false;
    for (size_t i = begin; i < job_name.size(); i++) {
        unsigned char byte;
        if (job_name[i] != '%') {
            id += job_name[i];
            continue;
        }
        if (i + 2 >= job_name.size() || hex_decode(&byte, job_name.substr(i + 1, 2).c_str(), 1) < 0)
            return false;
        id += static_cast<char>(byte);
        i += 2;
    }
    *out = id;
    return true;
}

std::string request_id_new()
{
    unsigned char random[16];

    /* Never fails for so few bytes, once the kernel has its entropy, which it waits for. */
    while (getrandom(random, sizeof(random), 0) != sizeof(random))
        ;
    return hex_of(random, sizeof(random));
}
