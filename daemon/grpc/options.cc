#include "daemon/grpc/options.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "numa/base.h"

static const uint64_t message_max = 640ull << 20;

enum kind { TEXT, NUMBER, BYTES, MODE, YES_NO };

struct option {
    const char *name;
    kind type;
    const char *argument, *help;
    std::string Options::*text;
    uint64_t Options::*number;
    bool Options::*flag;
    uint64_t min, max;
};

static const option table[] = {
    {"mount", TEXT, "DIR", "the mount of proofd", &Options::mount, nullptr, nullptr, 0, 0},
    {"listen", TEXT, "ADDRESS", "unix:PATH, or HOST:PORT", &Options::listen, nullptr, nullptr, 0,
     0},
    {"socket_owner", TEXT, "USER", "who owns the socket", &Options::socket_owner, nullptr, nullptr,
     0, 0},
    {"socket_group", TEXT, "GROUP", "the group of the socket", &Options::socket_group, nullptr,
     nullptr, 0, 0},
    {"socket_mode", MODE, "MODE", "the mode of the socket, octal", nullptr, &Options::socket_mode,
     nullptr, 0, 0777},
    {"tls_cert", TEXT, "FILE", "certificate chain of the service, PEM", &Options::tls_cert, nullptr,
     nullptr, 0, 0},
    {"tls_key", TEXT, "FILE", "its key", &Options::tls_key, nullptr, nullptr, 0, 0},
    {"tls_client_ca", TEXT, "FILE", "clients must have a certificate of these",
     &Options::tls_client_ca, nullptr, nullptr, 0, 0},
    {"insecure", YES_NO, "YES", "yes: plain text beyond this machine", nullptr, nullptr,
     &Options::insecure, 0, 0},
    {"uploads", NUMBER, "N", "documents that are received at once", nullptr, &Options::uploads,
     nullptr, 1, 64},
    {"receive_timeout", NUMBER, "SECONDS", "how long one may take while others wait", nullptr,
     &Options::receive_timeout, nullptr, 1, 3600},
    {"max_message", BYTES, "BYTES", "the longest message, up to 640M", nullptr,
     &Options::max_message, nullptr, 1 << 16, message_max},
    {"log_level", TEXT, "LEVEL", "off, err, warn, info or debug", &Options::log_level, nullptr,
     nullptr, 0, 0},
};

static std::string on_command_line(const char *name)
{
    std::string out = std::string("--") + name;

    for (char &c : out)
        c = c == '_' ? '-' : c;
    return out;
}

static bool parse_number(const option &o, const std::string &text, uint64_t *out)
{
    char *end;

    if (text.empty() || text[0] < '0' || text[0] > '9')
        return false;
    errno = 0;
    uint64_t n = strtoull(text.c_str(), &end, o.type == MODE ? 8 : 10);
    if (o.type == BYTES && *end && !end[1]) {
        const char *unit = strchr("KMG", *end);
        if (!unit || n > message_max)
            return false;
        n <<= 10 * (unit - "KMG" + 1);
        end++;
    }
    if (errno || *end || n < o.min || n > o.max)
        return false;
    *out = n;
    return true;
}

static int set(Options *options, const option &o, const std::string &text, std::string *why)
{
    bool good = true;

    switch (o.type) {
    case TEXT:
        options->*o.text = text;
        good = text.size() < 1024;
        break;
    case YES_NO:
        options->*o.flag = text == "yes";
        good = text == "yes" || text == "no";
        break;
    case NUMBER:
    case BYTES:
    case MODE:
        good = parse_number(o, text, &(options->*o.number));
        break;
    }
    if (good)
        return 0;
    *why = std::string(o.name) + ": '" + text + "' is ";
    if (o.type == YES_NO)
        *why += "neither yes nor no";
    else if (o.type == TEXT)
        *why += "too long";
    else if (o.type == MODE)
        *why += "not an octal number from 0 to 777";
    else
        *why += "not a number from " + std::to_string(o.min) + " to " + std::to_string(o.max) +
                (o.type == BYTES ? " (K, M or G may follow)" : "");
    return -EINVAL;
}

static std::string trimmed(const std::string &text)
{
    size_t begin = text.find_first_not_of(" \t\r"), end = text.find_last_not_of(" \t\r");

    return begin == std::string::npos ? "" : text.substr(begin, end - begin + 1);
}

static int read_line(Options *options, const std::string &line, std::string *why)
{
    size_t equals = line.find('=');

    if (line.empty() || line[0] == '#' || line[0] == ';' || line == "[proofd-grpc]")
        return 0;
    std::string key = trimmed(line.substr(0, equals));
    for (const option &o : table) {
        if (equals != std::string::npos && key == o.name)
            return set(options, o, trimmed(line.substr(equals + 1)), why);
    }
    *why = equals == std::string::npos ? "no line of the form key = value" : "unknown key " + key;
    return -EINVAL;
}

static int read_file(Options *options, const std::string &path, bool must, std::string *why)
{
    std::ifstream file(path);
    std::string line;

    if (!file && !must)
        return 0;
    if (!file) {
        *why = path + ": cannot open: " + strerror(errno);
        return -EINVAL;
    }
    for (int n = 1; std::getline(file, line); n++) {
        if (read_line(options, trimmed(line), why) < 0) {
            *why = path + ":" + std::to_string(n) + ": " + *why;
            return -EINVAL;
        }
    }
    return 0;
}

/* "--name VALUE" or "--name=VALUE". */
static bool is_option(const std::string &name, int argc, char **argv, int *i, std::string *value,
                      bool *missing)
{
    std::string arg = argv[*i];

    *missing = false;
    if (arg.compare(0, name.size() + 1, name + "=") == 0) {
        *value = arg.substr(name.size() + 1);
        return true;
    }
    if (arg != name)
        return false;
    *missing = *i + 1 >= argc;
    if (!*missing)
        *value = argv[++*i];
    return true;
}

static int read_argument(Options *options, int argc, char **argv, int *i, Action *action,
                         std::string *why)
{
    const std::string arg = argv[*i];
    std::string value;
    bool missing;

    if (is_option("--config", argc, argv, i, &value, &missing)) /* was read before */
        return 0;
    for (const option &o : table) {
        if (!is_option(on_command_line(o.name), argc, argv, i, &value, &missing))
            continue;
        if (!missing)
            return set(options, o, value, why);
        *why = arg + ": a value is missing";
        return -EINVAL;
    }
    if (arg == "--help" || arg == "-h")
        *action = Action::HELP;
    else if (arg == "--version")
        *action = Action::VERSION;
    else if (arg == "--check-config")
        *action = Action::CHECK;
    else {
        *why = "unknown option " + arg;
        return -EINVAL;
    }
    return 0;
}

int options_load(int argc, char **argv, Options *out, Action *action, std::string *why)
{
    std::string config;
    bool missing = false;

    *action = Action::RUN;
    for (int i = 1; i < argc; i++) {
        if (is_option("--config", argc, argv, &i, &config, &missing) && missing) {
            *why = "--config: a value is missing";
            return -EINVAL;
        }
    }
    int ret = read_file(out, config.empty() ? OPTIONS_FILE_DEFAULT : config, !config.empty(), why);
    for (int i = 1; ret == 0 && i < argc; i++)
        ret = read_argument(out, argc, argv, &i, action, why);
    return ret;
}

std::string options_socket(const Options &options)
{
    return options.listen.rfind("unix:", 0) == 0 ? options.listen.substr(5) : "";
}

static bool is_loopback(const std::string &host)
{
    in_addr v4;
    in6_addr v6;

    if (host == "localhost")
        return true;
    if (inet_pton(AF_INET, host.c_str(), &v4) == 1)
        return ntohl(v4.s_addr) >> 24 == 127;
    return inet_pton(AF_INET6, host.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

/* gRPC takes any number modulo 65536, and 0 for a port that nobody would find. */
static bool is_port(const std::string &text)
{
    return !text.empty() && text.size() <= 5 &&
           text.find_first_not_of("0123456789") == std::string::npos && std::stoi(text) >= 1 &&
           std::stoi(text) <= 65535;
}

int options_address(const Options &options, std::string *out, std::string *why)
{
    size_t colon = options.listen.rfind(':');
    bool tls = !options.tls_cert.empty();

    *out = options.listen;
    if (tls != !options.tls_key.empty() || (!tls && !options.tls_client_ca.empty())) {
        *why = "tls_cert and tls_key go together, tls_client_ca needs both";
        return -EINVAL;
    }
    if (options.listen.rfind("unix:", 0) == 0) {
        if (options_socket(options).rfind('/', 0) == 0)
            return 0;
        *why = "listen: the path of a socket begins with /";
        return -EINVAL;
    }
    if (colon == std::string::npos || colon == 0) {
        *why = "listen: '" + options.listen + "' is neither unix:PATH nor HOST:PORT";
        return -EINVAL;
    }
    if (!is_port(options.listen.substr(colon + 1))) {
        *why = "listen: '" + options.listen.substr(colon + 1) + "' is not a port from 1 to 65535";
        return -EINVAL;
    }
    std::string host = options.listen.substr(0, colon);
    if (host.front() == '[' && host.back() == ']')
        host = host.substr(1, host.size() - 2);
    if (is_loopback(host) || tls || options.insecure)
        return 0;
    *why = "listen: " + options.listen +
           " is beyond this machine: give tls_cert and tls_key, or insecure = yes if the network "
           "is to be trusted";
    return -EINVAL;
}

std::string options_help()
{
    std::string out =
        "usage: proofd-grpc [OPTION...]\n"
        "The gRPC interface that Curio drives a prover by, in front of the mount of proofd.\n\n";

    for (const option &o : table) {
        std::string head = "  " + on_command_line(o.name) + " " + o.argument;
        head.resize(std::max<size_t>(head.size() + 1, 26), ' ');
        out += head + o.help + "\n";
    }
    out += "  --config FILE           read options from FILE (default " OPTIONS_FILE_DEFAULT
           ", where it is there)\n"
           "  --check-config          print the options in effect and exit\n"
           "  --version               print the version and exit\n"
           "  --help                  this text\n";
    return out;
}

std::string options_print(const Options &options)
{
    std::string out;
    char octal[16];

    for (const option &o : table) {
        out += std::string(o.name) + " = ";
        snprintf(octal, sizeof(octal), "%04o",
                 o.type == MODE ? static_cast<unsigned>(options.*o.number) : 0);
        switch (o.type) {
        case TEXT:
            out += options.*o.text;
            break;
        case YES_NO:
            out += options.*o.flag ? "yes" : "no";
            break;
        case MODE:
            out += octal;
            break;
        case NUMBER:
        case BYTES:
            out += std::to_string(options.*o.number);
            break;
        }
        out += "\n";
    }
    return out;
}
