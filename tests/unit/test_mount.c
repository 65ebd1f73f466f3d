/* What a mount needs, and what is said where it is not there. */
#include "fuse/mount.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/suite.h"

static char dir[64];
static char device[128], helper[128], selinux[128], apparmor[128];
static struct mount_places places;
static struct errmsg err;

static void put(const char *path, const char *text, mode_t mode)
{
    FILE *f = fopen(path, "we");

    ck_assert_ptr_nonnull(f);
    fputs(text, f);
    fclose(f);
    ck_assert_int_eq(chmod(path, mode), 0);
}

static void set_up(void)
{
    snprintf(dir, sizeof(dir), "/tmp/proofd-mount-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    ck_assert_int_eq(chmod(dir, 0755), 0);
    snprintf(device, sizeof(device), "%s/fuse", dir);
    snprintf(helper, sizeof(helper), "%s/fusermount3", dir);
    snprintf(selinux, sizeof(selinux), "%s/enforce", dir);
    snprintf(apparmor, sizeof(apparmor), "%s/current", dir);
    put(device, "", 0666);
    places = (struct mount_places){.device = device,
                                   .path = dir,
                                   .selinux = selinux,
                                   .apparmor = apparmor,
                                   .may_mount = true,
                                   .has_name = true};
    err.text[0] = '\0';
}

static void tear_down(void)
{
    unlink(device);
    unlink(helper);
    unlink(selinux);
    unlink(apparmor);
    rmdir(dir);
}

static void says(const char *word)
{
    ck_assert_msg(strstr(err.text, word) != NULL, "'%s' does not say '%s'", err.text, word);
    ck_assert_msg(!strchr(err.text, '\n'), "more than a line");
}

START_TEST(mount_lacks__nothing)
{
    ck_assert_int_eq(mount_lacks(&places, false, &err), 0);
}
END_TEST

START_TEST(mount_lacks__the_device)
{
    places.device = "/nonexistent/fuse";
    ck_assert_int_eq(mount_lacks(&places, false, &err), -ENOENT);
    says("/nonexistent/fuse is not there: modprobe fuse");
}
END_TEST

/* In a child that is nobody where this is root's. */
static int as_nobody(void (*look)(void))
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        if (geteuid() == 0 && (setgid(65534) < 0 || setuid(65534) < 0))
            _exit(1);
        look();
        _exit(0);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    return status;
}

static void check_closed_device(void)
{
    if (mount_lacks(&places, false, &err) != -EACCES ||
        !strstr(err.text, "not open to this user (mode 0, owner "))
        abort();
}

static void check_absent_helper(void)
{
    places.may_mount = false;
    if (mount_lacks(&places, false, &err) != -ENOENT ||
        !strstr(err.text, "fusermount3 is not installed"))
        abort();
}

static void check_powerless_helper(void)
{
    places.may_mount = false;
    if (mount_lacks(&places, false, &err) != -EPERM || !strstr(err.text, "set-user-ID"))
        abort();
}

static void check_nameless_user(void)
{
    places.may_mount = places.has_name = false;
    if (mount_lacks(&places, false, &err) != -EPERM || !strstr(err.text, "user 65534 has no name"))
        abort();
}

START_TEST(mount_lacks__a_device_that_is_open_to_this_user)
{
    ck_assert_int_eq(chmod(device, 0), 0);
    ck_assert_int_eq(as_nobody(check_closed_device), 0);
}
END_TEST

START_TEST(mount_lacks__the_helper)
{
    ck_assert_int_eq(as_nobody(check_absent_helper), 0);
    put(helper, "", 0755);
    ck_assert_int_eq(as_nobody(check_powerless_helper), 0);
    if (geteuid() != 0) /* who alone may make it powerful */
        return;
    ck_assert_int_eq(chmod(helper, 04755), 0);
    ck_assert_int_eq(as_nobody(check_nameless_user), 0);
}
END_TEST

START_TEST(mount_lacks__the_right_to_mount)
{
    if (geteuid() != 0)
        return;
    places.may_mount = false;
    ck_assert_int_eq(mount_lacks(&places, false, &err), -EPERM);
    says("CAP_SYS_ADMIN");
}
END_TEST

START_TEST(mount_lacks__what_a_policy_forbids)
{
    ck_assert_int_eq(mount_lacks(&places, true, &err), -EACCES);
    says("mounting is denied although owner and mode allow it");
    put(apparmor, "docker-default (enforce)\n", 0644);
    ck_assert_int_eq(mount_lacks(&places, true, &err), -EACCES);
    says("AppArmor may do (profile docker-default): see journalctl");
    put(apparmor, "unconfined\n", 0644);
    ck_assert_int_eq(mount_lacks(&places, true, &err), -EACCES);
    says("although owner and mode allow it");
    put(selinux, "1", 0644);
    ck_assert_int_eq(mount_lacks(&places, true, &err), -EACCES);
    says("SELinux may do (it is enforcing): see ausearch");
    put(selinux, "0", 0644);
    ck_assert_int_eq(mount_lacks(&places, true, &err), -EACCES);
    says("although owner and mode allow it");
}
END_TEST

START_TEST(mount_may_allow_other__as_fuse_conf_says)
{
    if (geteuid() == 0) {
        ck_assert(mount_may_allow_other("/nonexistent"));
        return;
    }
    ck_assert(!mount_may_allow_other("/nonexistent"));
    put(device, "# user_allow_other\n", 0644);
    ck_assert(!mount_may_allow_other(device));
    put(device, "mount_max = 5\n user_allow_other\n", 0644);
    ck_assert(mount_may_allow_other(device));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("mount");
    TCase *t = tcase_create("mount");

    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_add_test(t, mount_lacks__nothing);
    tcase_add_test(t, mount_lacks__the_device);
    tcase_add_test(t, mount_lacks__a_device_that_is_open_to_this_user);
    tcase_add_test(t, mount_lacks__the_helper);
    tcase_add_test(t, mount_lacks__the_right_to_mount);
    tcase_add_test(t, mount_lacks__what_a_policy_forbids);
    tcase_add_test(t, mount_may_allow_other__as_fuse_conf_says);
    suite_add_tcase(s, t);
    return suite_run(s);
}
