/*
 * proofd-grpc: reads options, listens, and runs until it is told to stop. The main thread reads signals; gRPC has threads of its own.
 */
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <grp.h>
#include <grpc/support/log.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <malloc.h>
#include <pwd.h>
#include <sstream>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/grpc/jobs.h"
#include "daemon/grpc/log_line.h"
#include "daemon/grpc/options.h"
#include "daemon/grpc/service.h"
#include "daemon/grpc/uploads.h"
#include "daemon/grpc/watch.h"
#include "daemon/version.h"

extern "C" {
#include "daemon/notify.h"
}

enum { EXIT_STOPPED = 0, EXIT_FAULT = 1, EXIT_USAGE = 2 };

static const char service_name[] = "cuzk.v1.ProvingEngine";
static const int calls_max = 2000;            /* at once; more are refused by gRPC */
static const int lookahead_bytes = 256 << 10; /* of a message that nobody reads yet */

static int usage(const std::string &why)
{
    fprintf(stderr, "proofd-grpc: %s\n", why.c_str());
    return EXIT_USAGE;
}

static void log_of_grpc(gpr_log_func_args *args)
{
    if (args->severity == GPR_LOG_SEVERITY_ERROR)
        log_line(LINE_WARN, {{"from", "grpc"}, {"msg", args->message}});
    else
        log_line(LINE_DEBUG, {{"from", "grpc"}, {"msg", args->message}});
}

/* ---- listening ---- */

static bool read_pem(const std::string &path, std::string *out, std::string *why)
{
    std::ifstream file(path);
    std::stringstream text;

    text << file.rdbuf();
    *out = text.str();
    if (!file || out->empty())
        *why = path + ": cannot read: " + strerror(errno);
    return file && !out->empty();
}

static int make_credentials(const Options &options, std::shared_ptr<grpc::ServerCredentials> *out,
                            std::string *why)
{
    grpc::SslServerCredentialsOptions tls;
    std::string key, cert;

    *out = grpc::InsecureServerCredentials();
    if (options.tls_cert.empty())
        return 0;
    if (!read_pem(options.tls_key, &key, why) || !read_pem(options.tls_cert, &cert, why))
        return -EINVAL;
    tls.pem_key_cert_pairs.push_back({key, cert});
    if (!options.tls_client_ca.empty()) {
        if (!read_pem(options.tls_client_ca, &tls.pem_root_certs, why))
            return -EINVAL;
        tls.client_certificate_request = GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY;
    }
    *out = grpc::SslServerCredentials(tls);
    return 0;
}

/* Owner and group by name or number, -1 where none is given. */
static int find_owner(const Options &options, uid_t *uid, gid_t *gid, std::string *why)
{
    char *end;

    *uid = static_cast<uid_t>(-1);
    *gid = static_cast<gid_t>(-1);
    if (!options.socket_owner.empty()) {
        const passwd *p = getpwnam(options.socket_owner.c_str());
        *uid = p ? p->pw_uid : static_cast<uid_t>(strtoul(options.socket_owner.c_str(), &end, 10));
        if (!p && *end) {
            *why = "socket_owner: there is no user " + options.socket_owner;
            return -EINVAL;
        }
    }
    if (!options.socket_group.empty()) {
        const group *g = getgrnam(options.socket_group.c_str());
        *gid = g ? g->gr_gid : static_cast<gid_t>(strtoul(options.socket_group.c_str(), &end, 10));
        if (!g && *end) {
            *why = "socket_group: there is no group " + options.socket_group;
            return -EINVAL;
        }
    }
    return 0;
}

/* It was made for nobody else; now it is opened to those who may. */
static int hand_over_socket(const Options &options, std::string *why)
{
    const std::string path = options_socket(options);
    uid_t uid;
    gid_t gid;

    if (path.empty())
        return 0;
    int ret = find_owner(options, &uid, &gid, why);
    if (ret < 0)
        return ret;
    if (chown(path.c_str(), uid, gid) < 0 ||
        chmod(path.c_str(), static_cast<mode_t>(options.socket_mode)) < 0) {
        *why = path + ": " + strerror(errno);
        return -errno;
    }
    return 0;
}

/* The commonest reason why there can be no socket; gRPC keeps it to its own log. */
static std::string missing_directory(const std::string &socket)
{
    const std::string dir = socket.substr(0, socket.rfind('/') + 1);

    return dir.empty() || access(dir.c_str(), F_OK) == 0 ? "" : ": " + dir + ": " + strerror(errno);
}

static std::unique_ptr<grpc::Server> listen(const Options &options, const std::string &address,
                                            grpc::Service *service, std::string *why)
{
    std::shared_ptr<grpc::ServerCredentials> credentials;
    grpc::ServerBuilder builder;
    grpc::ResourceQuota quota;
    int port = 0;

    if (make_credentials(options, &credentials, why) < 0)
        return nullptr;
    quota.SetMaxThreads(calls_max);
    builder.SetResourceQuota(quota);
    builder.SetMaxReceiveMessageSize(static_cast<int>(options.max_message));
    /* Two services on one port would share its callers. */
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    /* A message that waits for its turn stays where it is; one that is read has all the window it needs. */
    builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, lookahead_bytes);
    builder.AddListeningPort(address, credentials, &port);
    builder.RegisterService(service);
    mode_t mask = umask(0177);
    std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
    umask(mask);
    if (!server || port == 0) {
        *why = "cannot listen at " + address + missing_directory(options_socket(options));
        return nullptr;
    }
    return server;
}

/* ---- health ---- */

/* Told by the watch, before there is a server, too. */
class Health
{
  public:
    explicit Health(const Mount &mount) : mount_(mount) {}
    void serves(bool yes)
    {
        std::lock_guard<std::mutex> guard(lock_);
        if (yes != serving_ || !told_)
            log_line(yes ? LINE_INFO : LINE_WARN,
                     {{"msg", yes ? "proofd serves" : "proofd is not there"},
                      {"mount", mount_.path().c_str()}});
        serving_ = yes;
        told_ = true;
        tell();
    }
    void attach(grpc::HealthCheckServiceInterface *to)
    {
        std::lock_guard<std::mutex> guard(lock_);
        to_ = to;
        tell();
    }

  private:
    void tell()
    {
        if (!to_)
            return;
        to_->SetServingStatus(serving_);
        to_->SetServingStatus(service_name, serving_);
    }
    const Mount &mount_;
    std::mutex lock_;
    /* guarded by lock_: */
    bool told_ = false; /* how it is at the start */
    grpc::HealthCheckServiceInterface *to_ = nullptr;
    bool serving_ = false;
};

/* ---- running ---- */

static void block_signals(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGTERM);
    sigaddset(set, SIGINT);
    pthread_sigmask(SIG_BLOCK, set, nullptr);
    signal(SIGPIPE, SIG_IGN);
}

/* Until a signal says stop. */
static void run(const sigset_t *set)
{
    uint32_t ms = notify_watchdog_ms();
    timespec every = {ms / 1000, static_cast<long>(ms % 1000) * 1000000};

    notify_send("READY=1");
    if (ms == 0) {
        sigwaitinfo(set, nullptr);
        return;
    }
    while (sigtimedwait(set, nullptr, &every) < 0)
        notify_send("WATCHDOG=1");
}

static int serve(const Options &options, const std::string &address, const sigset_t *signals)
{
    Mount mount(options.mount);
    Health health(mount);
    Watch watch(mount, [&health](bool yes) { health.serves(yes); });
    Jobs jobs(mount, &watch);
    Uploads uploads(options.uploads, std::chrono::seconds(options.receive_timeout));
    std::unique_ptr<grpc::Service> service = service_create(mount, &jobs, &uploads);
    std::string why;

    jobs.tidy();
    grpc::EnableDefaultHealthCheckService(true);
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
    std::unique_ptr<grpc::Server> server = listen(options, address, service.get(), &why);
    if (!server || hand_over_socket(options, &why) < 0) {
        log_line(LINE_ERR, {{"msg", "cannot start"}, {"error", why.c_str()}});
        return EXIT_FAULT;
    }
    health.attach(server->GetHealthCheckService());
    log_line(LINE_INFO, {{"msg", "listening"},
                         {"address", address.c_str()},
                         {"mount", options.mount.c_str()},
                         {"tls", options.tls_cert.empty() ? "no" : "yes"}});
    run(signals);
    notify_send("STOPPING=1");
    log_line(LINE_INFO, {{"msg", "stopping"}});
    health.attach(nullptr);
    /* Calls that wait are broken off: whoever made them tries again, and finds his job. */
    server->Shutdown(std::chrono::system_clock::now());
    return EXIT_STOPPED;
}

/* A document of 51.6 MB comes and goes by some thousand page faults, which cost as much as all else that is done with it: malloc is to ask for huge
 * pages. It reads that from the environment alone, before main(); so this starts the program anew, unless somebody has set it otherwise. */
static void ask_for_huge_pages(char **argv)
{
    static const char variable[] = "GLIBC_TUNABLES";
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

    if (n < 0 || getenv(variable) || setenv(variable, "glibc.malloc.hugetlb=1", 1) < 0)
        return;
    self[n] = '\0';
    execv(self, argv); /* where that fails, it goes on as it is */
}

int main(int argc, char **argv)
{
    Options options;
    Action action;
    std::string why, address;
    sigset_t signals;
    errmsg err = {""};
    uid_t uid;
    gid_t gid;

    ask_for_huge_pages(argv);
    if (options_load(argc, argv, &options, &action, &why) < 0)
        return usage(why);
    if (action == Action::HELP)
        return fputs(options_help().c_str(), stdout) < 0;
    if (action == Action::VERSION)
        return puts("proofd-grpc " PROOFD_VERSION) < 0;
    if (line_set_level(options.log_level.c_str()) < 0)
        return usage("log_level: not one of off, err, warn, info, debug");
    if (options_address(options, &address, &why) < 0)
        return usage(why);
    if (find_owner(options, &uid, &gid, &why) < 0)
        return usage(why);
    if (action == Action::CHECK)
        return fputs(options_print(options).c_str(), stdout) < 0;
    facts_init();
    mallopt(M_ARENA_MAX, 2);
    block_signals(&signals);
    gpr_set_log_function(log_of_grpc);
    if (line_start(&err) < 0)
        return usage(err.text);
    int status = serve(options, address, &signals);
    line_stop();
    return status;
}
