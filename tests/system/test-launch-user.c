/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* berth-launch as an ordinary user, in a user namespace with one id. Needs root to become one, and to
 * have a root directory that isn't the user's. */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/system/launch-fixture.h"
#include "util/cleanup.h"
#include "util/fd.h"

#define USER 12345
#define NESTED LAUNCH_STEP_FLAG_NESTED
#define DEVICE(name, a, b)                                                                                 \
        {                                                                                                  \
                .kind = LAUNCH_STEP_DEVICE, .flags = NESTED, .target = name, .source = name, .major = (a), \
                .minor = (b), .mode = 0666                                                                 \
        }

/* As a plan for an ordinary user has them. */
static const TestStep standard[] = {
        { .kind = LAUNCH_STEP_FILESYSTEM, .target = "/proc", .type = "proc", .attr_set = MOUNT_ATTR_NOSUID },
        { .kind = LAUNCH_STEP_FILESYSTEM, .target = "/dev", .type = "tmpfs", .data = "mode=755" },
        { .kind = LAUNCH_STEP_DEVPTS,
          .flags = NESTED,
          .target = "/dev/pts",
          .data = "ptmxmode=0666,mode=0620" },
        { .kind = LAUNCH_STEP_FILESYSTEM,
          .target = "/sys",
          .type = "sysfs",
          .attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC },
        DEVICE("/dev/null", 1, 3),
        DEVICE("/dev/zero", 1, 5),
        DEVICE("/dev/tty", 5, 0),
        { .kind = LAUNCH_STEP_SYMLINK, .flags = NESTED, .target = "/dev/ptmx", .source = "pts/ptmx" },
        { .kind = LAUNCH_STEP_MASK, .target = "/proc/version" },
        { .kind = LAUNCH_STEP_MASK, .target = "/sys/firmware" },
        { .kind = LAUNCH_STEP_READ_ONLY, .target = "/proc/sys" },
        { .kind = LAUNCH_STEP_FILESYSTEM,
          .flags = NESTED | LAUNCH_STEP_FLAG_LATE | LAUNCH_STEP_FLAG_OPTIONAL,
          .target = "/sys/fs/cgroup",
          .type = "cgroup2",
          .attr_set = MOUNT_ATTR_RDONLY },
        { .kind = LAUNCH_STEP_CONSOLE, .flags = NESTED, .target = "/dev/console" },
};

typedef struct Fixture {
        char root[64];
        Launcher launcher; /* in the user's process */
} Fixture;

static int setup(void **state) {
        Fixture *f = calloc(1, sizeof(*f));

        assert_non_null(f);
        busybox_root(f->root);
        *state = f;
        return 0;
}

static int teardown(void **state) {
        Fixture *f = *state;

        remove_tree(f->root);
        free(f);
        return 0;
}

static TestPlan shell(const char *root, const char *command) {
        return (TestPlan) {
                .root = root,
                .clone_flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWUTS | CLONE_NEWIPC |
                               CLONE_NEWNET,
                .flags = LAUNCH_PLAN_USER_NAMESPACE | LAUNCH_PLAN_SETGROUPS_DENIED |
                         LAUNCH_PLAN_NETWORK_LOOPBACK,
                .arguments = { "sh", "-c", command },
                .environment = { "PATH=/bin:/usr/bin" },
                .steps = standard,
                .n_steps = ELEMENTSOF(standard) - 1, /* without the console */
                .hostname = "box",
        };
}

static void write_maps(const TestRun *run) {
        _cleanup_fd_ int directory = -EBADF;

        directory = open(text("/proc/%d", (int) run->pid), O_PATH | O_DIRECTORY | O_CLOEXEC);
        assert_true(directory >= 0);
        assert_int_equal(fd_write_file(directory, "setgroups", "deny"), 0);
        assert_int_equal(fd_write_file(directory, "uid_map", text("0 %d 1", USER)), 0);
        assert_int_equal(fd_write_file(directory, "gid_map", text("0 %d 1", USER)), 0);
}

static void run_user(Launcher *launcher, const TestPlan *plan, TestRun *run) {
        LaunchChildNews news;
        int got[2];
        size_t n;

        assert_int_equal(run_begin(launcher, plan, NULL, NULL, 0, run), 0);
        write_maps(run);
        run_open_gate(run, LAUNCH_GATE_MAPS);
        if (plan->flags & LAUNCH_PLAN_SEND_DEVPTS) {
                assert_true(run_readable(run, FIXTURE_DEADLINE_MSEC));
                if (fd_receive(run->socket, &news, sizeof(news), got, 2, &n) == sizeof(news) && n == 2) {
                        run->master = got[1];
                        (void) close(got[0]);
                }
        }
        run_end(run);
}

static void assert_output(const TestRun *run, const char *expected) {
        if (run->report.error != 0)
                print_error("stage %u error %d detail '%s'\n", run->report.stage, run->report.error,
                            run->report.detail);
        assert_int_equal(run->report.error, 0);
        assert_string_equal(run->text, expected);
        assert_int_equal(run->status.si_code, CLD_EXITED);
        assert_int_equal(run->status.si_status, 0);
}

static void waits_for_its_maps(void *userdata) {
        Fixture *f = userdata;
        TestPlan plan = shell(f->root, "id -u; cat /proc/self/uid_map /proc/self/oom_score_adj; hostname;"
                                       "stat -c %U /bin");
        TestRun run;

        plan.flags |= LAUNCH_PLAN_READ_ONLY | LAUNCH_PLAN_OOM_SCORE_ADJUST;
        plan.oom_score_adjust = 50;
        launcher_start(&f->launcher);
        assert_int_equal(run_begin(&f->launcher, &plan, NULL, NULL, 0, &run), 0);
        assert_false(run_readable(&run, 200));
        assert_int_equal(run.shared->stage, LAUNCH_STAGE_USER_NAMESPACE);
        write_maps(&run);
        run_open_gate(&run, LAUNCH_GATE_MAPS);
        run_end(&run);
        assert_output(&run, "0\n         0      12345          1\n50\nbox\nUNKNOWN\n");
        assert_int_equal(launcher_stop(&f->launcher), 0);
}

static void test_user_namespace_waits_for_its_maps(void **state) {
        in_process(USER, waits_for_its_maps, *state);
}

static void terminal(void *userdata) {
        Fixture *f = userdata;
        TestPlan plan = shell(
                f->root, "tty; stty size; stat -c '%u %a' /dev/pts/0; echo ok >/dev/tty; echo 0 >/dev/null");
        TestRun run;

        plan.flags |= LAUNCH_PLAN_READ_ONLY | LAUNCH_PLAN_TERMINAL | LAUNCH_PLAN_SEND_DEVPTS;
        plan.n_steps = ELEMENTSOF(standard);
        plan.rows = 43;
        plan.columns = 132;
        launcher_start(&f->launcher);
        run_user(&f->launcher, &plan, &run);
        assert_output(&run, "/dev/pts/0\r\n43 132\r\n0 620\r\nok\r\n");
        assert_int_equal(launcher_stop(&f->launcher), 0);
}

static void test_terminal_in_a_user_namespace(void **state) {
        in_process(USER, terminal, *state);
}

static void ephemeral(void *userdata) {
        Fixture *f = userdata;
        TestPlan plan = shell(
                f->root, "echo x >/tmp/new; cat /tmp/new; rm -r /tmp 2>/dev/null; mkdir /new && echo made;"
                         "cat /sys/class/net/lo/operstate; cat /../data/sub/file; ls /..");
        TestRun run;

        plan.flags |= LAUNCH_PLAN_EPHEMERAL;
        launcher_start(&f->launcher);
        run_user(&f->launcher, &plan, &run);
        assert_output(&run, "x\nmade\nunknown\ndata\nbin\ndata\ndev\netc\nhome\nnew\nproc\nsys\n");
        assert_int_equal(launcher_stop(&f->launcher), 0);
}

static void test_ephemeral_in_a_user_namespace(void **state) {
        Fixture *f = *state;

        /* Capabilities don't reach files of ids that aren't mapped. */
        assert_int_equal(chown(f->root, USER, USER), 0);
        assert_int_equal(chown(text("%s/tmp", f->root), USER, USER), 0);
        in_process(USER, ephemeral, f);
        assert_int_equal(access(text("%s/tmp/new", f->root), F_OK), -1);
        assert_int_equal(access(text("%s/new", f->root), F_OK), -1);
}

static void ephemeral_host(void *userdata) {
        Fixture *f = userdata;
        TestPlan plan = shell("/", "echo never");
        TestRun run;

        plan.flags |= LAUNCH_PLAN_EPHEMERAL;
        launcher_start(&f->launcher);
        run_user(&f->launcher, &plan, &run);
        assert_int_equal(run.report.stage, LAUNCH_STAGE_ROOTFS);
        assert_int_equal(run.report.error, EOPNOTSUPP);
        assert_int_equal(run.report.detail[0], '/');
        assert_int_equal(access(run.report.detail, F_OK), 0);
        assert_int_equal(launcher_stop(&f->launcher), 0);
}

static void test_ephemeral_over_mounts_is_refused_by_name(void **state) {
        in_process(USER, ephemeral_host, *state);
}

static void read_only_host(void *userdata) {
        Fixture *f = userdata;
        TestPlan plan = shell("/", "touch /tmp/x 2>/dev/null || echo ro; touch /dev/x && echo rw; id -u;"
                                   "cat /proc/version | wc -c; ls /proc/self/fd | wc -l; echo 1 2>/dev/null "
                                   ">/proc/sys/kernel/pid_max || echo sys");
        TestRun run;

        plan.flags |= LAUNCH_PLAN_READ_ONLY;
        launcher_start(&f->launcher);
        run_user(&f->launcher, &plan, &run);
        assert_output(&run, "ro\nrw\n0\n0\n4\nsys\n");
        assert_int_equal(launcher_stop(&f->launcher), 0);
}

static void test_read_only_host(void **state) {
        in_process(USER, read_only_host, *state);
}

static void binds(void *userdata) {
        Fixture *f = userdata;
        const TestStep steps[] = {
                { .kind = LAUNCH_STEP_BIND,
                  .target = "/data",
                  .source = "/dev",
                  .attr_set = MOUNT_ATTR_RDONLY },
                { .kind = LAUNCH_STEP_BIND,
                  .target = "/tmp",
                  .source = "/etc",
                  .attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOATIME,
                  .attr_clear = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NODEV },
        };
        TestPlan plan = shell(f->root, "[ -c /data/null ] && echo dev; [ -f /tmp/passwd ] && echo etc");
        TestRun run;

        plan.steps = steps;
        plan.n_steps = ELEMENTSOF(steps);
        launcher_start(&f->launcher);
        run_user(&f->launcher, &plan, &run);
        assert_output(&run, "dev\netc\n");
        assert_int_equal(launcher_stop(&f->launcher), 0);
}

static void test_binds_keep_what_the_host_locked(void **state) {
        in_process(USER, binds, *state);
}

static void capabilities(void *userdata) {
        static const struct sock_filter allow[] = { BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW) };
        Fixture *f = userdata;
        TestPlan plan = shell(f->root, "grep -E '^(Cap[EB]|Seccomp:)' /proc/self/status");
        TestRun run;

        plan.flags |= LAUNCH_PLAN_READ_ONLY;
        plan.capabilities = 0xa80425fb;
        plan.filter = allow;
        plan.n_filter = 1;
        launcher_start(&f->launcher);
        run_user(&f->launcher, &plan, &run);
        assert_output(&run, "CapEff:\t00000000a80425fb\nCapBnd:\t00000000a80425fb\nSeccomp:\t2\n");
        plan.groups[0] = "audio";
        run_user(&f->launcher, &plan, &run);
        assert_int_equal(run.report.stage, LAUNCH_STAGE_CREDENTIALS);
        assert_int_equal(run.report.error, EPERM);
        assert_string_equal(run.report.detail, "audio");
        assert_int_equal(launcher_stop(&f->launcher), 0);
}

static void test_capabilities_in_a_user_namespace(void **state) {
        in_process(USER, capabilities, *state);
}

static void hidden(void *userdata) {
        Fixture *f = userdata;
        TestPlan plan = shell(f->root, "echo started");
        char target[64];
        TestRun run;

        plan.flags |= LAUNCH_PLAN_READ_ONLY | LAUNCH_PLAN_CGROUP_GATE;
        launcher_start(&f->launcher);
        assert_int_equal(run_begin(&f->launcher, &plan, NULL, NULL, 0, &run), 0);
        assert_true(readlink(text("/proc/%d/exe", (int) run.pid), target, sizeof(target)) > 0);
        write_maps(&run);
        run_open_gate(&run, LAUNCH_GATE_MAPS);
        assert_false(run_readable(&run, 200));
        assert_int_equal(run.shared->stage, LAUNCH_STAGE_SCOPE);
        assert_int_equal(readlink(text("/proc/%d/exe", (int) run.pid), target, sizeof(target)), -1);
        assert_int_equal(open(text("/proc/%d/mem", (int) run.pid), O_RDONLY | O_CLOEXEC), -1);
        run_open_gate(&run, LAUNCH_GATE_CGROUP);
        run_end(&run);
        assert_output(&run, "started\n");
        assert_int_equal(launcher_stop(&f->launcher), 0);
}

static void test_launching_process_is_hidden(void **state) {
        in_process(USER, hidden, *state);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(test_user_namespace_waits_for_its_maps),
                TEST(test_terminal_in_a_user_namespace),
                TEST(test_ephemeral_in_a_user_namespace),
                TEST(test_ephemeral_over_mounts_is_refused_by_name),
                TEST(test_read_only_host),
                TEST(test_binds_keep_what_the_host_locked),
                TEST(test_capabilities_in_a_user_namespace),
                TEST(test_launching_process_is_hidden),
        };

        if (geteuid() != 0) {
                (void) fprintf(stderr, "this test needs root\n");
                return 77;
        }
        return cmocka_run_group_tests(tests, NULL, NULL);
}
