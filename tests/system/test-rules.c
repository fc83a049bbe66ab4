/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What holds in every container, seen by programs in it, with a service of root's: the rules of a launch that matter
 * for security, and the defaults that programs count on. */
#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "interfaces/names.h"
#include "tests/system/direct-call.h"
#include "util/fd.h"

#define MS 15000U

/* The 14 of the common engines. */
#define DEFAULT_CAPABILITIES 0xa80425fbULL
#define CAPABILITY_CHOWN (1ULL << 0)
#define CAPABILITY_SYS_ADMIN (1ULL << 21)

static void expect(const Direct *d, const Call *call, const char *command, const char *expected) {
        _cleanup_free_ char *output = NULL;

        output = capture_sh(d, call, command);
        if (strcmp(output, expected) != 0)
                fail_msg("%s: '%s', and not '%s'", command, output, expected);
}

static unsigned long long field(const char *status, const char *name, int base) {
        const char *line = strstr(status, name);

        if (!line)
                fail_msg("no %s in: %s", name, status);
        return strtoull(line + strlen(name) + 1, NULL, base);
}

static void expect_capabilities(const Direct *d, const Call *call, uint64_t permitted, uint64_t bounding) {
        _cleanup_free_ char *status = NULL;

        status = capture_sh(d, call, "cat /proc/self/status");
        assert_int_equal(field(status, "CapInh:", 16), 0);
        assert_int_equal(field(status, "CapAmb:", 16), 0);
        assert_int_equal(field(status, "CapPrm:", 16), permitted);
        assert_int_equal(field(status, "CapEff:", 16), permitted);
        assert_int_equal(field(status, "CapBnd:", 16), bounding);
}

static void test_capabilities_are_what_the_spec_says(void **state) {
        const Call defaults = {}, dropped = { .drop_capabilities = WORDS("CAP_CHOWN") };
        const Call added = { .add_capabilities = WORDS("sys_admin") };
        const Call none = { .drop_capabilities = WORDS("ALL") };
        const Call exact = { .capabilities = WORDS("CHOWN", "SYS_ADMIN") };
        const Call user = { .user = "1000" };
        Direct *d = *state;

        expect_capabilities(d, &defaults, DEFAULT_CAPABILITIES, DEFAULT_CAPABILITIES);
        expect_capabilities(d, &dropped, DEFAULT_CAPABILITIES & ~CAPABILITY_CHOWN,
                            DEFAULT_CAPABILITIES & ~CAPABILITY_CHOWN);
        expect_capabilities(d, &added, DEFAULT_CAPABILITIES | CAPABILITY_SYS_ADMIN,
                            DEFAULT_CAPABILITIES | CAPABILITY_SYS_ADMIN);
        expect_capabilities(d, &none, 0, 0);
        expect_capabilities(d, &exact, CAPABILITY_CHOWN | CAPABILITY_SYS_ADMIN,
                            CAPABILITY_CHOWN | CAPABILITY_SYS_ADMIN);
        /* Nothing by accident for who is not root. */
        expect_capabilities(d, &user, 0, DEFAULT_CAPABILITIES);
}

static void test_no_new_privileges_and_seccomp_are_in_force(void **state) {
        static const struct {
                Call call;
                unsigned no_new_privs, seccomp;
        } cases[] = {
                { {}, 0, 2 },
                { { .no_new_privileges = true }, 1, 2 },
                { { .seccomp = "unconfined" }, 0, 0 },
                { { .no_new_privileges = true, .seccomp = "unconfined", .user = "1000" }, 1, 0 },
                { { .user = "1000:1000" }, 0, 2 },
        };
        Direct *d = *state;

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_free_ char *status = NULL;

                status = capture_sh(d, &cases[i].call, "cat /proc/self/status");
                assert_int_equal(field(status, "NoNewPrivs:", 10), cases[i].no_new_privs);
                assert_int_equal(field(status, "Seccomp:", 10), cases[i].seccomp);
        }
}

static void test_masked_and_read_only_paths(void **state) {
        const Call defaults = {}, all = { .capabilities = WORDS("ALL"), .seccomp = "unconfined" };
        Direct *d = *state;

        for (unsigned i = 0; i < 2; i++) {
                const Call *call = i == 0 ? &defaults : &all;

                expect(d, call,
                       "for f in kcore keys timer_list interrupts latency_stats sched_debug; do "
                       "[ ! -e /proc/$f ] || [ -z \"$(head -c 1 /proc/$f)\" ] || echo $f; done",
                       "");
                expect(d, call,
                       "for f in acpi scsi; do [ ! -d /proc/$f ] || ls /proc/$f; done; ls /sys/firmware",
                       "");
                expect(d, call,
                       "for f in sys/kernel/core_pattern sys/kernel/hostname sysrq-trigger; do "
                       "(echo x >/proc/$f) 2>/dev/null && echo $f; done; :",
                       "");
                expect(d, call, "(echo 1 >/sys/kernel/profiling) 2>/dev/null && echo wrote; :", "");
        }
}

/* Nodes of anything can be made, but what they stand for can't be opened: not with any of the ways to have a root. */
static void test_no_device_of_the_host_can_be_opened(void **state) {
        static const char *const script =
                "cd /tmp; for n in 'c 10 229' 'c 10 237' 'c 1 1' 'c 1 11' 'b 7 0' 'b 1 0'; do"
                " rm -f node; mknod node $n && head -c 1 node 2>&1 | grep -q 'not permitted' || echo open "
                "$n; done;"
                "for d in null zero full random urandom; do head -c 1 /dev/$d >/dev/null || echo no $d; "
                "done;"
                "echo x >/dev/null && echo fine";
        Direct *d = *state;
        Call calls[] = { {}, { .ephemeral = true }, { .add_capabilities = WORDS("ALL") } };

        assert_int_equal(symlink("busybox", text("%s/bin/mknod", d->root)), 0);
        assert_int_equal(symlink("busybox", text("%s/bin/rm", d->root)), 0);
        for (size_t i = 0; i < ELEMENTSOF(calls); i++) {
                _cleanup_free_ char *output = NULL;

                output = capture_sh(d, &calls[i], script);
                assert_string_equal(output, "fine\n");
        }
}

static void test_devices_are_these_and_no_others(void **state) {
        const Call call = {};
        Direct *d = *state;

        expect(d, &call, "ls /dev | grep -v console",
               "fd\nfull\nmqueue\nnull\nptmx\npts\nrandom\nshm\nstderr\nstdin\nstdout\ntty\nurandom\nzero"
               "\n");
        expect(d, &call,
               "stat -c '%t:%T %a' /dev/null /dev/zero /dev/full /dev/random /dev/urandom /dev/tty",
               "1:3 666\n1:5 666\n1:7 666\n1:8 666\n1:9 666\n5:0 666\n");
        expect(d, &call, "echo x >/dev/null && head -c 2 /dev/zero | wc -c && readlink /dev/ptmx",
               "2\npts/ptmx\n");
}

static void test_limits_and_oom_score(void **state) {
        const Call limited = { .limit = "RLIMIT_NOFILE", .limit_soft = 100, .limit_hard = 200 };
        const int score = 500;
        const Call scored = { .oom_score_adjust = &score };
        const Call defaults = {};
        Direct *d = *state;

        expect(d, &limited, "ulimit -Sn; ulimit -Hn", "100\n200\n");
        expect(d, &scored, "cat /proc/self/oom_score_adj", "500\n");
        expect(d, &defaults, "cat /proc/self/oom_score_adj", "0\n");
}

static void test_namespaces_hide_the_host(void **state) {
        const Call call = { .hostname = "boat" }, plain = {};
        _cleanup_free_ char *namespaces = NULL;
        static const char *const kinds[] = { "mnt", "pid", "uts", "ipc", "net", "cgroup" };
        Direct *d = *state;

        expect(d, &call, "hostname", "boat\n");
        expect(d, &plain, "hostname | grep -q '^c[0-9]*$' && echo generated", "generated\n");
        expect(d, &plain, "echo $$; echo /proc/[0-9]*", "1\n/proc/1\n");
        namespaces = capture_sh(d, &plain,
                                "for k in mnt pid uts ipc net cgroup; do readlink /proc/self/ns/$k; done");
        for (size_t i = 0; i < ELEMENTSOF(kinds); i++) {
                char link[64];
                ssize_t n;

                n = readlink(text("/proc/self/ns/%s", kinds[i]), link, sizeof(link) - 1);
                assert_true(n > 0);
                link[n] = 0;
                if (strstr(namespaces, link))
                        fail_msg("%s is shared", link);
        }
        expect(d, &plain, "grep ^0: /proc/self/cgroup", "0::/\n");
}

static void test_network_private_has_only_a_loopback_and_host_shares(void **state) {
        const Call private = {}, shared = { .network = "host" };
        Direct *d = *state;
        char link[64];
        ssize_t n;

        expect(d, &private, "ls /sys/class/net; ifconfig lo | grep -c UP", "lo\n1\n");
        n = readlink("/proc/self/ns/net", link, sizeof(link) - 1);
        assert_true(n > 0);
        link[n] = 0;
        expect(d, &shared, "readlink /proc/self/ns/net", text("%s\n", link));
}

static void test_network_host_brings_the_hosts_resolver(void **state) {
        const Call private = {}, shared = { .network = "host" };
        _cleanup_free_ char *host = NULL, *inside = NULL;
        _cleanup_fd_ int fd = -EBADF;
        Direct *d = *state;

        fd = open(text("%s/etc/resolv.conf", d->root), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
        assert_true(fd >= 0);
        assert_int_equal(fd_write_all(fd, "own\n", 4), 0);
        expect(d, &private, "cat /etc/resolv.conf", "own\n");
        if (run_command(WORDS("cat", "/etc/resolv.conf"), &host) != 0) {
                /* A host without one has none to give. */
                expect(d, &shared, "cat /etc/resolv.conf", "own\n");
                return;
        }
        inside = capture_sh(d, &shared,
                            "cat /etc/resolv.conf; (echo x >/etc/resolv.conf) 2>/dev/null && echo wrote; :");
        assert_string_equal(inside, host);
}

static void test_users_and_groups_are_looked_up_in_the_root(void **state) {
        static const struct {
                Call call;
                const char *id;
        } cases[] = {
                { {}, "0 0 0" },
                { { .user = "app" }, "1000 1001 1001 29 44" },
                { { .user = "1000" }, "1000 0 0" },
                { { .user = "1000:5" }, "1000 5 5" },
                { { .user = "app:7" }, "1000 7 7" },
                { { .user = "12345:678" }, "12345 678 678" },
        };
        const Call more = { .user = "1000:1000", .groups = WORDS("audio", "77") };
        Direct *d = *state;

        for (size_t i = 0; i < ELEMENTSOF(cases); i++)
                expect(d, &cases[i].call, "echo $(id -u) $(id -g) $(id -G)", text("%s\n", cases[i].id));
        expect(d, &more, "echo $(id -u) $(id -g) $(id -G)", "1000 1000 1000 29 77\n");
        /* Root's files stay root's, and who asked can open its streams again. */
        expect(d, &more, "(echo x >/etc/secret) 2>/dev/null || echo denied; [ -w /etc/passwd ] || echo no",
               "denied\nno\n");
}

static void test_environment_has_the_defaults_and_what_was_given(void **state) {
        const Call root = {}, app = { .user = "app" }, nobody = { .user = "4711" };
        const Call given = { .environment = WORDS("HOME=/elsewhere", "A=1", "A=2", "PATH=/bin:/usr/bin") };
        Direct *d = *state;

        expect(d, &root, "env | grep -v '^PWD=\\|^SHLVL=' | sort",
               "HOME=/root\nLOGNAME=root\n"
               "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n"
               "SHELL=/bin/sh\nUSER=root\ncontainer=berth\n");
        expect(d, &app, "echo $HOME $USER $LOGNAME $SHELL", "/home/app app app /bin/false\n");
        expect(d, &nobody, "echo $HOME", "/\n");
        expect(d, &given, "echo $HOME $A $PATH $container", "/elsewhere 2 /bin:/usr/bin berth\n");
}

static void test_a_terminal_brings_term(void **state) {
        const Call plain = { .command = SH("echo \"$TERM\""), .terminal = true };
        const Call given = { .command = SH("echo \"$TERM\""),
                             .terminal = true,
                             .environment = WORDS("TERM=vt220") };
        Direct *d = *state;

        for (unsigned i = 0; i < 2; i++) {
                _cleanup_free_ char *output = NULL;
                _cleanup_fd_ int master = -EBADF;

                (void) must_run(d, d->bus, "", i == 0 ? &plain : &given, &master);
                output = read_to_end(master, MS);
                assert_string_equal(output, i == 0 ? "xterm\r\n" : "vt220\r\n");
        }
}

static void test_working_directory(void **state) {
        const Call call = { .working_directory = "/data/sub" }, plain = {};
        Direct *d = *state;

        expect(d, &call, "pwd", "/data/sub\n");
        expect(d, &plain, "pwd; umask", "/\n0022\n");
}

static void test_mounts_and_their_options(void **state) {
        const CallMount mounts[] = {
                { "/data", "bind", "/proc/self", (const char *const[]) { "bind", "ro", NULL } },
                { "/home", "tmpfs", NULL,
                  (const char *const[]) { "nosuid,nodev,noexec", "size=64k", "mode=700", NULL } },
                { "/tmp/new/place", "tmpfs", "named", (const char *const[]) { "ro", NULL } },
        };
        char shared[] = "/tmp/berth-bind-XXXXXX";
        CallMount with_bind[] = { mounts[0], mounts[1], mounts[2] };
        Call call = { .mounts = with_bind, .n_mounts = ELEMENTSOF(with_bind) };
        Direct *d = *state;

        assert_non_null(mkdtemp(shared));
        with_bind[0].source = shared;
        expect(d, &call, "touch /data/x 2>/dev/null || echo read-only; touch /home/x && stat -c %a /home",
               "read-only\n700\n");
        expect(d, &call, "grep ' /home ' /proc/self/mountinfo | grep -o 'rw,nosuid,nodev,noexec'",
               "rw,nosuid,nodev,noexec\n");
        expect(d, &call,
               "touch /tmp/new/place/x 2>/dev/null || echo read-only; "
               "grep ' /tmp/new/place ' /proc/self/mountinfo | grep -o ' - tmpfs named '",
               "read-only\n - tmpfs named \n");
        with_bind[0].options = (const char *const[]) { "bind", NULL };
        expect(d, &call, "touch /data/x && echo written", "written\n");
        assert_int_equal(access(text("%s/x", shared), F_OK), 0);
        assert_int_equal(unlink(text("%s/x", shared)), 0);
        assert_int_equal(rmdir(shared), 0);
}

static void test_mount_targets_stay_inside_the_root(void **state) {
        const CallMount mount = { "/a/b", "tmpfs", NULL, (const char *const[]) { NULL } };
        const CallMount up = { "/escape/made", "tmpfs", NULL, (const char *const[]) { NULL } };
        const Call inside = { .mounts = &mount, .n_mounts = 1 }, outside = { .mounts = &up, .n_mounts = 1 };
        Direct *d = *state;

        assert_int_equal(mkdir(text("%s/real", d->root), 0755), 0);
        assert_int_equal(symlink("/real", text("%s/a", d->root)), 0);
        expect(d, &inside, "touch /real/b/x && grep -c ' /real/b ' /proc/self/mountinfo", "1\n");
        assert_int_equal(symlink("../../../../../../../tmp", text("%s/escape", d->root)), 0);
        expect(d, &outside, "grep -c ' /tmp/made ' /proc/self/mountinfo", "1\n");
        assert_int_not_equal(access("/tmp/made", F_OK), 0);
        assert_int_equal(access(text("%s/tmp/made", d->root), F_OK), 0);
}

static void test_read_only_holds_everywhere(void **state) {
        const Call call = { .read_only = true };
        Direct *d = *state;

        expect(d, &call,
               "for p in / /etc /tmp /data/sub; do touch $p/x 2>/dev/null && echo $p; done; touch "
               "/dev/shm/x && echo shm",
               "shm\n");
        expect(d, &call,
               "grep ' / / ' /proc/self/mountinfo >/dev/null; mount -o remount,rw / 2>/dev/null || echo "
               "refused",
               "refused\n");
}

static void test_ephemeral_leaves_the_host_unchanged(void **state) {
        const Call own = { .ephemeral = true }, host = { .ephemeral = true, .root = "/" };
        const Call both = { .ephemeral = true, .read_only = true };
        Direct *d = *state;

        expect(d, &own, "echo changed >/data/sub/file; rm /etc/passwd; touch /new; cat /data/sub/file",
               "changed\n");
        expect(d, &own, "cat /data/sub/file; ls /new 2>/dev/null; ls /etc/passwd", "data\n/etc/passwd\n");
        expect(d, &host, "echo x >/berth-was-here && echo x >/etc/berth-was-here && cat /berth-was-here",
               "x\n");
        assert_int_not_equal(access("/berth-was-here", F_OK), 0);
        assert_int_not_equal(access("/etc/berth-was-here", F_OK), 0);
        expect(d, &both, "touch /x 2>/dev/null || echo read-only", "read-only\n");
}

static void test_limits_of_cgroups_need_their_controller(void **state) {
        const Call memory = { .command = WORDS("true"), .memory_max = 64 << 20 };
        const Call tasks = { .command = WORDS("true"), .tasks_max = 10 };
        _cleanup_free_ char *has = NULL;
        Direct *d = *state;

        assert_int_equal(
                run_command(SH(text("grep -sw memory %s/cgroup.controllers || :", d->cgroup)), &has), 0);
        if (*has)
                (void) must_wait(d->bus, must_run(d, d->bus, "memory", &memory, NULL));
        else
                assert_non_null(strstr(must_fail(d, d->bus, "memory", &memory, BERTH_ERROR_NOT_SUPPORTED),
                                       "MemoryMax"));
        free(has);
        has = NULL;
        assert_int_equal(run_command(SH(text("grep -sw pids %s/cgroup.controllers || :", d->cgroup)), &has),
                         0);
        if (*has)
                (void) must_wait(d->bus, must_run(d, d->bus, "tasks", &tasks, NULL));
        else
                assert_non_null(strstr(must_fail(d, d->bus, "tasks", &tasks, BERTH_ERROR_NOT_SUPPORTED),
                                       "TasksMax"));
}

static void test_a_container_cannot_reach_the_service(void **state) {
        const Call call = { .network = "host" };
        Direct *d = *state;

        expect(d, &call, "grep -l '[b]erthd' /proc/[0-9]*/cmdline 2>/dev/null | wc -l", "0\n");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                direct_test(test_capabilities_are_what_the_spec_says),
                direct_test(test_no_new_privileges_and_seccomp_are_in_force),
                direct_test(test_masked_and_read_only_paths),
                direct_test(test_no_device_of_the_host_can_be_opened),
                direct_test(test_devices_are_these_and_no_others),
                direct_test(test_limits_and_oom_score),
                direct_test(test_namespaces_hide_the_host),
                direct_test(test_network_private_has_only_a_loopback_and_host_shares),
                direct_test(test_network_host_brings_the_hosts_resolver),
                direct_test(test_users_and_groups_are_looked_up_in_the_root),
                direct_test(test_environment_has_the_defaults_and_what_was_given),
                direct_test(test_a_terminal_brings_term),
                direct_test(test_working_directory),
                direct_test(test_mounts_and_their_options),
                direct_test(test_mount_targets_stay_inside_the_root),
                direct_test(test_read_only_holds_everywhere),
                direct_test(test_ephemeral_leaves_the_host_unchanged),
                direct_test(test_limits_of_cgroups_need_their_controller),
                direct_test(test_a_container_cannot_reach_the_service),
        };

        return cmocka_run_group_tests(tests, direct_group_setup, NULL);
}
