/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/system/launch-fixture.h"

#include <fcntl.h>
#include <ftw.h>
#include <linux/filter.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "util/cleanup.h"
#include "util/fd.h"

#ifndef P_PIDFD
#        define P_PIDFD 3
#endif

const char *text(const char *format, ...) {
        static char buffers[16][4096];
        static unsigned next;
        char *buffer = buffers[next++ % 16];
        va_list arguments;

        va_start(arguments, format);
        (void) vsnprintf(buffer, sizeof(buffers[0]), format, arguments);
        va_end(arguments);
        return buffer;
}

void launcher_start(Launcher *launcher) {
        const char *path = getenv("BERTH_LAUNCH");
        int pair[2];

        assert_non_null(path);
        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
        launcher->pid = fork();
        assert_true(launcher->pid >= 0);
        if (launcher->pid == 0) {
                /* An ignored signal and a blocked one: neither may reach a program. */
                sigset_t set;

                (void) signal(SIGPIPE, SIG_IGN);
                (void) sigemptyset(&set);
                (void) sigaddset(&set, SIGUSR1);
                (void) sigprocmask(SIG_BLOCK, &set, NULL);
                if (pair[1] == LAUNCH_CONTROL_FD)
                        (void) fcntl(pair[1], F_SETFD, 0);
                else
                        (void) dup2(pair[1], LAUNCH_CONTROL_FD);
                (void) execl(path, path, NULL);
                _exit(127);
        }
        (void) close(pair[1]);
        launcher->control = pair[0];
}

int launcher_stop(Launcher *launcher) {
        int status;

        (void) close(launcher->control);
        assert_int_equal(waitpid(launcher->pid, &status, 0), launcher->pid);
        assert_true(WIFEXITED(status));
        return WEXITSTATUS(status);
}

typedef struct Buffer {
        char *data;
        size_t size;
} Buffer;

static uint32_t add(Buffer *b, const void *data, size_t size) {
        size_t offset = (b->size + 7) & ~(size_t) 7;

        b->data = realloc(b->data, offset + size);
        assert_non_null(b->data);
        memset(b->data + b->size, 0, offset - b->size);
        if (data)
                memcpy(b->data + offset, data, size);
        else
                memset(b->data + offset, 0, size);
        b->size = offset + size;
        return (uint32_t) offset;
}

static LaunchString add_string(Buffer *b, const char *s) {
        return s ? add(b, s, strlen(s) + 1) : 0;
}

static LaunchList add_list(Buffer *b, const char *const *list) {
        LaunchList l = {};

        while (list[l.n])
                l.n++;
        l.slots = l.n + 5;
        l.offset = add(b, NULL, l.slots * sizeof(uint64_t));
        for (uint32_t i = 0; i < l.n; i++) {
                uint64_t s = add_string(b, list[i]);

                memcpy(b->data + l.offset + i * sizeof(s), &s, sizeof(s));
        }
        return l;
}

static LaunchArray add_steps(Buffer *b, const TestStep *steps, size_t n) {
        LaunchArray a = { .offset = add(b, NULL, n * sizeof(LaunchStep)), .n = (uint32_t) n };

        for (size_t i = 0; i < n; i++) {
                const LaunchStep step = {
                        .kind = steps[i].kind,
                        .flags = steps[i].flags,
                        .target = add_string(b, steps[i].target),
                        .source = add_string(b, steps[i].source),
                        .type = add_string(b, steps[i].type),
                        .data = add_string(b, steps[i].data),
                        .attr_set = steps[i].attr_set,
                        .attr_clear = steps[i].attr_clear,
                        .attr_set_recursive = steps[i].attr_set_recursive,
                        .propagation = steps[i].propagation,
                        .major = steps[i].major,
                        .minor = steps[i].minor,
                        .mode = steps[i].mode,
                };

                memcpy(b->data + a.offset + i * sizeof(step), &step, sizeof(step));
        }
        return a;
}

static uint64_t clone_flags_of(const TestPlan *plan) {
        return plan->clone_flags ? plan->clone_flags
                                 : CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWNET;
}

int plan_memory(const TestPlan *plan) {
        uint64_t capabilities = plan->capabilities ? plan->capabilities : 0x1fffeffffffULL;
        Buffer b = {};
        LaunchPlan p;
        int fd;

        (void) add(&b, NULL, sizeof(p));
        p = (LaunchPlan) {
                .flags = plan->flags,
                .clone_flags = clone_flags_of(plan),
                .root = add_string(&b, plan->root),
                .hostname = add_string(&b, plan->hostname),
                .arguments = add_list(&b, plan->arguments),
                .environment = add_list(&b, plan->environment),
                .working_directory = add_string(&b, plan->working_directory),
                .user = add_string(&b, plan->user),
                .uid = plan->uid,
                .gid = plan->gid,
                .has_gid = plan->has_gid,
                .groups = add_list(&b, plan->groups),
                .steps = add_steps(&b, plan->steps, plan->n_steps),
                .limits = { add(&b, plan->limits, plan->n_limits * sizeof(LaunchLimit)),
                            (uint32_t) plan->n_limits },
                .filter = { add(&b, plan->filter, plan->n_filter * sizeof(struct sock_filter)),
                            (uint32_t) plan->n_filter },
                .oom_score_adjust = plan->oom_score_adjust,
                .rows = plan->rows,
                .columns = plan->columns,
                .cap_bounding = capabilities,
                .cap_effective = capabilities,
                .cap_permitted = capabilities,
        };
        p.size = b.size;
        memcpy(b.data, &p, sizeof(p));
        fd = fd_sealed_memory("plan", b.data, b.size);
        assert_true(fd >= 0);
        free(b.data);
        return fd;
}

int run_begin(Launcher *launcher, const TestPlan *plan, const uint32_t *roles, const int *fds, size_t n_fds,
              TestRun *run) {
        _cleanup_fd_ int memory = -EBADF, report = -EBADF, writer = -EBADF, child = -EBADF;
        LaunchRequest request = { .clone_flags = plan->enter ? 0 : clone_flags_of(plan), .id = 77 };
        int all[_LAUNCH_FD_MAX], pair[2], got[2], order[3], n_order = 0;
        LaunchHello hello = {};
        LaunchReply reply = {};
        size_t n_got;

        *run = (TestRun) { .socket = -EBADF, .pidfd = -EBADF, .output = -EBADF, .master = -EBADF };
        memory = plan_memory(plan);
        report = memfd_create("report", MFD_CLOEXEC);
        assert_true(report >= 0);
        assert_int_equal(ftruncate(report, LAUNCH_REPORT_SIZE), 0);
        run->shared = mmap(NULL, LAUNCH_REPORT_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, report, 0);
        assert_true(run->shared != MAP_FAILED);
        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
        run->socket = pair[0];
        child = pair[1];

        hello.role[hello.n_fds] = LAUNCH_FD_PLAN;
        all[hello.n_fds++] = memory;
        hello.role[hello.n_fds] = LAUNCH_FD_REPORT;
        all[hello.n_fds++] = report;
        if (!(plan->flags & LAUNCH_PLAN_TERMINAL)) {
                assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
                run->output = pair[0];
                writer = pair[1];
                hello.role[hello.n_fds] = LAUNCH_FD_STDOUT;
                all[hello.n_fds++] = writer;
                hello.role[hello.n_fds] = LAUNCH_FD_STDERR;
                all[hello.n_fds++] = writer;
        }
        if (plan->enter) {
                hello.role[hello.n_fds] = LAUNCH_FD_INIT;
                all[hello.n_fds++] = plan->enter;
        }
        for (size_t i = 0; i < n_fds; i++) {
                hello.role[hello.n_fds] = roles[i];
                all[hello.n_fds++] = fds[i];
        }
        assert_int_equal(fd_send(run->socket, &hello, sizeof(hello), all, hello.n_fds), 0);
        order[n_order++] = child;
        if (plan->cgroup) {
                request.flags |= LAUNCH_REQUEST_CGROUP;
                order[n_order++] = plan->cgroup;
        }
        if (plan->enter) {
                request.flags |= LAUNCH_REQUEST_ENTER;
                if (plan->flags & LAUNCH_PLAN_USER_NAMESPACE)
                        request.flags |= LAUNCH_REQUEST_ENTER_USER;
                order[n_order++] = plan->enter;
        }
        assert_int_equal(fd_send(launcher->control, &request, sizeof(request), order, (size_t) n_order), 0);
        assert_int_equal(fd_receive(launcher->control, &reply, sizeof(reply), got, 2, &n_got),
                         sizeof(reply));
        assert_int_equal(reply.id, 77);
        assert_int_equal(n_got, reply.error == 0);
        if (reply.error == 0 && reply.kind == LAUNCH_REPLY_STEP) {
                const volatile LaunchBirth *birth =
                        (const volatile LaunchBirth *) ((const volatile char *) run->shared +
                                                        LAUNCH_BIRTH_OFFSET);

                assert_true(plan->enter);
                assert_int_equal(waitid((idtype_t) P_PIDFD, (id_t) got[0], &(siginfo_t) {}, WEXITED), 0);
                (void) close(got[0]);
                if (birth->pid == 0) {
                        memcpy(&run->report, (const void *) run->shared, sizeof(run->report));
                        return run->report.error;
                }
                reply.pid = birth->pid;
                got[0] = pidfd_open(reply.pid, 0);
                assert_true(got[0] >= 0);
        }
        if (reply.error == 0)
                run->pidfd = got[0];
        if (reply.error == 0) {
                run->pid = reply.pid;
        }
        return reply.error;
}

void run_open_gate(TestRun *run, LaunchGate gate) {
        const LaunchGateOpen open = { .gate = gate };

        assert_int_equal(fd_send(run->socket, &open, sizeof(open), NULL, 0), 0);
}

bool run_readable(TestRun *run, int msec) {
        struct pollfd p = { .fd = run->socket, .events = POLLIN };

        return poll(&p, 1, msec) > 0;
}

static void read_output(TestRun *run, int fd) {
        struct pollfd p = { .fd = fd, .events = POLLIN };
        ssize_t n;

        do {
                assert_true(poll(&p, 1, FIXTURE_DEADLINE_MSEC) > 0);
                n = read(fd, run->text + run->n, sizeof(run->text) - 1 - run->n);
                if (n > 0)
                        run->n += (size_t) n;
        } while (n > 0);
        run->text[run->n] = 0;
}

void run_end(TestRun *run) {
        struct pollfd p = { .fd = run->pidfd, .events = POLLIN };
        char byte;

        assert_true(run_readable(run, FIXTURE_DEADLINE_MSEC));
        assert_true(recv(run->socket, &byte, 1, 0) <= 0);
        if (run->output >= 0)
                read_output(run, run->output);
        if (run->master >= 0)
                read_output(run, run->master);
        assert_true(poll(&p, 1, FIXTURE_DEADLINE_MSEC) > 0);
        assert_int_equal(waitid((idtype_t) P_PIDFD, (id_t) run->pidfd, &run->status, WEXITED), 0);
        memcpy(&run->report, (const void *) run->shared, sizeof(run->report));
        assert_int_equal(munmap((void *) (uintptr_t) run->shared, LAUNCH_REPORT_SIZE), 0);
        (void) fd_close(run->socket);
        (void) fd_close(run->pidfd);
        (void) fd_close(run->output);
        (void) fd_close(run->master);
}

void run_plan(Launcher *launcher, const TestPlan *plan, TestRun *run) {
        assert_int_equal(run_begin(launcher, plan, NULL, NULL, 0, run), 0);
        run_end(run);
}

static void copy_file(const char *from, const char *to) {
        _cleanup_fd_ int in = -EBADF, out = -EBADF;
        struct stat st;

        in = open(from, O_RDONLY | O_CLOEXEC);
        assert_true(in >= 0);
        assert_int_equal(fstat(in, &st), 0);
        out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
        assert_true(out >= 0);
        assert_int_equal(copy_file_range(in, NULL, out, NULL, (size_t) st.st_size, 0), st.st_size);
}

static void write_text(const char *path, const char *data) {
        _cleanup_fd_ int fd = -EBADF;

        fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
        assert_true(fd >= 0);
        assert_int_equal(fd_write_all(fd, data, strlen(data)), 0);
}

void busybox_root(char path[static 64]) {
        static const char *const directories[] = {
                "bin", "dev", "etc", "proc", "sys", "tmp", "data", "home"
        };
        static const char *const applets[] = { "awk",      "cat", "echo",     "sort",  "false", "grep",
                                               "hostname", "id",  "ifconfig", "kill",  "ls",    "mkdir",
                                               "mount",    "pwd", "sh",       "sleep", "stat",  "stty",
                                               "touch",    "tty", "true",     "umask", "wc" };

        (void) snprintf(path, 64, "/tmp/berth-launch-XXXXXX");
        assert_non_null(mkdtemp(path));
        assert_int_equal(chmod(path, 0755), 0);
        for (size_t i = 0; i < ELEMENTSOF(directories); i++)
                assert_int_equal(mkdir(text("%s/%s", path, directories[i]), 0755), 0);
        copy_file("/bin/busybox", text("%s/bin/busybox", path));
        for (size_t i = 0; i < ELEMENTSOF(applets); i++)
                assert_int_equal(symlink("busybox", text("%s/bin/%s", path, applets[i])), 0);
        write_text(text("%s/etc/passwd", path), "root:x:0:0:root:/root:/bin/sh\n"
                                                "app:x:1000:1001:An app:/home/app:/bin/false\n");
        write_text(text("%s/etc/group", path),
                   "root:x:0:\napp:x:1001:\naudio:x:29:app,other\nvideo:x:44:other,app\n");
        write_text(text("%s/etc/secret", path), "secret\n");
        assert_int_equal(mkdir(text("%s/data/sub", path), 0755), 0);
        write_text(text("%s/data/sub/file", path), "data\n");
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw) {
        return remove(path);
}

void remove_tree(const char *path) {
        assert_int_equal(nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT), 0);
}

typedef struct Apart {
        void (*f)(void *);
        void *userdata;
} Apart;

static void run_apart(void **state) {
        Apart *apart = *state;

        apart->f(apart->userdata);
}

void in_process(uid_t uid, void (*f)(void *), void *userdata) {
        Apart apart = { f, userdata };
        /* A group of its own: a failed assertion must not come back into the tests of the parent's. */
        const struct CMUnitTest tests[] = { cmocka_unit_test_prestate(run_apart, &apart) };
        pid_t pid;
        int status;

        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
                if (setresgid(uid, uid, uid) < 0 || setresuid(uid, uid, uid) < 0)
                        _exit(200);
                _exit(cmocka_run_group_tests(tests, NULL, NULL));
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
}
