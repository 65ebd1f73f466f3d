#include "daemon/grpc/utf8.h"

extern "C" {
#include "numa/base.h"
}

bool is_utf8(const std::string &text)
{
    size_t len;

    for (size_t i = 0; i < text.size(); i += len) {
        len = utf8_length(text.c_str() + i);
        if (len == 0)
            return false;
    }
    return true;
}

std::string made_utf8(const std::string &text)
{
    std::string out;
    size_t len;

    for (size_t i = 0; i < text.size(); i += len) {
        len = utf8_length(text.c_str() + i);
        if (len > 0)
            out.append(text, i, len);
        else
            out += '?';
        len = len > 0 ? len : 1;
    }
    return out;
}
