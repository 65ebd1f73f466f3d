/*
 * The options of proofd-grpc: defaults, overruled by a file of lines `key = value` (blank lines and those that begin with # or ; are
 * skipped), overruled by the command line, where `max_message` is --max-message. Unknown keys and bad values are errors.
 *
 * Belongs to main().
 */
#ifndef GRPC_OPTIONS_H
#define GRPC_OPTIONS_H

#include <cstdint>
#include <string>

#define OPTIONS_FILE_DEFAULT \
    "/etc/proofd-grpc.conf" /* read when it is there and --config is not given */

struct Options {
    std::string mount = "/proof";
    std::string listen = "unix:/run/proofd-grpc/socket";
    std::string socket_owner, socket_group; /* empty: the service's own */
    uint64_t socket_mode = 0660;
    std::string tls_cert, tls_key, tls_client_ca; /* files */
    bool insecure = false;
    uint64_t uploads = 4, receive_timeout = 60; /* seconds */
    uint64_t max_message = 256ull << 20;        /* bytes */
    std::string log_level = "info";
};

enum class Action { RUN, HELP, VERSION, CHECK };

/* 0, or -EINVAL with *why: file, line, key. */
int options_load(int argc, char **argv, Options *out, Action *action, std::string *why);
/* Whether the address may be listened at as the options are, and what it is as gRPC spells it. */
int options_address(const Options &options, std::string *out, std::string *why);
/* The path of a Unix socket, empty for other addresses. */
std::string options_socket(const Options &options);

std::string options_help();
/* As a file that is read again. */
std::string options_print(const Options &options);

#endif
