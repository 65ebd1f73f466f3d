/*
 * Values of the host's types and of the device's, which have one layout.
 */
#ifndef TESTS_LIB_LAYOUT_CUH
#define TESTS_LIB_LAYOUT_CUH

#include <cstring>

template <class To, class From> static To as(const From &from)
{
    static_assert(sizeof(To) == sizeof(From), "one layout");
    To to;

    memcpy(&to, &from, sizeof(to));
    return to;
}

template <class T> static bool same(const T &a, const T &b)
{
    return memcmp(&a, &b, sizeof(a)) == 0;
}

#endif
