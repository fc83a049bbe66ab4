/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The caller's terminal is as before, whatever ends the process that had it in raw mode. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "client/terminal.h"
#include "util/cleanup.h"

typedef struct Pty {
        int master, slave;
} Pty;

static Pty pty_open(void) {
        Pty pty;

        pty.master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
        assert_true(pty.master >= 0);
        assert_int_equal(unlockpt(pty.master), 0);
        pty.slave = ioctl(pty.master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
        assert_true(pty.slave >= 0);
        return pty;
}

static void pty_close(Pty *pty) {
        (void) close(pty->slave);
        (void) close(pty->master);
}

/* Compares what user space can see; the struct has padding. */
static bool same(const struct termios *a, const struct termios *b) {
        return a->c_iflag == b->c_iflag && a->c_oflag == b->c_oflag && a->c_cflag == b->c_cflag &&
               a->c_lflag == b->c_lflag && memcmp(a->c_cc, b->c_cc, sizeof(a->c_cc)) == 0;
}

static bool is_raw(int fd) {
        struct termios now;

        assert_int_equal(tcgetattr(fd, &now), 0);
        return !(now.c_lflag & (ICANON | ISIG | ECHO)) && !(now.c_oflag & OPOST);
}

/* A child that has the terminal in raw mode and does `then` once the parent has seen so. */
static int raw_child(const Pty *pty, void (*then)(void), int *ret_pidfd) {
        struct pollfd ready;
        char byte = 0;
        int go[2];
        pid_t pid;

        assert_int_equal(pipe2(go, O_CLOEXEC), 0);
        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
                const struct rlimit none = {};

                (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
                (void) setrlimit(RLIMIT_CORE, &none);
                /* cmocka catches crashes of its own. */
                for (int i = 1; i < 32; i++)
                        (void) signal(i, SIG_DFL);
                if (terminal_save(pty->slave) < 0 || terminal_raw() < 0 || write(go[1], &byte, 1) != 1)
                        _exit(99);
                then();
                _exit(98);
        }
        (void) close(go[1]);
        *ret_pidfd = pidfd_open(pid, 0);
        assert_true(*ret_pidfd >= 0);
        ready = (struct pollfd) { .fd = go[0], .events = POLLIN };
        assert_int_equal(poll(&ready, 1, 10000), 1);
        assert_int_equal(read(go[0], &byte, 1), 1);
        (void) close(go[0]);
        return pid;
}

static siginfo_t reap(int pidfd) {
        struct pollfd ended = { .fd = pidfd, .events = POLLIN };
        siginfo_t info = {};

        assert_int_equal(poll(&ended, 1, 10000), 1);
        assert_int_equal(waitid(P_PIDFD, (id_t) pidfd, &info, WEXITED), 0);
        (void) close(pidfd);
        return info;
}

static void wait_for_signal(void) {
        for (;;)
                (void) pause();
}

static void test_each_signal_restores(void **state) {
        for (int i = 1; i <= SIGRTMAX; i++) {
                struct termios before, after;
                siginfo_t info;
                int pidfd;
                Pty pty;

                if (i == SIGKILL || i == SIGSTOP || i == SIGTSTP || i == SIGTTIN || i == SIGTTOU ||
                    i == SIGCONT || i == SIGCHLD || i == SIGURG || i == SIGWINCH ||
                    (i >= 32 && i < SIGRTMIN))
                        continue;
                pty = pty_open();
                assert_int_equal(tcgetattr(pty.slave, &before), 0);
                (void) raw_child(&pty, wait_for_signal, &pidfd);
                assert_true(is_raw(pty.slave));
                assert_int_equal(pidfd_send_signal(pidfd, i, NULL, 0), 0);
                info = reap(pidfd);
                assert_int_not_equal(info.si_code, CLD_EXITED);
                assert_int_equal(info.si_status, i);
                assert_int_equal(tcgetattr(pty.slave, &after), 0);
                assert_true(same(&before, &after));
                pty_close(&pty);
        }
}

static void crash(void) {
        volatile char *page = mmap(NULL, 1, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        *page = 1;
}

static void leave(void) {
        exit(7);
}

static void check_end(void (*end)(void), int code, int status) {
        struct termios before, after;
        Pty pty = pty_open();
        siginfo_t info;
        int pidfd;

        assert_int_equal(tcgetattr(pty.slave, &before), 0);
        (void) raw_child(&pty, end, &pidfd);
        info = reap(pidfd);
        assert_int_equal(info.si_code, code);
        assert_int_equal(info.si_status, status);
        assert_int_equal(tcgetattr(pty.slave, &after), 0);
        assert_true(same(&before, &after));
        pty_close(&pty);
}

static void test_crash_restores(void **state) {
        check_end(crash, CLD_KILLED, SIGSEGV);
        check_end(abort, CLD_KILLED, SIGABRT);
}

static void test_exit_restores(void **state) {
        check_end(leave, CLD_EXITED, 7);
}

static void test_ignored_signals_stay_ignored(void **state) {
        struct sigaction now;
        Pty pty = pty_open();
        pid_t pid;
        int status;

        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
                (void) signal(SIGHUP, SIG_IGN);
                if (terminal_save(pty.slave) < 0 || sigaction(SIGHUP, NULL, &now) < 0)
                        _exit(99);
                _exit(now.sa_handler == SIG_IGN ? 0 : 1);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
        pty_close(&pty);
}

static void copy_settings(void) {
        _exit(terminal_copy_settings(STDOUT_FILENO) < 0 ? 97 : 0);
}

static void test_control_characters_and_utf8_are_copied_and_nothing_else(void **state) {
        Pty caller = pty_open(), container = pty_open();
        struct termios settings, before, after;
        siginfo_t info;
        int pidfd, out;

        assert_int_equal(tcgetattr(caller.slave, &settings), 0);
        settings.c_cc[VINTR] = 7;
        settings.c_cc[VERASE] = 8;
        settings.c_iflag ^= IUTF8;
        settings.c_lflag &= ~(tcflag_t) ECHOK;
        assert_int_equal(tcsetattr(caller.slave, TCSANOW, &settings), 0);
        assert_int_equal(tcgetattr(container.slave, &before), 0);
        out = fd_dup(STDOUT_FILENO);
        assert_true(out >= 0);
        assert_int_equal(dup2(container.master, STDOUT_FILENO), STDOUT_FILENO);
        (void) raw_child(&caller, copy_settings, &pidfd);
        assert_int_equal(dup2(out, STDOUT_FILENO), STDOUT_FILENO);
        (void) close(out);
        info = reap(pidfd);
        assert_int_equal(info.si_status, 0);
        assert_int_equal(tcgetattr(container.slave, &after), 0);
        before.c_cc[VINTR] = 7;
        before.c_cc[VERASE] = 8;
        before.c_iflag ^= IUTF8;
        assert_true(same(&before, &after));
        pty_close(&caller);
        pty_close(&container);
}

static void size_of(const Pty *pty, unsigned rows, unsigned columns, int *ret_result,
                    struct winsize *ret_size) {
        struct winsize size = { .ws_row = (unsigned short) rows, .ws_col = (unsigned short) columns };
        int out = fd_dup(STDOUT_FILENO);

        assert_true(out >= 0);
        assert_int_equal(ioctl(pty->master, TIOCSWINSZ, &size), 0);
        assert_int_equal(dup2(pty->slave, STDOUT_FILENO), STDOUT_FILENO);
        *ret_result = terminal_size(ret_size);
        assert_int_equal(dup2(out, STDOUT_FILENO), STDOUT_FILENO);
        (void) close(out);
}

static void test_a_size_of_nothing_is_none(void **state) {
        struct winsize size = {};
        Pty pty = pty_open();
        int r;

        size_of(&pty, 43, 132, &r, &size);
        assert_int_equal(r, 0);
        assert_int_equal(size.ws_row, 43);
        assert_int_equal(size.ws_col, 132);
        size_of(&pty, 0, 0, &r, &size);
        assert_int_equal(r, -ENOTTY);
        pty_close(&pty);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_each_signal_restores),
                cmocka_unit_test(test_crash_restores),
                cmocka_unit_test(test_exit_restores),
                cmocka_unit_test(test_ignored_signals_stay_ignored),
                cmocka_unit_test(test_control_characters_and_utf8_are_copied_and_nothing_else),
                cmocka_unit_test(test_a_size_of_nothing_is_none),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
