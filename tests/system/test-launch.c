/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* berth-launch as root, without berthd. */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/system/launch-fixture.h"
#include "util/cleanup.h"
#include "util/fd.h"

#define NESTED LAUNCH_STEP_FLAG_NESTED
#define PROC \
        { .kind = LAUNCH_STEP_FILESYSTEM, .target = "/proc", .type = "proc" }
#define DEV \
        { .kind = LAUNCH_STEP_FILESYSTEM, .target = "/dev", .type = "tmpfs", .data = "mode=755,size=65536k" }
#define DEV_NULL                                                                                            \
        {                                                                                                   \
                .kind = LAUNCH_STEP_DEVICE, .flags = NESTED, .target = "/dev/null", .major = 1, .minor = 3, \
                .mode = 0666                                                                                \
        }

typedef struct Fixture {
        Launcher launcher;
        char root[64];
} Fixture;

static int setup(void **state) {
        Fixture *f = calloc(1, sizeof(*f));

        assert_non_null(f);
        launcher_start(&f->launcher);
        busybox_root(f->root);
        *state = f;
        return 0;
}

static int teardown(void **state) {
        Fixture *f = *state;

        assert_int_equal(launcher_stop(&f->launcher), 0);
        remove_tree(f->root);
        free(f);
        return 0;
}

/* Most tests are a shell command in the root, with some steps before it. */
static TestPlan shell(const Fixture *f, const char *command) {
        return (TestPlan) {
                .root = f->root,
                .arguments = { "sh", "-c", command },
                .environment = { "PATH=/bin" },
        };
}

#define WITH_STEPS(plan, ...)                     \
        const TestStep steps[] = { __VA_ARGS__ }; \
        (plan).steps = steps;                     \
        (plan).n_steps = ELEMENTSOF(steps)

static void assert_success(const TestRun *run) {
        if (run->report.error != 0 || run->status.si_code != CLD_EXITED || run->status.si_status != 0)
                print_error("stage %u error %d detail '%s' code %d status %d output '%s'\n",
                            run->report.stage, run->report.error, run->report.detail, run->status.si_code,
                            run->status.si_status, run->text);
        assert_int_equal(run->report.error, 0);
        assert_int_equal(run->report.stage, LAUNCH_STAGE_EXEC);
        assert_int_equal(run->status.si_code, CLD_EXITED);
        assert_int_equal(run->status.si_status, 0);
}

static void assert_failure(const TestRun *run, LaunchStage stage, int error, const char *detail) {
        if (run->report.stage != (uint32_t) stage || run->report.error != error)
                print_error("stage %u error %d detail '%s' output '%s'\n", run->report.stage,
                            run->report.error, run->report.detail, run->text);
        assert_int_equal(run->report.stage, stage);
        assert_int_equal(run->report.error, error);
        assert_string_equal(run->report.detail, detail);
        assert_int_equal(run->n, 0);
}

static void test_exit_status_arrives(void **state) {
        static const int statuses[] = { 0, 1, 42, 255 };
        Fixture *f = *state;
        TestRun run;

        for (size_t i = 0; i < ELEMENTSOF(statuses); i++) {
                TestPlan plan = shell(f, text("echo started; exit %d", statuses[i]));

                run_plan(&f->launcher, &plan, &run);
                assert_int_equal(run.report.error, 0);
                assert_string_equal(run.text, "started\n");
                assert_int_equal(run.status.si_code, CLD_EXITED);
                assert_int_equal(run.status.si_status, statuses[i]);
                assert_int_equal(run.status.si_pid, run.pid);
        }
}

static void test_death_by_signal_arrives(void **state) {
        Fixture *f = *state;
        TestPlan plan = shell(f, "kill -9 $$");
        TestRun run;

        plan.clone_flags = CLONE_NEWNS;
        run_plan(&f->launcher, &plan, &run);
        assert_int_equal(run.report.error, 0);
        assert_int_equal(run.status.si_code, CLD_KILLED);
        assert_int_equal(run.status.si_status, SIGKILL);
}

static void test_execve_errors_are_reported(void **state) {
        static const struct {
                const char *program;
                int error;
        } all[] = {
                { "/nonexistent", ENOENT }, { "nosuchcmd", ENOENT },          { "/etc", EACCES },
                { "/etc/passwd", EACCES },  { "/etc/passwd/under", ENOTDIR }, { "", ENOENT },
                { "/data/text", ENOEXEC },  { "/data/interpreter", ENOENT },
        };
        Fixture *f = *state;
        TestRun run;
        FILE *file;

        file = fopen(text("%s/data/text", f->root), "we");
        assert_non_null(file);
        (void) fputs("no program\n", file);
        (void) fclose(file);
        file = fopen(text("%s/data/interpreter", f->root), "we");
        assert_non_null(file);
        (void) fputs("#!/bin/missing\n", file);
        (void) fclose(file);
        assert_int_equal(chmod(text("%s/data/text", f->root), 0755), 0);
        assert_int_equal(chmod(text("%s/data/interpreter", f->root), 0755), 0);
        for (size_t i = 0; i < ELEMENTSOF(all); i++) {
                TestPlan plan = shell(f, NULL);

                plan.arguments[0] = all[i].program;
                plan.arguments[1] = NULL;
                run_plan(&f->launcher, &plan, &run);
                assert_failure(&run, LAUNCH_STAGE_EXEC, all[i].error, all[i].program);
                assert_int_equal(run.status.si_status, 1);
        }
}

static void test_devices_masks_links_and_read_only_paths(void **state) {
        Fixture *f = *state;
        TestPlan plan = shell(
                f, "echo lost >/dev/null; cat /etc/secret; ls -A /data/sub; ls /dev/fd/ >/dev/null;"
                   "stat -c '%a %t %T' /dev/null; touch /etc/new 2>/dev/null || echo ro; cat /dev/link");
        TestRun run;
        WITH_STEPS(plan, PROC, DEV, DEV_NULL,
                   { .kind = LAUNCH_STEP_SYMLINK,
                     .flags = NESTED,
                     .target = "/dev/fd",
                     .source = "/proc/self/fd" },
                   { .kind = LAUNCH_STEP_SYMLINK,
                     .flags = NESTED,
                     .target = "/dev/fd",
                     .source = "/elsewhere" },
                   { .kind = LAUNCH_STEP_SYMLINK,
                     .flags = NESTED,
                     .target = "/dev/link",
                     .source = "/etc/secret" },
                   { .kind = LAUNCH_STEP_MASK, .target = "/etc/secret" },
                   { .kind = LAUNCH_STEP_MASK, .target = "/data/sub" },
                   { .kind = LAUNCH_STEP_MASK, .target = "/home" },
                   { .kind = LAUNCH_STEP_MASK, .target = "/not/there" },
                   { .kind = LAUNCH_STEP_READ_ONLY, .target = "/etc" },
                   { .kind = LAUNCH_STEP_READ_ONLY, .target = "/not/there" });

        run_plan(&f->launcher, &plan, &run);
        assert_success(&run);
        assert_string_equal(run.text, "666 1 3\nro\n");
        assert_int_equal(access(text("%s/not", f->root), F_OK), -1);
}

static void make_terminal(int *ret_devpts, int *ret_master, int *ret_slave) {
        const struct winsize size = { .ws_row = 43, .ws_col = 132 };
        int fs, unlocked = 0;

        fs = fsopen("devpts", FSOPEN_CLOEXEC);
        assert_true(fs >= 0);
        assert_int_equal(fsconfig(fs, FSCONFIG_SET_STRING, "ptmxmode", "0666", 0), 0);
        assert_int_equal(fsconfig(fs, FSCONFIG_SET_STRING, "mode", "0620", 0), 0);
        assert_int_equal(fsconfig(fs, FSCONFIG_SET_STRING, "gid", "5", 0), 0);
        assert_int_equal(fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0), 0);
        *ret_devpts = fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
        assert_true(*ret_devpts >= 0);
        (void) close(fs);
        *ret_master = openat(*ret_devpts, "ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
        assert_true(*ret_master >= 0);
        assert_int_equal(ioctl(*ret_master, TIOCSPTLCK, &unlocked), 0);
        assert_int_equal(ioctl(*ret_master, TIOCSWINSZ, &size), 0);
        *ret_slave = ioctl(*ret_master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
        assert_true(*ret_slave >= 0);
}

static void test_terminal_of_berthd(void **state) {
        static const uint32_t roles[] = { LAUNCH_FD_DEVPTS, LAUNCH_FD_TTY };
        Fixture *f = *state;
        TestPlan plan = shell(
                f, "tty; stty size; stat -c '%t:%T %u:%g %a' /dev/console /dev/pts/0; echo ok >/dev/tty;"
                   "[ -t 0 ] && [ -t 2 ] && echo all; ls /proc/self/fd | wc -l");
        int devpts, master, slave;
        TestRun run;
        WITH_STEPS(plan, PROC, DEV, DEV_NULL,
                   { .kind = LAUNCH_STEP_DEVPTS, .flags = NESTED, .target = "/dev/pts" },
                   { .kind = LAUNCH_STEP_DEVICE,
                     .flags = NESTED,
                     .target = "/dev/tty",
                     .major = 5,
                     .mode = 0666 },
                   { .kind = LAUNCH_STEP_CONSOLE, .flags = NESTED, .target = "/dev/console" });

        plan.flags = LAUNCH_PLAN_TERMINAL;
        plan.uid = 1000;
        make_terminal(&devpts, &master, &slave);
        assert_int_equal(run_begin(&f->launcher, &plan, roles, (const int[]) { devpts, slave }, 2, &run), 0);
        (void) close(devpts);
        (void) close(slave);
        run.master = master;
        run_end(&run);
        assert_success(&run);
        assert_string_equal(
                run.text,
                "/dev/pts/0\r\n43 132\r\n88:0 1000:5 620\r\n88:0 1000:5 620\r\nok\r\nall\r\n4\r\n");
}

static void test_terminal_made_by_the_child(void **state) {
        Fixture *f = *state;
        TestPlan plan = shell(f, "tty; stty size; tty </dev/console");
        LaunchChildNews news;
        int got[2];
        size_t n;
        TestRun run;
        WITH_STEPS(plan, PROC, DEV,
                   { .kind = LAUNCH_STEP_DEVPTS,
                     .flags = NESTED,
                     .target = "/dev/pts",
                     .data = "mode=620,ptmxmode=666" },
                   { .kind = LAUNCH_STEP_CONSOLE, .flags = NESTED, .target = "/dev/console" });

        plan.flags = LAUNCH_PLAN_TERMINAL | LAUNCH_PLAN_SEND_DEVPTS;
        assert_int_equal(run_begin(&f->launcher, &plan, NULL, NULL, 0, &run), 0);
        assert_true(run_readable(&run, FIXTURE_DEADLINE_MSEC));
        assert_int_equal(fd_receive(run.socket, &news, sizeof(news), got, 2, &n), sizeof(news));
        assert_int_equal(news.news, LAUNCH_NEWS_DEVPTS);
        assert_int_equal(n, 2);
        run.master = got[1];
        run_end(&run);
        (void) close(got[0]);
        assert_success(&run);
        assert_string_equal(run.text, "/dev/pts/0\r\n24 80\r\n/dev/console\r\n");
}

/* A second process in a container whose first one waits for its input to end. */
static void test_a_container_is_entered(void **state) {
        Fixture *f = *state;
        TestPlan init = shell(f, "echo up; read x; exit 7");
        TestPlan plan = shell(
                f, "echo $$; hostname; grep ^0 /proc/self/cgroup; for n in mnt uts ipc net pid cgroup; do "
                   "[ \"$(busybox readlink /proc/self/ns/$n)\" = \"$(busybox readlink /proc/1/ns/$n)\" ] || "
                   "echo other $n;"
                   "done; pwd; id -u; ls /proc/self/fd; exit 42");
        const uint32_t role = LAUNCH_FD_STDIN;
        TestRun first, second;
        char line[4];
        int input[2];
        WITH_STEPS(init, PROC);

        assert_int_equal(pipe2(input, O_CLOEXEC), 0);
        init.flags = LAUNCH_PLAN_CGROUP_NAMESPACE;
        init.hostname = "entered";
        assert_int_equal(run_begin(&f->launcher, &init, &role, input, 1, &first), 0);
        (void) close(input[0]);
        assert_int_equal(read(first.output, line, 3), 3);

        plan.root = NULL;
        plan.flags = LAUNCH_PLAN_ENTER;
        plan.clone_flags = CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWNET | CLONE_NEWCGROUP;
        plan.enter = first.pidfd;
        plan.working_directory = "/data/sub";
        run_plan(&f->launcher, &plan, &second);
        assert_int_equal(second.report.error, 0);
        assert_string_equal(second.text, "2\nentered\n0::/\n/data/sub\n0\n0\n1\n2\n3\n");
        assert_int_equal(second.status.si_code, CLD_EXITED);
        assert_int_equal(second.status.si_status, 42);

        plan.arguments[2] = "kill -9 $$";
        run_plan(&f->launcher, &plan, &second);
        assert_int_equal(second.status.si_code, CLD_KILLED);
        assert_int_equal(second.status.si_status, SIGKILL);
        plan.working_directory = "/missing";
        assert_int_equal(run_begin(&f->launcher, &plan, NULL, NULL, 0, &second), ENOENT);
        assert_int_equal(second.report.stage, LAUNCH_STAGE_ROOTFS);
        assert_string_equal(second.report.detail, "working directory /missing");
        (void) close(second.socket);
        (void) close(second.output);

        (void) close(input[1]);
        run_end(&first);
        assert_int_equal(first.status.si_status, 7);
        /* Nobody is there any more. */
        plan.enter = open("/dev/null", O_RDONLY | O_CLOEXEC);
        assert_int_equal(run_begin(&f->launcher, &plan, NULL, NULL, 0, &second), EINVAL);
        (void) close(plan.enter);
        (void) close(second.socket);
        (void) close(second.output);
}

static void test_ephemeral_root_is_forgotten(void **state) {
        Fixture *f = *state;
        TestPlan plan = shell(
                f, "echo new >/etc/new; echo changed >/etc/passwd; cat /etc/passwd; stat -c %a /");
        TestRun run;

        plan.flags = LAUNCH_PLAN_EPHEMERAL;
        run_plan(&f->launcher, &plan, &run);
        assert_success(&run);
        assert_string_equal(run.text, "changed\n755\n");
        assert_int_equal(access(text("%s/etc/new", f->root), F_OK), -1);
}

/* With ".." at the top a lookup goes through what is mounted over the root; "/" alone does not show it. */
static void test_ephemeral_root_has_no_way_out(void **state) {
        Fixture *f = *state;
        TestPlan plan = shell(f, "echo escaped >/../tmp/berth-escape; stat -c %d:%i / /.. | uniq | wc -l;"
                                 "wc -l </proc/self/mountinfo");
        TestRun run;
        WITH_STEPS(plan, PROC);

        plan.root = "/";
        plan.flags = LAUNCH_PLAN_EPHEMERAL;
        plan.environment[0] = "PATH=/usr/bin:/bin";
        (void) unlink("/tmp/berth-escape");
        run_plan(&f->launcher, &plan, &run);
        assert_success(&run);
        assert_int_equal(access("/tmp/berth-escape", F_OK), -1);
        assert_string_equal(strtok(run.text, "\n"), "1");

        plan.root = f->root;
        plan.environment[0] = "PATH=/bin";
        run_plan(&f->launcher, &plan, &run);
        assert_success(&run);
        /* The root and /proc, nothing of the host. */
        assert_string_equal(run.text, "1\n2\n");
}

static void test_ephemeral_host(void **state) {
        Fixture *f = *state;
        TestPlan plan = shell(f,
                              "echo x >/etc/berth-test-file; cat /etc/berth-test-file; ls -d /run/* /sys/*");
        TestRun run;
        WITH_STEPS(plan, PROC);

        plan.root = "/";
        plan.flags = LAUNCH_PLAN_EPHEMERAL;
        plan.environment[0] = "PATH=/usr/bin:/bin";
        run_plan(&f->launcher, &plan, &run);
        assert_int_equal(run.report.error, 0);
        assert_true(strncmp(run.text, "x\n", 2) == 0);
        assert_int_equal(access("/etc/berth-test-file", F_OK), -1);
}

/* In a mount namespace that ends with the process. */
static void ephemeral_with_submounts(void *userdata) {
        Fixture *f = userdata;
        TestPlan plan = shell(
                f, "cd /data && touch here deep/here && ls deep;"
                   "touch 'a b/here' 2>/dev/null || echo ro; ls /proc /run; cat /etc/secret >/tmp/copy;"
                   "wc -c </tmp/copy; echo no 2>/dev/null >/etc/secret || echo file ro");
        Launcher launcher;
        struct stat st;
        TestRun run;

        assert_int_equal(unshare(CLONE_NEWNS), 0);
        assert_int_equal(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
        assert_int_equal(mount("tmpfs", text("%s/data", f->root), "tmpfs", 0, NULL), 0);
        assert_int_equal(mkdir(text("%s/data/deep", f->root), 0755), 0);
        assert_int_equal(mkdir(text("%s/data/a b", f->root), 0755), 0);
        assert_int_equal(mount("tmpfs", text("%s/data/deep", f->root), "tmpfs", 0, NULL), 0);
        /* One that another covers. */
        assert_int_equal(mkdir(text("%s/data/deep/hidden", f->root), 0755), 0);
        assert_int_equal(mount("tmpfs", text("%s/data/deep", f->root), "tmpfs", 0, NULL), 0);
        assert_int_equal(mkdir(text("%s/data/deep/cover", f->root), 0755), 0);
        assert_int_equal(mount("tmpfs", text("%s/data/a b", f->root), "tmpfs", MS_NOSUID | MS_RDONLY, NULL),
                         0);
        assert_int_equal(mount("/etc/hostname", text("%s/etc/secret", f->root), NULL, MS_BIND, NULL), 0);
        assert_int_equal(mount("proc", text("%s/proc", f->root), "proc", 0, NULL), 0);
        assert_int_equal(mount("tmpfs", text("%s/run", f->root), "tmpfs", 0, NULL), 0);
        assert_int_equal(mkdir(text("%s/run/x", f->root), 0755), 0);

        launcher_start(&launcher);
        plan.flags = LAUNCH_PLAN_EPHEMERAL;
        run_plan(&launcher, &plan, &run);
        assert_int_equal(run.report.error, 0);
        assert_int_equal(stat("/etc/hostname", &st), 0);
        assert_string_equal(
                run.text, text("cover\nhere\nro\n/proc:\n\n/run:\n%lld\nfile ro\n", (long long) st.st_size));
        assert_int_equal(access(text("%s/data/here", f->root), F_OK), -1);
        assert_int_equal(access(text("%s/data/deep/here", f->root), F_OK), -1);
        assert_int_equal(launcher_stop(&launcher), 0);
}

static void test_ephemeral_covers_submounts(void **state) {
        Fixture *f = *state;

        assert_int_equal(mkdir(text("%s/run", f->root), 0755), 0);
        in_process(0, ephemeral_with_submounts, f);
}

/* Overlays of the tree on one another, two deep, as the kernel allows. */
static void ephemeral_too_deep(void *userdata) {
        Fixture *f = userdata;
        TestPlan plan = shell(f, "echo fine");
        Launcher launcher;
        TestRun run;

        assert_int_equal(unshare(CLONE_NEWNS), 0);
        assert_int_equal(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
        launcher_start(&launcher);
        plan.flags = LAUNCH_PLAN_EPHEMERAL;
        for (int depth = 1; depth <= 2; depth++) {
                const char *layers = text("%s/tmp", f->root);

                assert_int_equal(mount("tmpfs", layers, "tmpfs", 0, NULL), 0);
                assert_int_equal(mkdir(text("%s/u", layers), 0755), 0);
                assert_int_equal(mkdir(text("%s/w", layers), 0755), 0);
                assert_int_equal(
                        mount("overlay", f->root, "overlay", 0,
                              text("lowerdir=%s,upperdir=%s/u,workdir=%s/w", f->root, layers, layers)),
                        0);
                /* The launcher's mounts are those of its own process. */
                assert_int_equal(launcher_stop(&launcher), 0);
                launcher_start(&launcher);
                run_plan(&launcher, &plan, &run);
                if (depth == 1)
                        assert_success(&run);
                else
                        assert_failure(&run, LAUNCH_STAGE_ROOTFS, EOPNOTSUPP,
                                       text("overlays stacked too deep over %s", f->root));
        }
        assert_int_equal(launcher_stop(&launcher), 0);
}

static void test_overlays_too_deep_are_refused_by_name(void **state) {
        in_process(0, ephemeral_too_deep, *state);
}

static void test_strange_characters_in_the_root(void **state) {
        Fixture *f = *state;
        const char *strange = text("%s-a:b,c\\d e\"", f->root);
        TestPlan plan = shell(f, "echo fine; touch /new");
        TestRun run;

        assert_int_equal(rename(f->root, strange), 0);
        plan.root = strange;
        plan.flags = LAUNCH_PLAN_EPHEMERAL;
        run_plan(&f->launcher, &plan, &run);
        assert_int_equal(rename(strange, f->root), 0);
        assert_success(&run);
        assert_string_equal(run.text, "fine\n");
        assert_int_equal(access(text("%s/new", f->root), F_OK), -1);
}

static void test_read_only_root(void **state) {
        static const uint64_t flags[] = { LAUNCH_PLAN_READ_ONLY,
                                          LAUNCH_PLAN_READ_ONLY | LAUNCH_PLAN_EPHEMERAL };
        Fixture *f = *state;
        TestRun run;

        for (size_t i = 0; i < ELEMENTSOF(flags); i++) {
                TestPlan plan = shell(f, "touch /x 2>/dev/null || echo ro; touch /new/place/x && echo rw;"
                                         "[ -e /file/made ] && echo there");
                WITH_STEPS(plan, { .kind = LAUNCH_STEP_FILESYSTEM, .target = "/dev", .type = "tmpfs" },
                           DEV_NULL,
                           { .kind = LAUNCH_STEP_FILESYSTEM, .target = "/new/place", .type = "tmpfs" },
                           { .kind = LAUNCH_STEP_BIND, .target = "/file/made", .source = "/etc/passwd" });

                plan.flags = flags[i];
                run_plan(&f->launcher, &plan, &run);
                assert_success(&run);
                assert_string_equal(run.text, "ro\nrw\nthere\n");
        }
        assert_int_equal(unlink(text("%s/file/made", f->root)), 0);
}

static void test_bind_mounts(void **state) {
        Fixture *f = *state;
        char other[] = "/tmp/berth-bind-XXXXXX";
        TestPlan plan = shell(
                f, "cat /a/b/hello /file; touch /a/b/x 2>/dev/null || echo ro; touch /w/new && echo rw;"
                   "[ -e /none ] || echo none");
        TestRun run;
        FILE *file;

        assert_non_null(mkdtemp(other));
        file = fopen(text("%s/hello", other), "we");
        assert_non_null(file);
        (void) fputs("hello\n", file);
        (void) fclose(file);
        const char *hello = text("%s/hello", other);
        WITH_STEPS(plan, DEV, DEV_NULL,
                   { .kind = LAUNCH_STEP_BIND,
                     .target = "/a/b",
                     .source = other,
                     .attr_set = MOUNT_ATTR_RDONLY },
                   { .kind = LAUNCH_STEP_BIND, .target = "/file", .source = hello },
                   { .kind = LAUNCH_STEP_BIND, .target = "/w", .source = other },
                   { .kind = LAUNCH_STEP_BIND,
                     .flags = LAUNCH_STEP_FLAG_OPTIONAL,
                     .target = "/none",
                     .source = "/nonexistent/source" },
                   { .kind = LAUNCH_STEP_BIND,
                     .flags = LAUNCH_STEP_FLAG_IF_TARGET,
                     .target = "/none",
                     .source = other });

        run_plan(&f->launcher, &plan, &run);
        assert_success(&run);
        assert_string_equal(run.text, "hello\nhello\nro\nrw\nnone\n");
        remove_tree(other);
}

/* Binds of a tree with a mount below it, that the host mounts something in while the child waits. */
static void binds_with_submounts(void *userdata) {
        Fixture *f = userdata;
        TestPlan plan = shell(
                f, "awk '$5 ~ \"^/[abc]\" {sub(/:.*/, \"\", $7); print $5, substr($6, 1, 2), $7}' "
                   "/proc/self/mountinfo | sort");
        Launcher launcher;
        TestRun run;

        assert_int_equal(unshare(CLONE_NEWNS), 0);
        assert_int_equal(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
        assert_int_equal(mount("tmpfs", text("%s/data", f->root), "tmpfs", 0, NULL), 0);
        assert_int_equal(mount(NULL, text("%s/data", f->root), NULL, MS_SHARED, NULL), 0);
        assert_int_equal(mkdir(text("%s/data/m", f->root), 0755), 0);
        assert_int_equal(mkdir(text("%s/data/n", f->root), 0755), 0);
        assert_int_equal(mount("tmpfs", text("%s/data/m", f->root), "tmpfs", 0, NULL), 0);
        const char *source = text("%s/data", f->root);
        WITH_STEPS(plan, PROC,
                   { .kind = LAUNCH_STEP_BIND,
                     .flags = LAUNCH_STEP_FLAG_RECURSIVE,
                     .target = "/a",
                     .source = source },
                   { .kind = LAUNCH_STEP_BIND,
                     .flags = LAUNCH_STEP_FLAG_RECURSIVE | LAUNCH_STEP_FLAG_RECURSIVE_PROPAGATION,
                     .target = "/b",
                     .source = source,
                     .propagation = MS_SLAVE },
                   { .kind = LAUNCH_STEP_BIND,
                     .flags = LAUNCH_STEP_FLAG_RECURSIVE,
                     .target = "/c",
                     .source = source,
                     .attr_set_recursive = MOUNT_ATTR_RDONLY,
                     .attr_clear = MOUNT_ATTR_RDONLY });

        launcher_start(&launcher);
        plan.flags = LAUNCH_PLAN_CGROUP_GATE;
        assert_int_equal(run_begin(&launcher, &plan, NULL, NULL, 0, &run), 0);
        while (__atomic_load_n(&run.shared->stage, __ATOMIC_ACQUIRE) != LAUNCH_STAGE_SCOPE)
                assert_false(run_readable(&run, 1));
        assert_int_equal(mount("tmpfs", text("%s/data/n", f->root), "tmpfs", 0, NULL), 0);
        run_open_gate(&run, LAUNCH_GATE_CGROUP);
        run_end(&run);
        assert_int_equal(run.report.error, 0);
        assert_string_equal(run.text, "/a rw -\n/a/m rw -\n"
                                      "/b rw master\n/b/m rw master\n/b/n rw master\n"
                                      "/c rw -\n/c/m ro -\n");
        assert_int_equal(launcher_stop(&launcher), 0);
}

static void test_binds_follow_the_host_only_as_slaves(void **state) {
        in_process(0, binds_with_submounts, *state);
}

static void test_missing_bind_source_is_named(void **state) {
        Fixture *f = *state;
        TestPlan plan = shell(f, "echo never");
        TestRun run;
        WITH_STEPS(plan, { .kind = LAUNCH_STEP_BIND, .target = "/a", .source = "/nonexistent/source" });

        run_plan(&f->launcher, &plan, &run);
        assert_failure(&run, LAUNCH_STAGE_MOUNT, ENOENT, "/nonexistent/source");
}

static void test_links_do_not_lead_out_of_the_root(void **state) {
        Fixture *f = *state;
        char outside[] = "/tmp/berth-outside-XXXXXX";
        TestPlan plan = shell(f, "echo started; [ -d /evil/new/dir ] && echo inside");
        TestRun run;
        WITH_STEPS(plan, { .kind = LAUNCH_STEP_FILESYSTEM, .target = "/evil/new/dir", .type = "tmpfs" },
                   { .kind = LAUNCH_STEP_FILESYSTEM, .target = "/up/new", .type = "tmpfs" },
                   { .kind = LAUNCH_STEP_SYMLINK, .target = "/evil/link", .source = "x" },
                   { .kind = LAUNCH_STEP_DEVICE,
                     .target = "/evil/null",
                     .major = 1,
                     .minor = 3,
                     .mode = 0666 });

        assert_non_null(mkdtemp(outside));
        assert_int_equal(symlink(outside, text("%s/evil", f->root)), 0);
        assert_int_equal(symlink("../../../../../../../..", text("%s/up", f->root)), 0);
        run_plan(&f->launcher, &plan, &run);
        assert_success(&run);
        assert_string_equal(run.text, "started\ninside\n");
        assert_int_equal(rmdir(outside), 0); /* still empty */
        assert_int_equal(access(text("%s%s/new/dir", f->root, outside), F_OK), 0);
        assert_int_equal(access(text("%s/new", f->root), F_OK), 0);
        assert_int_equal(access("/new", F_OK), -1);
}

static void test_proc_on_a_link_is_refused(void **state) {
        Fixture *f = *state;
        TestPlan plan = shell(f, "echo never");
        TestRun run;
        WITH_STEPS(plan, PROC);

        assert_int_equal(rmdir(text("%s/proc", f->root)), 0);
        assert_int_equal(symlink("/tmp", text("%s/proc", f->root)), 0);
        run_plan(&f->launcher, &plan, &run);
        assert_failure(&run, LAUNCH_STAGE_MOUNT, ELOOP, "/proc");
}

static void test_descriptors_and_signals(void **state) {
        Fixture *f = *state;
        TestPlan plan = shell(
                f, "ls /proc/self/fd; grep -E '^Sig(Blk|Ign|Pnd)' /proc/self/status; umask; cat; pwd");
        int leaked[2];
        TestRun run;
        WITH_STEPS(plan, PROC);

        assert_int_equal(pipe(leaked), 0); /* not CLOEXEC, but none of the launcher's */
        run_plan(&f->launcher, &plan, &run);
        (void) close(leaked[0]);
        (void) close(leaked[1]);
        assert_success(&run);
        assert_string_equal(run.text, "0\n1\n2\n3\nSigPnd:\t0000000000000000\nSigBlk:\t0000000000000000\n"
                                      "SigIgn:\t0000000000000000\n0022\n/\n");
}

/* Kills everything but execve. */
static const struct sock_filter only_execve[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_execve, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
};

/* Answers everything but execve with an error, exit too. */
static const struct sock_filter deny_exit[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_execve, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
};

static void test_failing_execve_is_told_through_any_filter(void **state) {
        static const uint64_t flags[] = { 0, LAUNCH_PLAN_NO_NEW_PRIVILEGES };
        static const uint32_t users[] = { 0, 1000 };
        Fixture *f = *state;
        TestRun run;

        for (size_t i = 0; i < 8; i++) {
                TestPlan plan = shell(f, NULL);

                plan.arguments[0] = "/missing";
                plan.arguments[1] = NULL;
                plan.filter = i & 4 ? deny_exit : only_execve;
                plan.n_filter = ELEMENTSOF(only_execve);
                plan.flags = flags[i & 1];
                plan.uid = users[i >> 1 & 1];
                plan.capabilities = 1;
                run_plan(&f->launcher, &plan, &run);
                assert_failure(&run, LAUNCH_STAGE_EXEC, ENOENT, "/missing");
                assert_true(run.status.si_code == CLD_KILLED || run.status.si_code == CLD_DUMPED);
        }
}

static void test_capabilities_of_the_program(void **state) {
        static const struct sock_filter allow[] = { BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW) };
        Fixture *f = *state;
        TestRun run;

        for (size_t i = 0; i < 4; i++) {
                TestPlan plan = shell(f, "grep -E '^(Cap|Seccomp:|NoNew)' /proc/self/status");
                bool root = i & 1;
                WITH_STEPS(plan, PROC);

                plan.capabilities = 0xa80425fb;
                plan.uid = root ? 0 : 1000;
                plan.filter = allow;
                plan.n_filter = 1;
                plan.flags = i & 2 ? LAUNCH_PLAN_NO_NEW_PRIVILEGES : 0;
                run_plan(&f->launcher, &plan, &run);
                assert_success(&run);
                assert_string_equal(run.text,
                                    text("CapInh:\t%s\nCapPrm:\t%s\nCapEff:\t%s\nCapBnd:\t%s\n"
                                         "CapAmb:\t%s\nNoNewPrivs:\t%d\nSeccomp:\t2\n",
                                         "0000000000000000", root ? "00000000a80425fb" : "0000000000000000",
                                         root ? "00000000a80425fb" : "0000000000000000", "00000000a80425fb",
                                         "0000000000000000", i & 2 ? 1 : 0));
        }
}

static void test_gate_holds_the_program(void **state) {
        Fixture *f = *state;
        TestPlan plan = shell(f, "echo started");
        TestRun run;

        plan.flags = LAUNCH_PLAN_CGROUP_GATE | LAUNCH_PLAN_CGROUP_NAMESPACE;
        assert_int_equal(run_begin(&f->launcher, &plan, NULL, NULL, 0, &run), 0);
        assert_false(run_readable(&run, 200));
        assert_int_equal(run.shared->stage, LAUNCH_STAGE_SCOPE);
        run_open_gate(&run, LAUNCH_GATE_CGROUP);
        run_end(&run);
        assert_success(&run);
        assert_string_equal(run.text, "started\n");
}

static void test_child_at_a_gate_ends_with_its_socket(void **state) {
        Fixture *f = *state;
        TestPlan plan = shell(f, "echo never");
        TestRun run;
        int replacement[2];

        plan.flags = LAUNCH_PLAN_CGROUP_GATE;
        assert_int_equal(run_begin(&f->launcher, &plan, NULL, NULL, 0, &run), 0);
        (void) close(run.socket);
        assert_int_equal(pipe2(replacement, O_CLOEXEC), 0); /* at its end at once */
        (void) close(replacement[1]);
        run.socket = replacement[0];
        assert_int_equal(read(run.output, run.text, 1), 0);
        assert_int_equal(waitid((idtype_t) P_PIDFD, (id_t) run.pidfd, &run.status, WEXITED), 0);
        assert_int_equal(run.status.si_code, CLD_EXITED);
        assert_int_equal(run.status.si_status, 1);
        (void) close(run.output);
        (void) close(run.pidfd);
        (void) close(run.socket);
}

/* Starts a program that holds the descriptor as its standard input, and is killed. */
_Noreturn static void launch_and_die(Fixture *f, int held) {
        TestPlan plan = shell(f, "echo started; sleep 1000; echo awake");
        static const uint32_t role = LAUNCH_FD_STDIN;
        Launcher launcher;
        TestRun run;

        launcher_start(&launcher);
        plan.flags = LAUNCH_PLAN_DIE_WITH_PARENT;
        plan.uid = 1000; /* a change of ids undoes the setting: it has to be made again */
        if (run_begin(&launcher, &plan, &role, &held, 1, &run) == 0 && read(run.output, run.text, 8) == 8)
                (void) raise(SIGKILL);
        _exit(1);
}

static void test_program_dies_with_its_parent(void **state) {
        struct pollfd p = { .events = POLLIN };
        int pair[2], status;
        pid_t pid;
        char byte;

        assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0)
                launch_and_die(*state, pair[1]);
        (void) close(pair[1]);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status));
        p.fd = pair[0];
        assert_true(poll(&p, 1, FIXTURE_DEADLINE_MSEC) > 0);
        assert_int_equal(read(pair[0], &byte, 1), 0);
        (void) close(pair[0]);
}

static void test_clone_into_a_cgroup(void **state) {
        Fixture *f = *state;
        TestPlan plan = shell(f, "grep ^0: /proc/self/cgroup");
        char line[4096], path[2048] = "";
        TestRun run;
        FILE *mounts;
        WITH_STEPS(plan, PROC);

        mounts = fopen("/proc/self/mounts", "re");
        assert_non_null(mounts);
        while (fgets(line, sizeof(line), mounts))
                if (strstr(line, " cgroup2 "))
                        (void) sscanf(line, "%*s %2000s", path);
        (void) fclose(mounts);
        if (!path[0])
                skip();
        (void) snprintf(path + strlen(path), 32, "/berth-test-%d", (int) getpid());
        assert_int_equal(mkdir(path, 0755), 0);
        plan.cgroup = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        assert_true(plan.cgroup >= 0);
        run_plan(&f->launcher, &plan, &run);
        assert_success(&run);
        assert_string_equal(run.text, text("0::/berth-test-%d\n", (int) getpid()));
        plan.flags = LAUNCH_PLAN_CGROUP_NAMESPACE;
        run_plan(&f->launcher, &plan, &run);
        assert_success(&run);
        assert_string_equal(run.text, "0::/\n");
        (void) close(plan.cgroup);
        assert_int_equal(rmdir(path), 0);
}

static void test_only_namespace_flags_are_cloned(void **state) {
        static const uint64_t flags[] = { CLONE_NEWNS | CLONE_VM, CLONE_NEWNS | CLONE_FILES,
                                          CLONE_NEWNS | 17, CLONE_NEWNS | 1ULL << 40 };
        Fixture *f = *state;
        TestRun run;

        for (size_t i = 0; i < ELEMENTSOF(flags); i++) {
                TestPlan plan = shell(f, "echo never");

                plan.clone_flags = flags[i];
                assert_int_equal(run_begin(&f->launcher, &plan, NULL, NULL, 0, &run), EINVAL);
                (void) close(run.socket);
                (void) close(run.output);
        }
}

static void test_host_mounts_are_safe_without_a_mount_namespace(void **state) {
        Fixture *f = *state;
        TestPlan plan = shell(f, "echo never");
        TestRun run;

        plan.clone_flags = CLONE_NEWUTS;
        run_plan(&f->launcher, &plan, &run);
        assert_failure(&run, LAUNCH_STAGE_ROOTFS, EINVAL, "plan");
}

static void test_users(void **state) {
        static const struct {
                const char *user;
                uint32_t uid, gid, has_gid;
                const char *groups[3], *expected;
        } all[] = {
                { .user = "app", .expected = "1000 1001 1001 29 44 /home/app app app /bin/false\n" },
                { .user = "app",
                  .gid = 7,
                  .has_gid = 1,
                  .expected = "1000 7 7 /home/app app app /bin/false\n" },
                { .uid = 1000, .expected = "1000 0 0 /home/app app app /bin/false\n" },
                { .uid = 77, .gid = 78, .has_gid = 1, .expected = "77 78 78 /\n" },
                { .uid = 77, .groups = { "video", "5" }, .expected = "77 0 0 5 44 /\n" },
        };
        Fixture *f = *state;
        TestRun run;

        for (size_t i = 0; i < ELEMENTSOF(all); i++) {
                TestPlan plan = shell(f, "echo $(id -u) $(id -g) $(id -G) $HOME $USER $LOGNAME $SHELL");

                plan.user = all[i].user;
                plan.uid = all[i].uid;
                plan.gid = all[i].gid;
                plan.has_gid = all[i].has_gid;
                memcpy(plan.groups, all[i].groups, sizeof(all[i].groups));
                plan.environment[1] = "SHELLS=1"; /* a beginning in common is no SHELL */
                run_plan(&f->launcher, &plan, &run);
                assert_success(&run);
                assert_string_equal(run.text, all[i].expected);
        }
}

static void test_unknown_users_are_named(void **state) {
        Fixture *f = *state;
        TestPlan plan = shell(f, "echo never");
        TestRun run;

        plan.user = "nosuch";
        run_plan(&f->launcher, &plan, &run);
        assert_failure(&run, LAUNCH_STAGE_CREDENTIALS, ESRCH, "nosuch");
        plan.user = NULL;
        plan.uid = (uint32_t) -1;
        run_plan(&f->launcher, &plan, &run);
        assert_failure(&run, LAUNCH_STAGE_CREDENTIALS, EINVAL, "user id");
        plan.uid = 0;
        plan.groups[0] = "nogroup";
        run_plan(&f->launcher, &plan, &run);
        assert_failure(&run, LAUNCH_STAGE_CREDENTIALS, ESRCH, "nogroup");
}

static void test_passwd_must_be_a_file(void **state) {
        Fixture *f = *state;
        TestPlan plan = shell(f, "echo never");
        TestRun run;

        plan.user = "app";
        assert_int_equal(unlink(text("%s/etc/passwd", f->root)), 0);
        assert_int_equal(mkfifo(text("%s/etc/passwd", f->root), 0600), 0);
        run_plan(&f->launcher, &plan, &run);
        assert_failure(&run, LAUNCH_STAGE_CREDENTIALS, EINVAL, "app");
}

static void test_working_directory(void **state) {
        Fixture *f = *state;
        TestPlan plan = shell(f, "pwd");
        TestRun run;
        WITH_STEPS(plan, PROC);

        plan.working_directory = "/data/sub";
        run_plan(&f->launcher, &plan, &run);
        assert_success(&run);
        assert_string_equal(run.text, "/data/sub\n");
        plan.working_directory = "/missing";
        run_plan(&f->launcher, &plan, &run);
        assert_failure(&run, LAUNCH_STAGE_ROOTFS, ENOENT, "working directory /missing");
        for (int i = 3; i < 12; i++) {
                plan.working_directory = text("/proc/self/fd/%d", i);
                run_plan(&f->launcher, &plan, &run);
                assert_true(run.report.error == ELOOP || run.report.error == ENOENT);
                assert_int_equal(run.n, 0);
        }
        assert_int_equal(chmod(text("%s/data", f->root), 0700), 0);
        plan.uid = 1000;
        plan.working_directory = "/data/sub";
        run_plan(&f->launcher, &plan, &run);
        assert_failure(&run, LAUNCH_STAGE_ROOTFS, EACCES, "working directory /data/sub");
}

static void test_limits_hostname_and_network(void **state) {
        static const LaunchLimit limits[] = { { .resource = RLIMIT_NOFILE, .soft = 100, .hard = 200 } };
        static const LaunchLimit bad[] = { { .resource = RLIMIT_NPROC, .soft = 2, .hard = 1 } };
        Fixture *f = *state;
        TestPlan plan = shell(f, "ulimit -n; ulimit -H -n; hostname; cat /proc/self/oom_score_adj;"
                                 "ifconfig lo | grep -c UP");
        TestRun run;
        WITH_STEPS(plan, PROC);

        plan.limits = limits;
        plan.n_limits = 1;
        plan.hostname = "box";
        plan.flags = LAUNCH_PLAN_OOM_SCORE_ADJUST | LAUNCH_PLAN_NETWORK_LOOPBACK |
                     LAUNCH_PLAN_DIE_WITH_PARENT;
        plan.oom_score_adjust = 123;
        run_plan(&f->launcher, &plan, &run);
        assert_success(&run);
        assert_string_equal(run.text, "100\n200\nbox\n123\n1\n");
        plan.limits = bad;
        run_plan(&f->launcher, &plan, &run);
        assert_failure(&run, LAUNCH_STAGE_LIMITS, EINVAL, "RLIMIT_NPROC");
}

static void test_late_cgroup_mount(void **state) {
        Fixture *f = *state;
        TestPlan plan = shell(f, "cat /sys/fs/cgroup/cgroup.procs | wc -l; grep -c ' /sys/fs/cgroup ro' "
                                 "/proc/self/mountinfo; cat /etc/secret /data/sub/file && echo masked");
        TestRun run;
        WITH_STEPS(plan, PROC,
                   { .kind = LAUNCH_STEP_FILESYSTEM,
                     .target = "/sys",
                     .type = "sysfs",
                     .attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID },
                   { .kind = LAUNCH_STEP_FILESYSTEM,
                     .flags = LAUNCH_STEP_FLAG_NESTED | LAUNCH_STEP_FLAG_LATE,
                     .target = "/sys/fs/cgroup",
                     .type = "cgroup2",
                     .attr_set = MOUNT_ATTR_RDONLY },
                   { .kind = LAUNCH_STEP_MASK, .target = "/etc/secret" }, DEV, DEV_NULL,
                   { .kind = LAUNCH_STEP_MASK, .flags = LAUNCH_STEP_FLAG_LATE, .target = "/data/sub/file" });

        plan.flags = LAUNCH_PLAN_CGROUP_NAMESPACE;
        run_plan(&f->launcher, &plan, &run);
        assert_success(&run);
        assert_true(atoi(run.text) >= 1);
        assert_non_null(strstr(run.text, "\nmasked\n"));
        assert_non_null(strstr(run.text, "\n1\n"));
}

static void test_nothing_of_the_host_is_left(void **state) {
        static const uint64_t flags[] = { 0, LAUNCH_PLAN_READ_ONLY, LAUNCH_PLAN_EPHEMERAL,
                                          LAUNCH_PLAN_EPHEMERAL | LAUNCH_PLAN_READ_ONLY };
        Fixture *f = *state;
        TestRun run;

        for (size_t i = 0; i < ELEMENTSOF(flags); i++) {
                /* What is mounted on top of the root is where /.. leads. */
                TestPlan plan = shell(f, "cat /proc/self/mountinfo | wc -l; ls /..; cat /../proc/1/comm");
                WITH_STEPS(plan, PROC);

                plan.flags = flags[i];
                run_plan(&f->launcher, &plan, &run);
                assert_success(&run);
                assert_string_equal(run.text, "2\nbin\ndata\ndev\netc\nhome\nproc\nsys\ntmp\ncat\n");
        }
}

static void test_many_launches_leak_no_descriptor(void **state) {
        Fixture *f = *state;
        TestPlan plan = shell(f, "exit 3");
        struct stat st;
        TestRun run;

        for (int i = 0; i < 50; i++) {
                run_plan(&f->launcher, &plan, &run);
                assert_int_equal(run.status.si_status, 3);
        }
        /* Since Linux 6.2 the size is the number: 0 to 3, and those of the last request when it isn't
         * done yet. */
        assert_int_equal(stat(text("/proc/%d/fd", (int) f->launcher.pid), &st), 0);
        assert_in_range(st.st_size, 0, 6);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(test_exit_status_arrives),
                TEST(test_death_by_signal_arrives),
                TEST(test_execve_errors_are_reported),
                TEST(test_devices_masks_links_and_read_only_paths),
                TEST(test_terminal_of_berthd),
                TEST(test_terminal_made_by_the_child),
                TEST(test_a_container_is_entered),
                TEST(test_ephemeral_root_is_forgotten),
                TEST(test_ephemeral_root_has_no_way_out),
                TEST(test_ephemeral_host),
                TEST(test_ephemeral_covers_submounts),
                TEST(test_overlays_too_deep_are_refused_by_name),
                TEST(test_strange_characters_in_the_root),
                TEST(test_read_only_root),
                TEST(test_bind_mounts),
                TEST(test_binds_follow_the_host_only_as_slaves),
                TEST(test_missing_bind_source_is_named),
                TEST(test_links_do_not_lead_out_of_the_root),
                TEST(test_proc_on_a_link_is_refused),
                TEST(test_descriptors_and_signals),
                TEST(test_failing_execve_is_told_through_any_filter),
                TEST(test_capabilities_of_the_program),
                TEST(test_gate_holds_the_program),
                TEST(test_child_at_a_gate_ends_with_its_socket),
                TEST(test_program_dies_with_its_parent),
                TEST(test_clone_into_a_cgroup),
                TEST(test_only_namespace_flags_are_cloned),
                TEST(test_host_mounts_are_safe_without_a_mount_namespace),
                TEST(test_users),
                TEST(test_unknown_users_are_named),
                TEST(test_passwd_must_be_a_file),
                TEST(test_working_directory),
                TEST(test_limits_hostname_and_network),
                TEST(test_late_cgroup_mount),
                TEST(test_nothing_of_the_host_is_left),
                TEST(test_many_launches_leak_no_descriptor),
        };

        if (geteuid() != 0) {
                (void) fprintf(stderr, "this test needs root\n");
                return 77;
        }
        return cmocka_run_group_tests(tests, NULL, NULL);
}
