#include "daemon/confine.h"

#include <errno.h>
#include <glob.h>
#include <linux/capability.h>
#include <sched.h>
#include <seccomp.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define DRIVER "/proc/driver/nvidia"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HAS_FILTER 0
#else
#define HAS_FILTER 1
#endif

static const int kept_capabilities[] = {CAP_IPC_LOCK, CAP_SYS_NICE, CAP_DAC_READ_SEARCH};

/* Programs, other processes, the system, the ways into the kernel that are widest. */
static const char *const refused[] = {
    "execve",
    "execveat",
    "fork",
    "vfork",
    "ptrace",
    "process_vm_readv",
    "process_vm_writev",
    "process_madvise",
    "pidfd_getfd",
    "kcmp",
    "pidfd_send_signal",
#ifdef __GLIBC__ /* which takes tgkill */
    "tkill",
#endif
    "mount",
    "umount2",
    "pivot_root",
    "chroot",
    "move_mount",
    "open_tree",
    "fsopen",
    "fsmount",
    "fsconfig",
    "fspick",
    "mount_setattr",
    "setns",
    "unshare",
    "init_module",
    "finit_module",
    "delete_module",
    "kexec_load",
    "kexec_file_load",
    "reboot",
    "swapon",
    "swapoff",
    "settimeofday",
    "clock_settime",
    "clock_adjtime",
    "adjtimex",
    "sethostname",
    "setdomainname",
    "acct",
    "quotactl",
    "bpf",
    "perf_event_open",
    "userfaultfd",
    "io_uring_setup",
    "io_uring_enter",
    "io_uring_register",
    "add_key",
    "request_key",
    "keyctl",
    "open_by_handle_at",
    "name_to_handle_at",
    "setuid",
    "setgid",
    "setreuid",
    "setregid",
    "setresuid",
    "setresgid",
    "setgroups",
    "mknod",
    "mknodat",
    "lookup_dcookie",
    "syslog",
    "iopl",
    "ioperm",
};

int confine_parse(const char *word, enum confine *out)
{
    static const char *const words[] = {"auto", "on", "off"};

    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (strcmp(word, words[i]) == 0) {
            *out = (enum confine)i;
            return 0;
        }
    return -EINVAL;
}

static size_t count_names(const char *pattern)
{
    glob_t names = {0};
    size_t count = glob(pattern, GLOB_NOSORT, NULL, &names) == 0 ? names.gl_pathc : 0;

    globfree(&names);
    return count;
}

/* One for each GPU that it knows, and that of their memory. */
static bool driver_has_devices(void)
{
    return access("/dev/nvidia-uvm", F_OK) == 0 &&
           count_names("/dev/nvidia[0-9]*") >= count_names(DRIVER "/gpus/*");
}

bool confine_wanted(enum confine how, bool gpus)
{
    if (how != CONFINE_AUTO)
        return how == CONFINE_ON;
    return !gpus || access(DRIVER, F_OK) != 0 || driver_has_devices();
}

static void drop_capabilities(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct now[2], kept[2] = {{0}};

    if (syscall(SYS_capget, &head, now) < 0)
        return; /* nothing of ours is lost by that, and nothing gained */
    for (size_t i = 0; i < ARRAY_LEN(kept_capabilities); i++) {
        unsigned word = CAP_TO_INDEX((unsigned)kept_capabilities[i]);
        uint32_t bit = CAP_TO_MASK((unsigned)kept_capabilities[i]) & now[word].permitted;
        kept[word].permitted |= bit;
        kept[word].effective |= bit;
    }
    /* Those that an executed program could have: first, for this needs one that goes next. It fails where that is not there. */
    for (int cap = 0; cap <= CAP_LAST_CAP; cap++)
        if (!(kept[CAP_TO_INDEX((unsigned)cap)].permitted & CAP_TO_MASK((unsigned)cap)))
            prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
    syscall(SYS_capset, &head, kept);
}

/* The library's macro for this leaves the second number out, of which clang warns. */
static struct scmp_arg_cmp first_argument(enum scmp_compare how, uint64_t a)
{
    return (struct scmp_arg_cmp){.arg = 0, .op = how, .datum_a = a};
}

/* Sockets are for the kernel and this machine: a driver's netlink, and those of files. The driver of NVIDIA's GPUs listens on one of the latter. */
static int refuse_networks(scmp_filter_ctx filter)
{
    const uint32_t no = SCMP_ACT_ERRNO(EPERM);
    int ret = seccomp_rule_add(filter, no, SCMP_SYS(socket), 1, first_argument(SCMP_CMP_GT, AF_NETLINK));

    for (unsigned family = 0; family < AF_NETLINK && ret == 0; family++)
        if (family != AF_UNIX)
            ret = seccomp_rule_add(filter, no, SCMP_SYS(socket), 1, first_argument(SCMP_CMP_EQ, family));
    return ret;
}

/* Threads, but no processes. The flags of clone3 are in memory, where a filter cannot look; libraries that are told that there
 * is none take clone. */
static int refuse_processes(scmp_filter_ctx filter)
{
    int ret = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1,
                               first_argument(SCMP_CMP_MASKED_EQ, CLONE_THREAD));

    return ret < 0 ? ret : seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
}

/* The front is of the same user: signals are for this process and its threads, limits for this one. */
static int refuse_others(scmp_filter_ctx filter)
{
    static const char *const signals[] = {"kill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo"};
    const uint32_t no = SCMP_ACT_ERRNO(EPERM);
    int ret = seccomp_rule_add(filter, no, SCMP_SYS(prlimit64), 1, first_argument(SCMP_CMP_NE, 0));

    for (size_t i = 0; i < ARRAY_LEN(signals) && ret == 0; i++)
        ret = seccomp_rule_add(filter, no, seccomp_syscall_resolve_name(signals[i]), 1,
                               first_argument(SCMP_CMP_NE, (uint64_t)getpid()));
    return ret;
}

static int make_filter(scmp_filter_ctx filter)
{
    /* No code of others runs here that could spy by speculation; kernels before 5.16 slow a process with a filter down for that. */
    seccomp_attr_set(filter, SCMP_FLTATR_CTL_SSB, 1);
    seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2); /* a tree, not a list, for every call */
    int ret = refuse_networks(filter);

    if (ret == 0)
        ret = refuse_others(filter);
    if (ret == 0)
        ret = refuse_processes(filter);
    for (size_t i = 0; i < ARRAY_LEN(refused) && ret == 0; i++) {
        int number = seccomp_syscall_resolve_name(refused[i]);
        /* One that this architecture, or this library, does not know has a pseudo number or none. */
        if (number != __NR_SCMP_ERROR && number >= 0)
            ret = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), number, 0);
    }
    return ret < 0 ? ret : seccomp_load(filter);
}

int confine_apply(struct errmsg *err)
{
    drop_capabilities();
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return errmsg_set(err, -errno, "no_new_privs: %s", strerror(errno));
    if (!HAS_FILTER)
        return 0;
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
    int ret = filter ? make_filter(filter) : -ENOMEM;
    seccomp_release(filter);
    return ret < 0 ? errmsg_set(err, ret, "a filter of system calls: %s", strerror(-ret)) : 0;
}
