/*
 * Strings of protobuf are UTF-8, names of files are any bytes.
 *
 * Any thread.
 */
#ifndef GRPC_UTF8_H
#define GRPC_UTF8_H

#include <string>

bool is_utf8(const std::string &text);
/* As it is, with a ? for each byte that is none. */
std::string made_utf8(const std::string &text);

#endif
