/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/bus/fixture.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <setjmp.h>

#include <cmocka.h>

#include "interfaces/names.h"
#include "tests/system/launch-fixture.h"
#include "util/cleanup.h"

#define NOT_RUN 77

void text_append(char **text, const char *format, ...) {
        char *added, *all;
        va_list ap;

        va_start(ap, format);
        assert_true(vasprintf(&added, format, ap) >= 0);
        va_end(ap);
        assert_true(asprintf(&all, "%s%s", *text ?: "", added) >= 0);
        free(added);
        free(*text);
        *text = all;
}

/* ---- the loop ------------------------------------------------------------------------------------------------ */

uint64_t fixture_deadline(Fixture *f) {
        uint64_t now;

        assert_true(sd_event_now(f->event, CLOCK_MONOTONIC, &now) >= 0);
        return now + FIXTURE_DEADLINE_USEC;
}

void fixture_turn(Fixture *f, uint64_t deadline, const char *condition, const char *file, int line) {
        /* Long enough to cost nothing, short enough for conditions that come with no event. */
        const uint64_t turn_usec = 10000;
        uint64_t now;

        assert_true(sd_event_run(f->event, turn_usec) >= 0);
        assert_true(sd_event_now(f->event, CLOCK_MONOTONIC, &now) >= 0);
        if (now < deadline)
                return;
        print_error("not in time: %s\nberthd said: %s\nsystemd was asked: %s\n", condition,
                    f->service.text ?: "", f->systemd && f->systemd->log ? f->systemd->log : "");
        _assert_true(0, condition, file, line);
}

bool readable(int fd) {
        struct pollfd p = { .fd = fd, .events = POLLIN };

        return poll(&p, 1, 0) > 0;
}

void make_pipe(int *ret_read, int *ret_write) {
        int pair[2];

        assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
        *ret_read = pair[0];
        *ret_write = pair[1];
}

/* ---- the bus ------------------------------------------------------------------------------------------------- */

static void write_bus_configuration(Fixture *f, const char *path) {
        FILE *file;

        file = fopen(path, "we");
        assert_non_null(file);
        /* It lets everybody do everything: who may do what is for berthd to decide here. */
        assert_true(fprintf(file,
                            "<!DOCTYPE busconfig PUBLIC \"-//freedesktop//DTD D-BUS Bus Configuration "
                            "1.0//EN\"\n"
                            " \"http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd\">\n"
                            "<busconfig><listen>unix:path=%s/bus</listen>\n"
                            "<policy context=\"default\"><allow user=\"*\"/><allow own=\"*\"/>"
                            "<allow send_destination=\"*\"/><allow "
                            "receive_sender=\"*\"/></policy></busconfig>\n",
                            f->directory) > 0);
        assert_int_equal(fclose(file), 0);
}

static int listening_socket(const char *path, int type) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        int fd;

        assert_true(strlen(path) < sizeof(address.sun_path));
        strcpy(address.sun_path, path);
        (void) unlink(path);
        fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        assert_true(fd >= 0);
        assert_int_equal(bind(fd, (const struct sockaddr *) &address, sizeof(address)), 0);
        assert_int_equal(chmod(path, 0666), 0);
        if (type == SOCK_STREAM)
                assert_int_equal(listen(fd, SOMAXCONN), 0);
        return fd;
}

static int on_journal(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        char buffer[8192];

        while (recv(fd, buffer, sizeof(buffer), MSG_DONTWAIT) > 0)
                ;
        return 0;
}

static void bus_start(Fixture *f) {
        const char *configuration = text("%s/bus.conf", f->directory), *kind = getenv("BERTH_TEST_BUS");
        _cleanup_fd_ int fd = -EBADF;

        write_bus_configuration(f, configuration);
        text_append(&f->address, "unix:path=%s/bus", f->directory);
        assert_int_equal(setenv("DBUS_SYSTEM_BUS_ADDRESS", f->address, 1), 0);
        if (!kind || strcmp(kind, "dbus-daemon") == 0) {
                const char *option = text("--config-file=%s", configuration);

                program_start(
                        f, &f->bus,
                        (const char *[]) { "dbus-daemon", option, "--nofork", "--print-address=1", NULL });
                fixture_until(f, f->bus.text && strchr(f->bus.text, '\n'));
                return;
        }
        assert_string_equal(kind, "dbus-broker");
        fd = listening_socket(text("%s/bus", f->directory), SOCK_STREAM);
        program_start_listening(f, &f->bus, fd,
                                (const char *[]) { "dbus-broker-launch", "--scope", "system",
                                                   "--config-file", configuration, NULL });
}

/* ---- signals of the service ---------------------------------------------------------------------------------- */

/* Arguments of basic types, up to the first that is none. */
static void append_arguments(char **text_of, sd_bus_message *m) {
        const char *s;
        char type;
        int i;

        while (sd_bus_message_peek_type(m, &type, NULL) > 0)
                if (type == 's' || type == 'o') {
                        assert_true(sd_bus_message_read_basic(m, type, &s) > 0);
                        text_append(text_of, " %s", s);
                } else if (type == 'i' || type == 'u') {
                        assert_true(sd_bus_message_read_basic(m, type, &i) > 0);
                        text_append(text_of, " %d", i);
                } else
                        return;
}

static int on_signal(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Fixture *f = userdata;

        text_append(&f->signals, "%s %s", sd_bus_message_get_member(m),
                    strrchr(sd_bus_message_get_path(m), '/') + 1);
        if (sd_bus_message_is_signal(m, NULL, "Started"))
                text_append(&f->signals, " PID"); /* no test knows it beforehand */
        else
                append_arguments(&f->signals, m);
        text_append(&f->signals, "\n");
        return 0;
}

static int on_notified(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        union {
                char space[CMSG_SPACE(sizeof(int))];
                struct cmsghdr align;
        } control;
        char buffer[4096];
        struct iovec iov = { .iov_base = buffer, .iov_len = sizeof(buffer) - 1 };
        struct msghdr message = {
                .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)
        };
        Fixture *f = userdata;
        struct cmsghdr *c;
        ssize_t n;
        int got;

        n = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        if (n < 0)
                return 0;
        buffer[n] = 0;
        text_append(&f->notified, "%s\n", buffer);
        c = CMSG_FIRSTHDR(&message);
        if (c && c->cmsg_type == SCM_RIGHTS) {
                memcpy(&got, CMSG_DATA(c), sizeof(got));
                if (f->hold_barrier && strcmp(buffer, "BARRIER=1") == 0)
                        f->barrier = got;
                else
                        (void) close(got);
        }
        return 0;
}

/* ---- the service --------------------------------------------------------------------------------------------- */

bool service_said(const Fixture *f, const char *part) {
        return f->service.text && strstr(f->service.text, part);
}

bool service_is_named(const Fixture *f) {
        return f->notified && strstr(f->notified, "READY=1");
}

void service_launch(Fixture *f, const char *argument) {
        const char *program = getenv("BERTHD");

        assert_non_null(program);
        free(f->notified);
        f->notified = NULL;
        program_done(&f->service);
        assert_int_equal(setenv("NOTIFY_SOCKET", text("%s/notify", f->directory), 1), 0);
        program_start(f, &f->service, (const char *[]) { program, argument, NULL });
        assert_int_equal(unsetenv("NOTIFY_SOCKET"), 0);
}

void service_start(Fixture *f, const char *argument) {
        service_launch(f, argument);
        fixture_until(f, service_is_named(f) || f->service.ended);
        assert_false(f->service.ended);
}

void service_stop(Fixture *f) {
        assert_int_equal(kill(f->service.pid, SIGTERM), 0);
        fixture_until(f, f->service.ended);
        if (f->service.status.si_code != CLD_EXITED || f->service.status.si_status != 0)
                fail_msg("berthd ended with %d/%d: %s", f->service.status.si_code,
                         f->service.status.si_status, f->service.text ?: "");
}

sd_bus *client_connect(Fixture *f) {
        sd_bus *bus;

        assert_true(sd_bus_new(&bus) >= 0);
        assert_true(sd_bus_set_address(bus, f->address) >= 0);
        assert_true(sd_bus_set_bus_client(bus, 1) >= 0);
        assert_true(sd_bus_negotiate_fds(bus, 1) >= 0);
        assert_true(sd_bus_start(bus) >= 0);
        assert_true(sd_bus_attach_event(bus, f->event, SD_EVENT_PRIORITY_NORMAL) >= 0);
        return bus;
}

sd_bus *client_close(sd_bus *bus) {
        (void) sd_bus_detach_event(bus);
        return sd_bus_close_unref(bus);
}

/* ---- setting up, and what must be left ------------------------------------------------------------------------ */

char *records(void) {
        struct dirent *entry;
        char *names = NULL;
        DIR *directory;

        directory = opendir(RECORDS);
        while (directory && (entry = readdir(directory)))
                if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
                        text_append(&names, "%s%s", names ? " " : "", entry->d_name);
        if (directory)
                (void) closedir(directory);
        return names ?: strdup("");
}

static unsigned count_mounts(void) {
        FILE *file = fopen("/proc/self/mountinfo", "re");
        unsigned n = 0;
        int c;

        assert_non_null(file);
        while ((c = fgetc(file)) != EOF)
                n += c == '\n';
        (void) fclose(file);
        return n;
}

/* This process is a reaper: what berthd left, or what was left to it, has become its child. */
static bool has_children(pid_t but) {
        _cleanup_free_ char *line = NULL;
        size_t size = 0;
        siginfo_t si;
        FILE *file;
        bool has = false;

        file = fopen(text("/proc/self/task/%d/children", getpid()), "re");
        assert_non_null(file);
        while (getdelim(&line, &size, ' ', file) > 0) {
                pid_t pid = (pid_t) strtol(line, NULL, 10);

                if (pid <= 0 || pid == but)
                        continue;
                si = (siginfo_t) {};
                if (waitid(P_PID, (id_t) pid, &si, WEXITED | WNOHANG) < 0 || si.si_pid == 0)
                        has = true;
        }
        (void) fclose(file);
        return has;
}

int fixture_setup_bare(void **state) {
        Fixture *f;

        f = calloc(1, sizeof(*f));
        assert_non_null(f);
        *state = f;
        f->barrier = -EBADF;
        assert_true(sd_event_new(&f->event) >= 0);
        (void) snprintf(f->directory, sizeof(f->directory), "/run/test-XXXXXX");
        assert_non_null(mkdtemp(f->directory));
        assert_int_equal(chmod(f->directory, 0755), 0);
        busybox_root(f->root);

        (void) mkdir("/run/systemd", 0755);
        (void) mkdir("/run/systemd/journal", 0755);
        f->journal = listening_socket("/run/systemd/journal/socket", SOCK_DGRAM);
        assert_true(sd_event_add_io(f->event, NULL, f->journal, EPOLLIN, on_journal, f) >= 0);
        bus_start(f);
        f->systemd = fake_systemd_new(f->event, f->address, 252);

        f->notify_socket = listening_socket(text("%s/notify", f->directory), SOCK_DGRAM);
        assert_true(sd_event_add_io(f->event, NULL, f->notify_socket, EPOLLIN, on_notified, f) >= 0);

        f->client = client_connect(f);
        assert_true(sd_bus_match_signal(f->client, NULL, BERTH_BUS_NAME, NULL, NULL, NULL, on_signal, f) >=
                    0);
        return 0;
}

int fixture_setup(void **state) {
        (void) fixture_setup_bare(state);
        service_start(*state, NULL);
        return 0;
}

int fixture_teardown(void **state) {
        Fixture *f = *state;
        char *left;

        if (f->service.pid > 0 && !f->service.ended)
                service_stop(f);
        program_done(&f->service);
        left = records();
        assert_string_equal(left, "");
        free(left);

        fixture_until(f, !has_children(f->bus.pid));
        (void) client_close(f->client);
        f->systemd = fake_systemd_free(f->systemd);
        if (!f->bus.ended)
                (void) kill(f->bus.pid, SIGTERM);
        fixture_until(f, f->bus.ended && !has_children(0)); /* dbus-broker is a child of its launcher's */
        program_done(&f->bus);

        (void) fd_close(f->barrier);
        (void) sd_event_unref(f->event);
        (void) close(f->journal);
        (void) close(f->notify_socket);
        remove_tree(f->directory);
        remove_tree(f->root);
        free(f->address);
        free(f->notified);
        free(f->signals);
        free(f);
        return 0;
}

int fixture_main(int (*run)(void)) {
        unsigned mounts;
        sigset_t set;
        int r;

        if (geteuid() != 0) {
                print_message("needs root\n");
                return NOT_RUN;
        }
        /* The machine's own /run stays as it is. Shared, as systemd makes it: a mount that a launch doesn't hide is
         * counted below. */
        if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
            mount("tmpfs", "/run", "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755") < 0 ||
            mount(NULL, "/", NULL, MS_REC | MS_SHARED, NULL) < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1) < 0) {
                print_error("cannot set up: %s\n", strerror(errno));
                return EXIT_FAILURE;
        }
        (void) sigemptyset(&set);
        (void) sigaddset(&set, SIGCHLD);
        (void) sigprocmask(SIG_BLOCK, &set, NULL);
        (void) signal(SIGPIPE, SIG_IGN);
        mounts = count_mounts();
        r = run();
        if (count_mounts() != mounts) {
                print_error("%u mounts have become %u\n", mounts, count_mounts());
                return EXIT_FAILURE;
        }
        return r;
}
