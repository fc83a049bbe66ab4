/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/system/direct.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

#include <cmocka.h>

#include "util/fd.h"

#define CALL_TIMEOUT_USEC (25U * 1000000U)

static const char *const hierarchies[] = { "/sys/fs/cgroup", "/sys/fs/cgroup/unified" };

static const char *path_from(const char *variable) {
        const char *path = getenv(variable);

        if (!path)
                fail_msg("$%s is not set: run by meson test", variable);
        return path;
}

const char *path_of_berthctl(void) {
        return path_from("BERTHCTL");
}

/* ---- time ----------------------------------------------------------------------------------------------------- */

uint64_t now_usec(void) {
        struct timespec ts;

        (void) clock_gettime(CLOCK_MONOTONIC, &ts);
        return (uint64_t) ts.tv_sec * 1000000U + (uint64_t) ts.tv_nsec / 1000U;
}

static int msec_until(uint64_t end) {
        uint64_t now = now_usec();

        return now >= end ? 0 : (int) ((end - now + 999) / 1000);
}

/* One round of the connection, at most until `end`. False when that has come. */
static bool bus_round(sd_bus *bus, uint64_t end) {
        uint64_t now;
        int r;

        r = sd_bus_process(bus, NULL);
        if (r > 0)
                return true;
        if (r < 0)
                fail_msg("the connection failed: %s", strerror(-r));
        now = now_usec();
        if (now >= end)
                return false;
        r = sd_bus_wait(bus, end - now);
        assert_true(r >= 0 || r == -EINTR);
        return true;
}

bool bus_until(sd_bus *bus, const bool *done, unsigned deadline_ms) {
        uint64_t end = now_usec() + deadline_ms * 1000ULL;

        while (!*done)
                if (!bus_round(bus, end))
                        return *done;
        return true;
}

void bus_until_usec(sd_bus *bus, uint64_t usec) {
        while (now_usec() < usec && bus_round(bus, usec))
                ;
}

/* ---- reading -------------------------------------------------------------------------------------------------- */

char *read_to_end(int fd, unsigned deadline_ms) {
        uint64_t end = now_usec() + deadline_ms * 1000ULL;
        size_t size = 0, room = 4096;
        char *data;

        data = malloc(room);
        assert_non_null(data);
        for (;;) {
                struct pollfd p = { .fd = fd, .events = POLLIN };
                ssize_t n;

                data[size] = 0;
                if (poll(&p, 1, msec_until(end)) <= 0)
                        fail_msg("no end of the output in time, only: %s", data);
                if (size + 1 >= room) {
                        room *= 2;
                        data = realloc(data, room);
                        assert_non_null(data);
                }
                n = read(fd, data + size, room - size - 1);
                if (n < 0 && (errno == EINTR || errno == EAGAIN))
                        continue;
                /* EIO is the end of a terminal's output. */
                if (n < 0)
                        assert_int_equal(errno, EIO);
                if (n <= 0)
                        return data;
                size += (size_t) n;
        }
}

int run_command(const char *const *argv, char **ret_output) {
        siginfo_t si = {};
        int pair[2];
        pid_t pid;

        assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
                int null;

                null = open("/dev/null", O_RDWR | O_CLOEXEC);
                if (null < 0 || dup2(null, 0) < 0 || dup2(pair[1], 1) < 0 || dup2(pair[1], 2) < 0)
                        _exit(125);
                (void) execvp(argv[0], (char **) argv);
                _exit(127);
        }
        (void) close(pair[1]);
        *ret_output = read_to_end(pair[0], 3 * DIRECT_MS);
        (void) close(pair[0]);
        assert_int_equal(waitid(P_PID, (id_t) pid, &si, WEXITED), 0);
        return si.si_code == CLD_EXITED ? si.si_status : 128 + si.si_status;
}

/* ---- counting ------------------------------------------------------------------------------------------------- */

static size_t count_entries(const char *path, unsigned char type) {
        struct dirent *entry;
        size_t n = 0;
        DIR *directory;

        directory = opendir(path);
        assert_non_null(directory);
        while ((entry = readdir(directory)))
                if (entry->d_name[0] != '.' && (type == DT_UNKNOWN || entry->d_type == type))
                        n++;
        (void) closedir(directory);
        return n;
}

size_t direct_count_fds(const Direct *d) {
        return count_entries(text("/proc/%d/fd", d->pid), DT_UNKNOWN);
}

/* Files of /proc have no size, so they are read as they come. */
static size_t read_proc(const char *path, char *data, size_t size) {
        _cleanup_fd_ int fd = -EBADF;
        size_t n = 0;
        ssize_t k;

        fd = open(path, O_RDONLY | O_CLOEXEC);
        assert_true(fd >= 0);
        while (n < size - 1 && (k = read(fd, data + n, size - 1 - n)) > 0)
                n += (size_t) k;
        data[n] = 0;
        return n;
}

size_t direct_count_children(const Direct *d) {
        char data[65536];
        size_t n = 0;

        (void) read_proc(text("/proc/%d/task/%d/children", d->pid, d->pid), data, sizeof(data));
        for (const char *p = data; (p = strchr(p, ' ')); p++)
                n++;
        return n;
}

uint64_t direct_cpu_ticks(const Direct *d) {
        unsigned long user, system;
        char data[4096];
        const char *p;

        (void) read_proc(text("/proc/%d/stat", d->pid), data, sizeof(data));
        p = strrchr(data, ')');
        assert_non_null(p);
        assert_int_equal(
                sscanf(p + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system), 2);
        return user + system;
}

size_t direct_count_cgroups(const Direct *d) {
        return *d->cgroup && access(d->cgroup, F_OK) == 0 ? count_entries(d->cgroup, DT_DIR) : 0;
}

size_t direct_count_mounts(void) {
        static char data[1 << 20];
        size_t n = 0;

        (void) read_proc("/proc/self/mountinfo", data, sizeof(data));
        for (const char *p = data; (p = strchr(p, '\n')); p++)
                n++;
        return n;
}

void direct_expect_fds(const Direct *d, size_t n) {
        uint64_t end = now_usec() + DIRECT_MS * 1000ULL;

        /* Those of a call are closed after its reply, and those of a connection after its end. */
        while (direct_count_fds(d) > n) {
                struct pollfd p = { .fd = d->pidfd, .events = POLLIN };

                if (now_usec() > end) {
                        char *list;

                        (void) run_command(
                                (const char *[]) { "ls", "-l", text("/proc/%d/fd", d->pid), NULL }, &list);
                        fail_msg("%zu descriptors, and not %zu: %s", direct_count_fds(d), n, list);
                }
                assert_int_equal(poll(&p, 1, 1), 0);
        }
}

void direct_expect_idle(const Direct *d) {
        uint64_t end = now_usec() + DIRECT_MS * 1000ULL;

        /* Another process' end is not ours to be told of, so this looks again. */
        while (direct_count_children(d) > 1 || direct_count_cgroups(d) > 0) {
                struct pollfd p = { .fd = d->pidfd, .events = POLLIN };

                if (now_usec() > end)
                        fail_msg("%zu children and %zu cgroups stay", direct_count_children(d),
                                 direct_count_cgroups(d));
                assert_int_equal(poll(&p, 1, 10), 0);
        }
}

/* ---- connections ---------------------------------------------------------------------------------------------- */

static sd_bus *bus_on_fd(int fd) {
        sd_bus *bus;

        assert_int_equal(sd_bus_new(&bus), 0);
        assert_true(sd_bus_set_fd(bus, fd, fd) >= 0);
        assert_true(sd_bus_negotiate_fds(bus, true) >= 0);
        assert_true(sd_bus_start(bus) >= 0);
        assert_true(sd_bus_set_method_call_timeout(bus, CALL_TIMEOUT_USEC) >= 0);
        /* Waits for the handshake: the other end has it among its descriptors from now on. */
        assert_true(sd_bus_flush(bus) >= 0);
        return bus;
}

/* -EBADF while nobody listens. */
static int connect_socket(const Direct *d) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        int fd;

        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_true(fd >= 0);
        (void) snprintf(address.sun_path, sizeof(address.sun_path), "%s", d->socket);
        if (connect(fd, (struct sockaddr *) &address, sizeof(address)) < 0)
                return fd_close(fd);
        return fd;
}

sd_bus *direct_connect_own(const Direct *d) {
        int fd;

        fd = connect_socket(d);
        assert_true(fd >= 0);
        return bus_on_fd(fd);
}

sd_bus *direct_connect(Direct *d) {
        sd_bus *bus;

        assert_true(d->n_clients < DIRECT_CLIENTS_MAX);
        bus = direct_connect_own(d);
        d->clients[d->n_clients++] = bus;
        return bus;
}

int direct_connect_raw(const Direct *d) {
        static const char hello[] = "\0AUTH EXTERNAL\r\nDATA\r\nNEGOTIATE_UNIX_FD\r\nBEGIN\r\n";
        char answer[512];
        size_t n = 0;
        int fd;

        fd = connect_socket(d);
        assert_true(fd >= 0);
        assert_int_equal(write(fd, hello, sizeof(hello) - 1), sizeof(hello) - 1);
        do {
                struct pollfd p = { .fd = fd, .events = POLLIN };
                ssize_t k;

                assert_int_equal(poll(&p, 1, DIRECT_MS), 1);
                k = read(fd, answer + n, sizeof(answer) - 1 - n);
                assert_true(k > 0);
                n += (size_t) k;
                answer[n] = 0;
        } while (!strstr(answer, "AGREE_UNIX_FD\r\n"));
        return fd;
}

/* ---- the service ---------------------------------------------------------------------------------------------- */

static void copy(const char *from, const char *to) {
        _cleanup_free_ char *output = NULL;

        assert_int_equal(run_command((const char *[]) { "cp", from, to, NULL }, &output), 0);
}

/* An ordinary user may not get to where the build is. */
static const char *copy_berthd(Direct *d) {
        (void) snprintf(d->directory, sizeof(d->directory), "/tmp/berth-direct-XXXXXX");
        assert_non_null(mkdtemp(d->directory));
        assert_int_equal(chmod(d->directory, 0755), 0);
        assert_int_equal(mkdir(text("%s/launch", d->directory), 0755), 0);
        copy(path_from("BERTHD"), text("%s/berthd", d->directory));
        copy(path_from("BERTH_LAUNCH"), text("%s/launch/berth-launch", d->directory));
        return text("%s/berthd", d->directory);
}

static void start_berthd(Direct *d, uid_t uid, const char *argument, int inherit) {
        const char *path = uid == 0 ? path_from("BERTHD") : copy_berthd(d);

        d->pid = fork();
        assert_true(d->pid >= 0);
        if (d->pid == 0) {
                if (inherit >= 0 && fcntl(inherit, F_SETFD, 0) < 0)
                        _exit(125);
                if (uid != 0 && (setresgid(uid, uid, uid) < 0 || setresuid(uid, uid, uid) < 0))
                        _exit(125);
                (void) execl(path, path, argument, NULL);
                _exit(127);
        }
        d->pidfd = pidfd_open(d->pid, 0);
        assert_true(d->pidfd >= 0);
}

static void note_cgroup(Direct *d) {
        char data[4096], *own, *end;

        (void) read_proc(text("/proc/%d/cgroup", d->pid), data, sizeof(data));
        own = strstr(data, "0::");
        if (!own)
                return;
        own += 3;
        end = strchr(own, '\n');
        if (end)
                *end = 0;
        for (size_t i = 0; i < ELEMENTSOF(hierarchies); i++) {
                const char *root = text("%s%s", hierarchies[i], strcmp(own, "/") == 0 ? "" : own);

                if (access(text("%s/cgroup.procs", root), F_OK) == 0)
                        (void) snprintf(d->cgroup, sizeof(d->cgroup), "%s/berth-%d", root, d->pid);
        }
}

static Direct *direct_new(void **state) {
        const char *payload = path_from("BERTH_PAYLOAD");
        Direct *d;

        d = calloc(1, sizeof(*d));
        assert_non_null(d);
        d->pidfd = -EBADF;
        *state = d;
        d->n_mounts = direct_count_mounts();
        busybox_root(d->root);
        for (size_t i = 0; i < 5; i++) {
                static const char *const more[] = { "env", "head", "printf", "readlink", "od" };

                assert_int_equal(symlink("busybox", text("%s/bin/%s", d->root, more[i])), 0);
        }
        copy(payload, text("%s/bin/payload", d->root));
        return d;
}

static void setup_pair(void **state, uid_t uid) {
        Direct *d = direct_new(state);
        int pair[2];

        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
        start_berthd(d, uid, text("--connection-fd=%d", pair[1]), pair[1]);
        (void) close(pair[1]);
        note_cgroup(d);
        d->bus = bus_on_fd(pair[0]);
}

int direct_setup(void **state) {
        setup_pair(state, 0);
        return 0;
}

int direct_setup_user(void **state) {
        setup_pair(state, DIRECT_USER);
        return 0;
}

int direct_setup_listen(void **state) {
        uint64_t end = now_usec() + DIRECT_MS * 1000ULL;
        Direct *d = direct_new(state);
        int fd;

        (void) snprintf(d->directory, sizeof(d->directory), "/tmp/berth-direct-XXXXXX");
        assert_non_null(mkdtemp(d->directory));
        (void) snprintf(d->socket, sizeof(d->socket), "%s/bus", d->directory);
        start_berthd(d, 0, text("--listen=%s", d->socket), -1);
        note_cgroup(d);
        while ((fd = connect_socket(d)) < 0) {
                struct pollfd p = { .fd = d->pidfd, .events = POLLIN };

                assert_true(now_usec() < end);
                assert_int_equal(poll(&p, 1, 1), 0);
        }
        d->bus = d->clients[d->n_clients++] = bus_on_fd(fd);
        return 0;
}

/* The only children that can be left are orphans: ours after direct_group_setup(). */
static void expect_no_orphans(void) {
        siginfo_t si = {};
        int r;

        r = waitid(P_ALL, 0, &si, WEXITED | WNOHANG | WNOWAIT);
        if (r == 0)
                fail_msg("process %d is left behind", si.si_pid);
        assert_int_equal(errno, ECHILD);
}

static void end_berthd(Direct *d) {
        struct pollfd p = { .fd = d->pidfd, .events = POLLIN };
        siginfo_t si;

        if (*d->socket)
                (void) pidfd_send_signal(d->pidfd, SIGTERM, NULL, 0);
        if (poll(&p, 1, DIRECT_MS) <= 0) {
                (void) pidfd_send_signal(d->pidfd, SIGKILL, NULL, 0);
                (void) waitid(P_PIDFD, (id_t) d->pidfd, &si, WEXITED);
                fail_msg("berthd does not end");
        }
        assert_int_equal(waitid(P_PIDFD, (id_t) d->pidfd, &si, WEXITED), 0);
        if (si.si_code != CLD_EXITED || si.si_status != 0)
                fail_msg("berthd ended with %s %d", si.si_code == CLD_EXITED ? "status" : "signal",
                         si.si_status);
        expect_no_orphans();
        if (*d->cgroup)
                assert_int_not_equal(access(d->cgroup, F_OK), 0);
        assert_int_equal(direct_count_mounts(), d->n_mounts);
        if (*d->socket)
                assert_int_not_equal(access(d->socket, F_OK), 0);
}

int direct_teardown(void **state) {
        Direct *d = *state;

        if (*d->socket)
                for (size_t i = 0; i < d->n_clients; i++)
                        (void) sd_bus_close_unref(d->clients[i]);
        else
                (void) sd_bus_close_unref(d->bus);
        end_berthd(d);
        (void) close(d->pidfd);
        remove_tree(d->root);
        if (*d->directory)
                remove_tree(d->directory);
        free(d);
        return 0;
}

int direct_group_setup(void **state) {
        if (geteuid() != 0) {
                (void) fprintf(stderr, "these tests need root\n");
                return -1;
        }
        if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0 || unshare(CLONE_NEWNS) < 0 ||
            mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
            /* Shared again, as systemd makes it: a mount that a launcher does not hide shows up. */
            mount(NULL, "/", NULL, MS_REC | MS_SHARED, NULL) < 0)
                return -1;
        (void) signal(SIGPIPE, SIG_IGN);
        return 0;
}
