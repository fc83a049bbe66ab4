/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/system/terminal.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <time.h>
#include <vterm.h>

struct TerminalTest {
        int master; /* owned */
        int pidfd;  /* owned; -EBADF for an attached one, and after the end */
        pid_t pid;
        unsigned rows, columns;
        VTerm *vterm; /* owned */
        VTermScreen *screen;
        char *output; /* owned, NUL-terminated */
        size_t size, room;
        size_t seen; /* what expect() has found ends here */
        bool ended;  /* EIO was read */
        char *line;  /* owned: what terminal_test_line() returned */
};

#define must(condition)                                                                            \
        do {                                                                                       \
                if (!(condition)) {                                                                \
                        (void) fprintf(stderr, "%s:%d: %s: %m\n", __FILE__, __LINE__, #condition); \
                        abort();                                                                   \
                }                                                                                  \
        } while (0)

static struct timespec deadline_in(unsigned ms) {
        struct timespec t;

        must(clock_gettime(CLOCK_MONOTONIC, &t) == 0);
        t.tv_sec += ms / 1000;
        t.tv_nsec += (long) (ms % 1000) * 1000000;
        if (t.tv_nsec >= 1000000000) {
                t.tv_sec++;
                t.tv_nsec -= 1000000000;
        }
        return t;
}

/* False when the deadline has passed. */
static bool time_left(const struct timespec *deadline, struct timespec *ret) {
        struct timespec now;

        must(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
        ret->tv_sec = deadline->tv_sec - now.tv_sec;
        ret->tv_nsec = deadline->tv_nsec - now.tv_nsec;
        if (ret->tv_nsec < 0) {
                ret->tv_sec--;
                ret->tv_nsec += 1000000000;
        }
        return ret->tv_sec >= 0;
}

/* What the screen answers to a program that asks it something. */
static void on_screen_output(const char *data, size_t n, void *userdata) {
        TerminalTest *t = userdata;

        (void) write(t->master, data, n);
}

static TerminalTest *terminal_test_new(int master, unsigned rows, unsigned columns) {
        TerminalTest *t;

        t = calloc(1, sizeof(*t));
        must(t);
        t->master = master;
        t->pidfd = -EBADF;
        t->rows = rows;
        t->columns = columns;
        t->output = strdup("");
        must(t->output);
        t->vterm = vterm_new((int) rows, (int) columns);
        must(t->vterm);
        vterm_set_utf8(t->vterm, 1);
        vterm_output_set_callback(t->vterm, on_screen_output, t);
        t->screen = vterm_obtain_screen(t->vterm);
        vterm_screen_enable_altscreen(t->screen, 1);
        vterm_screen_reset(t->screen, 1);
        must(fd_set_nonblock(master, 1) == 0);
        return t;
}

static void set_size(int fd, unsigned rows, unsigned columns) {
        struct winsize size = { .ws_row = (unsigned short) rows, .ws_col = (unsigned short) columns };

        must(ioctl(fd, TIOCSWINSZ, &size) == 0);
}

TerminalTest *terminal_test_attach(int master, unsigned rows, unsigned columns) {
        return terminal_test_new(master, rows, columns);
}

TerminalTest *terminal_test_spawn(const char *const *argv, unsigned rows, unsigned columns) {
        int master, slave;
        TerminalTest *t;

        master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
        must(master >= 0);
        must(unlockpt(master) == 0);
        slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
        must(slave >= 0);
        set_size(master, rows, columns);
        t = terminal_test_new(master, rows, columns);
        t->pid = fork();
        must(t->pid >= 0);
        if (t->pid == 0) {
                sigset_t none;

                (void) sigemptyset(&none);
                (void) sigprocmask(SIG_SETMASK, &none, NULL);
                /* As in a login shell, whatever this test was started from (nohup, a background job). */
                for (int i = 1; i < _NSIG; i++)
                        (void) signal(i, SIG_DFL);
                if (setsid() < 0 || ioctl(slave, TIOCSCTTY, 0) < 0 || dup2(slave, 0) < 0 ||
                    dup2(slave, 1) < 0 || dup2(slave, 2) < 0)
                        _exit(125);
                (void) execvp(argv[0], (char **) argv);
                _exit(errno == ENOENT ? 127 : 126);
        }
        (void) close(slave);
        t->pidfd = pidfd_open(t->pid, 0);
        must(t->pidfd >= 0);
        return t;
}

TerminalTest *terminal_test_free(TerminalTest *t) {
        siginfo_t info;

        if (!t)
                return NULL;
        if (t->pidfd >= 0) {
                (void) pidfd_send_signal(t->pidfd, SIGKILL, NULL, 0);
                (void) waitid(P_PIDFD, (id_t) t->pidfd, &info, WEXITED);
                (void) close(t->pidfd);
        }
        (void) close(t->master);
        vterm_free(t->vterm);
        free(t->output);
        free(t->line);
        free(t);
        return NULL;
}

pid_t terminal_test_pid(const TerminalTest *t) {
        return t->pid;
}

int terminal_test_master(const TerminalTest *t) {
        return t->master;
}

/* Takes what there is now. */
static void take(TerminalTest *t) {
        char buffer[4096];
        ssize_t n;

        while (!t->ended) {
                n = read(t->master, buffer, sizeof(buffer));
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0 && errno == EAGAIN)
                        return;
                if (n <= 0) {
                        must(n == 0 || errno == EIO);
                        t->ended = true;
                        return;
                }
                if (t->size + (size_t) n >= t->room) {
                        t->room = (t->size + (size_t) n + 1) * 2;
                        t->output = realloc(t->output, t->room);
                        must(t->output);
                }
                memcpy(t->output + t->size, buffer, (size_t) n);
                t->size += (size_t) n;
                t->output[t->size] = 0;
                (void) vterm_input_write(t->vterm, buffer, (size_t) n);
        }
}

/* Waits for output, or for fd to be readable. False when the deadline has passed. */
static bool wait_more(TerminalTest *t, short events, int fd, const struct timespec *deadline) {
        struct pollfd fds[] = {
                { .fd = t->ended ? -1 : t->master, .events = events },
                { .fd = fd, .events = POLLIN },
        };
        struct timespec left;
        int r;

        if (!time_left(deadline, &left))
                return false;
        r = ppoll(fds, ELEMENTSOF(fds), &left, NULL);
        must(r >= 0 || errno == EINTR);
        if (fds[0].revents & (POLLIN | POLLHUP | POLLERR))
                take(t);
        return true;
}

void terminal_test_send(TerminalTest *t, const void *bytes, size_t n) {
        struct timespec deadline = deadline_in(30000);
        const char *p = bytes;
        ssize_t written;

        while (n > 0) {
                written = write(t->master, p, n);
                if (written < 0) {
                        must(errno == EAGAIN || errno == EINTR);
                        must(wait_more(t, POLLIN | POLLOUT, -1, &deadline));
                        continue;
                }
                p += written;
                n -= (size_t) written;
        }
}

void terminal_test_type(TerminalTest *t, const char *text) {
        terminal_test_send(t, text, strlen(text));
}

void terminal_test_resize(TerminalTest *t, unsigned rows, unsigned columns) {
        set_size(t->master, rows, columns);
        vterm_set_size(t->vterm, (int) rows, (int) columns);
        t->rows = rows;
        t->columns = columns;
}

static void complain(const TerminalTest *t, const char *wanted) {
        (void) fprintf(stderr, "terminal: no '%s' in time%s; what came was:\n%s\n", wanted,
                       t->ended ? ", the output ended" : "", t->output + t->seen);
}

bool terminal_test_expect(TerminalTest *t, const char *text, unsigned deadline_ms) {
        struct timespec deadline = deadline_in(deadline_ms);
        const char *found;

        take(t);
        for (;;) {
                found = memmem(t->output + t->seen, t->size - t->seen, text, strlen(text));
                if (found) {
                        t->seen = (size_t) (found - t->output) + strlen(text);
                        return true;
                }
                if (t->ended || !wait_more(t, POLLIN, -1, &deadline)) {
                        complain(t, text);
                        return false;
                }
        }
}

bool terminal_test_expect_end(TerminalTest *t, unsigned deadline_ms) {
        struct timespec deadline = deadline_in(deadline_ms);

        take(t);
        while (!t->ended)
                if (!wait_more(t, POLLIN, -1, &deadline)) {
                        complain(t, "end of output");
                        return false;
                }
        return true;
}

bool terminal_test_expect_line(TerminalTest *t, unsigned row, const char *text, unsigned deadline_ms) {
        struct timespec deadline = deadline_in(deadline_ms);

        take(t);
        while (strcmp(terminal_test_line(t, row), text) != 0)
                if (t->ended || !wait_more(t, POLLIN, -1, &deadline)) {
                        (void) fprintf(stderr, "terminal: line %u is '%s', not '%s'\n", row,
                                       terminal_test_line(t, row), text);
                        return false;
                }
        return true;
}

const char *terminal_test_output(TerminalTest *t, size_t *ret_size) {
        take(t);
        if (ret_size)
                *ret_size = t->size;
        return t->output;
}

const char *terminal_test_line(TerminalTest *t, unsigned row) {
        VTermRect rect = {
                .start_row = (int) row,
                .end_row = (int) row + 1,
                .start_col = 0,
                .end_col = (int) t->columns,
        };
        size_t room = (size_t) t->columns * 24 + 1, n;

        assert(row < t->rows);
        free(t->line);
        t->line = malloc(room);
        must(t->line);
        n = vterm_screen_get_text(t->screen, t->line, room - 1, rect);
        while (n > 0 && (t->line[n - 1] == ' ' || t->line[n - 1] == '\n'))
                n--;
        t->line[n] = 0;
        return t->line;
}

int terminal_test_wait(TerminalTest *t, unsigned deadline_ms) {
        struct timespec deadline = deadline_in(deadline_ms);
        siginfo_t info = {};

        must(t->pidfd >= 0);
        for (;;) {
                must(waitid(P_PIDFD, (id_t) t->pidfd, &info, WEXITED | WNOHANG) == 0);
                if (info.si_pid != 0)
                        break;
                if (!wait_more(t, POLLIN, t->pidfd, &deadline)) {
                        complain(t, "end of the program");
                        return -1;
                }
        }
        take(t);
        (void) close(t->pidfd);
        t->pidfd = -EBADF;
        return info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
}
