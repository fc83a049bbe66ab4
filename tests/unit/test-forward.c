/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Forwarding between all kinds of input and output and a pty, with real programs at its other side. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <termios.h>

#include <cmocka.h>

#include "client/forward.h"
#include "util/cleanup.h"

#define DEADLINE_USEC (20U * 1000000U)

typedef struct Fixture {
        sd_event *event;
        Forward *forward;
        sd_event_source *program, *reader, *deadline;
        int slave;
        int watch;            /* a duplicate of the master, to see what state it is in */
        int end;              /* a ForwardEnd, -1 before */
        char *got;            /* read from the output by on_readable() */
        size_t n_got, wanted; /* the loop ends when so much has come; 0: it doesn't */
        size_t piece;
        bool keep_slave;
} Fixture;

static int open_pty(int *ret_slave, bool raw) {
        struct termios settings;
        int master, slave;

        master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
        assert_true(master >= 0);
        assert_int_equal(unlockpt(master), 0);
        slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
        assert_true(slave >= 0);
        if (raw) {
                assert_int_equal(tcgetattr(slave, &settings), 0);
                cfmakeraw(&settings);
                assert_int_equal(tcsetattr(slave, TCSANOW, &settings), 0);
        }
        *ret_slave = slave;
        return master;
}

static void on_end(ForwardEnd end, void *userdata) {
        Fixture *f = userdata;

        assert_int_equal(f->end, -1);
        f->end = (int) end;
        f->forward = forward_free(f->forward);
        assert_true(sd_event_exit(f->event, 0) >= 0);
}

static int on_program(sd_event_source *source, const siginfo_t *info, void *userdata) {
        Fixture *f = userdata;

        if (!f->keep_slave)
                f->slave = fd_close(f->slave);
        if (f->forward)
                forward_finish(f->forward);
        return 0;
}

static int on_readable(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        Fixture *f = userdata;
        ssize_t n;

        f->got = realloc(f->got, f->n_got + f->piece);
        assert_non_null(f->got);
        n = read(fd, f->got + f->n_got, f->piece);
        assert_true(n >= 0);
        f->n_got += (size_t) n;
        if (f->wanted > 0 && f->n_got >= f->wanted)
                assert_true(sd_event_exit(f->event, 0) >= 0);
        return 0;
}

static int on_deadline(sd_event_source *source, uint64_t usec, void *userdata) {
        return sd_event_exit(sd_event_source_get_event(source), -ETIMEDOUT);
}

/* The program in the container: a shell command on the slave. */
static void fixture_begin(Fixture *f, const char *command, int input, int output, bool raw) {
        sigset_t child;
        int master, pidfd;
        pid_t pid;

        f->end = -1;
        f->piece = 4096;
        assert_true(sd_event_new(&f->event) >= 0);
        (void) sigemptyset(&child);
        (void) sigaddset(&child, SIGCHLD);
        (void) sigprocmask(SIG_BLOCK, &child, NULL);
        (void) signal(SIGPIPE, SIG_IGN);
        master = open_pty(&f->slave, raw);
        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
                (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
                (void) setsid();
                (void) dup2(f->slave, 0);
                (void) dup2(f->slave, 1);
                (void) execl("/bin/sh", "sh", "-c", command, NULL);
                _exit(127);
        }
        pidfd = pidfd_open(pid, 0);
        assert_true(pidfd >= 0);
        assert_true(sd_event_add_child_pidfd(f->event, &f->program, pidfd, WEXITED, on_program, f) >= 0);
        assert_true(sd_event_source_set_child_pidfd_own(f->program, true) >= 0);
        assert_true(sd_event_source_set_child_process_own(f->program, true) >= 0);
        f->watch = fd_dup(master);
        assert_true(f->watch >= 0);
        assert_true(sd_event_add_time_relative(f->event, &f->deadline, CLOCK_MONOTONIC, DEADLINE_USEC, 0,
                                               on_deadline, NULL) >= 0);
        assert_true(forward_new(f->event, input, output, master, on_end, f, &f->forward) >= 0);
}

static void fixture_end(Fixture *f) {
        (void) forward_free(f->forward);
        sd_event_source_disable_unref(f->reader);
        sd_event_source_disable_unref(f->deadline);
        sd_event_source_disable_unref(f->program);
        (void) sd_event_unref(f->event);
        (void) fd_close(f->slave);
        (void) fd_close(f->watch);
        free(f->got);
}

static int memory_file(const char *text, size_t n) {
        int fd = memfd_create("test", MFD_CLOEXEC);

        assert_true(fd >= 0);
        assert_int_equal(fd_write_all(fd, text, n), 0);
        assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
        return fd;
}

static void test_every_byte_passes_both_ways(void **state) {
        _cleanup_fd_ int in = -EBADF, keep = -EBADF, out = -EBADF, read_end = -EBADF;
        unsigned char bytes[256];
        Fixture f = {};
        int pair[2];

        for (unsigned i = 0; i < sizeof(bytes); i++)
                bytes[i] = (unsigned char) i;
        assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
        in = pair[0];
        keep = pair[1];
        assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
        read_end = pair[0];
        out = pair[1];
        fixture_begin(&f, "exec cat", in, out, true);
        f.wanted = sizeof(bytes);
        assert_true(sd_event_add_io(f.event, &f.reader, read_end, EPOLLIN, on_readable, &f) >= 0);
        assert_int_equal(write(keep, bytes, sizeof(bytes)), sizeof(bytes));
        assert_int_equal(sd_event_loop(f.event), 0);
        assert_int_equal(f.n_got, sizeof(bytes));
        assert_memory_equal(f.got, bytes, sizeof(bytes));
        /* The descriptions of the caller's are as they were. */
        assert_false(fcntl(in, F_GETFL) & O_NONBLOCK);
        assert_false(fcntl(out, F_GETFL) & O_NONBLOCK);
        fixture_end(&f);
}

static void test_a_slow_reader_loses_nothing(void **state) {
        _cleanup_fd_ int in = -EBADF, keep = -EBADF, out = -EBADF, read_end = -EBADF;
        const size_t lines = 200000;
        Fixture f = {};
        int pair[2];
        char *p;

        assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
        in = pair[0];
        keep = pair[1];
        assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
        read_end = pair[0];
        out = pair[1];
        fixture_begin(&f, "seq 100001 300000", in, out, true);
        f.piece = 1000;
        assert_true(sd_event_add_io(f.event, &f.reader, read_end, EPOLLIN, on_readable, &f) >= 0);
        assert_int_equal(sd_event_loop(f.event), 0);
        assert_int_equal(f.end, FORWARD_END_DRAINED);
        /* What the pipe still holds. */
        (void) close(TAKE_FD(out));
        for (size_t before = SIZE_MAX; before != f.n_got;) {
                before = f.n_got;
                f.wanted = 0;
                (void) on_readable(NULL, read_end, 0, &f);
        }
        assert_int_equal(f.n_got, lines * 7);
        p = f.got;
        for (size_t i = 0; i < lines; i++, p += 7)
                assert_int_equal(strtoul(p, NULL, 10), 100001 + i);
        fixture_end(&f);
}

static void test_end_of_a_file_is_end_of_file_there(void **state) {
        static const struct {
                const char *input, *output;
        } cases[] = { { "one\ntwo\n", "one\r\ntwo\r\nend\r\n" },
                      { "no newline", "no newlineend\r\n" },
                      { "", "end\r\n" } };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_fd_ int in = -EBADF, out = -EBADF;
                char buffer[100] = {};
                Fixture f = {};

                in = memory_file(cases[i].input, strlen(cases[i].input));
                out = memory_file("", 0);
                fixture_begin(&f, "stty -echo; cat; echo end", in, out, false);
                assert_int_equal(sd_event_loop(f.event), 0);
                assert_int_equal(f.end, FORWARD_END_DRAINED);
                assert_true(pread(out, buffer, sizeof(buffer) - 1, 0) >= 0);
                /* Echo may have come before stty: only the end is certain. */
                assert_true(strlen(buffer) >= strlen(cases[i].output));
                assert_string_equal(buffer + strlen(buffer) - strlen(cases[i].output), cases[i].output);
                fixture_end(&f);
        }
}

static void test_a_large_file_goes_in(void **state) {
        _cleanup_fd_ int in = -EBADF, out = -EBADF;
        const size_t size = 3000000;
        _cleanup_free_ char *data = calloc(1, size);
        char buffer[100] = {};
        Fixture f = {};

        assert_non_null(data);
        in = memory_file(data, size);
        out = memory_file("", 0);
        fixture_begin(&f, "head -c 3000000 | wc -c", in, out, true);
        assert_int_equal(sd_event_loop(f.event), 0);
        assert_int_equal(f.end, FORWARD_END_DRAINED);
        assert_true(pread(out, buffer, sizeof(buffer) - 1, 0) > 0);
        assert_string_equal(buffer, "3000000\n");
        fixture_end(&f);
}

static void test_a_background_job_does_not_hold_the_end(void **state) {
        _cleanup_fd_ int in = -EBADF, keep = -EBADF, out = -EBADF;
        char buffer[100] = {};
        Fixture f = { .keep_slave = true };
        int pair[2];

        assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
        in = pair[0];
        keep = pair[1];
        out = memory_file("", 0);
        fixture_begin(&f, "echo output", in, out, false);
        assert_int_equal(sd_event_loop(f.event), 0);
        assert_int_equal(f.end, FORWARD_END_DRAINED);
        assert_true(pread(out, buffer, sizeof(buffer) - 1, 0) > 0);
        assert_string_equal(buffer, "output\r\n");
        fixture_end(&f);
}

static void test_a_hang_up_from_inside_is_not_the_end(void **state) {
        _cleanup_fd_ int in = -EBADF, keep = -EBADF, out = -EBADF, read_end = -EBADF;
        Fixture f = {};
        struct pollfd hung_up;
        char path[100];
        int pair[2];

        assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
        in = pair[0];
        keep = pair[1];
        assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
        read_end = pair[0];
        out = pair[1];
        /* Everything that holds the slave lets go, and it is opened again by a path: EIO in between. */
        fixture_begin(&f, "read line; exec 0<&- 1>&- 2>&-; exec sleep 30", in, out, true);
        assert_int_equal(ttyname_r(f.slave, path, sizeof(path)), 0);
        f.slave = fd_close(f.slave);
        f.wanted = 5;
        assert_true(sd_event_add_io(f.event, &f.reader, read_end, EPOLLIN, on_readable, &f) >= 0);
        assert_int_equal(write(keep, "go\n", 3), 3);
        hung_up = (struct pollfd) { .fd = f.watch };
        while (poll(&hung_up, 1, 0) == 0)
                assert_true(sd_event_run(f.event, 10000) >= 0);
        assert_true(hung_up.revents & POLLHUP);
        while (sd_event_run(f.event, 0) > 0)
                ;
        assert_int_equal(f.end, -1);
        f.slave = open(path, O_RDWR | O_NOCTTY | O_CLOEXEC);
        assert_true(f.slave >= 0);
        assert_int_equal(write(f.slave, "again", 5), 5);
        assert_int_equal(sd_event_loop(f.event), 0);
        assert_int_equal(f.end, -1);
        assert_memory_equal(f.got, "again", 5);
        fixture_end(&f);
}

static void test_an_output_that_is_gone_ends_it(void **state) {
        _cleanup_fd_ int in = -EBADF, keep = -EBADF, out = -EBADF;
        Fixture f = {};
        int pair[2];

        assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
        in = pair[0];
        keep = pair[1];
        assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
        out = pair[1];
        (void) close(pair[0]);
        fixture_begin(&f, "echo output; exec sleep 30", in, out, false);
        assert_int_equal(sd_event_loop(f.event), 0);
        assert_int_equal(f.end, FORWARD_END_OUTPUT);
        fixture_end(&f);
}

static void test_an_input_terminal_that_is_gone_ends_it(void **state) {
        _cleanup_fd_ int in = -EBADF, out = -EBADF;
        Fixture f = {};
        int master;

        master = open_pty(&in, true);
        out = memory_file("", 0);
        fixture_begin(&f, "exec sleep 30", in, out, false);
        assert_int_equal(close(master), 0);
        assert_int_equal(sd_event_loop(f.event), 0);
        assert_int_equal(f.end, FORWARD_END_INPUT);
        fixture_end(&f);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_every_byte_passes_both_ways),
                cmocka_unit_test(test_a_slow_reader_loses_nothing),
                cmocka_unit_test(test_end_of_a_file_is_end_of_file_there),
                cmocka_unit_test(test_a_large_file_goes_in),
                cmocka_unit_test(test_a_background_job_does_not_hold_the_end),
                cmocka_unit_test(test_a_hang_up_from_inside_is_not_the_end),
                cmocka_unit_test(test_an_output_that_is_gone_ends_it),
                cmocka_unit_test(test_an_input_terminal_that_is_gone_ends_it),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
