/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/terminal.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

/* File-scope state, against the rule: a signal handler and atexit(3) get no argument, and the terminal that
 * a process was started on is one by nature. */
static struct {
        volatile sig_atomic_t changed;
        int fd;
        struct termios saved;
} caller;

int terminal_size(struct winsize *ret) {
        static const int fds[] = { STDOUT_FILENO, STDIN_FILENO, STDERR_FILENO };
        struct winsize size;

        for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
                if (ioctl(fds[i], TIOCGWINSZ, &size) >= 0) {
                        if (size.ws_row == 0 || size.ws_col == 0)
                                return -ENOTTY;
                        *ret = size;
                        return 0;
                }
        return -ENOTTY;
}

/* From the background tcsetattr(3) would stop us with SIGTTOU, and a stopped process restores nothing. */
static int set_attributes(int fd, const struct termios *attributes) {
        sigset_t block, old;
        int r;

        (void) sigemptyset(&block);
        (void) sigaddset(&block, SIGTTOU);
        (void) sigprocmask(SIG_BLOCK, &block, &old);
        do
                r = tcsetattr(fd, TCSANOW, attributes);
        while (r < 0 && errno == EINTR);
        r = r < 0 ? -errno : 0;
        (void) sigprocmask(SIG_SETMASK, &old, NULL);
        return r;
}

void terminal_restore(void) {
        int saved = errno;

        if (caller.changed) {
                caller.changed = 0;
                (void) set_attributes(caller.fd, &caller.saved);
        }
        errno = saved;
}

/* The disposition is the default again (SA_RESETHAND): the signal does once more what it would have done. */
static void on_fatal_signal(int signal) {
        terminal_restore();
        (void) raise(signal);
}

static void catch_fatal_signals(void) {
        const struct sigaction action = { .sa_handler = on_fatal_signal,
                                          .sa_flags = SA_RESETHAND | SA_NODEFER };
        struct sigaction current;

        for (int i = 1; i <= SIGRTMAX; i++) {
                switch (i) {
                case SIGKILL:
                case SIGSTOP:
                case SIGTSTP:
                case SIGTTIN:
                case SIGTTOU:
                case SIGCONT:
                case SIGCHLD:
                case SIGURG:
                case SIGWINCH:
                        continue;
                default:
                        break;
                }
                if (sigaction(i, NULL, &current) >= 0 && current.sa_handler == SIG_DFL)
                        (void) sigaction(i, &action, NULL);
        }
}

int terminal_save(int fd) {
        if (tcgetattr(fd, &caller.saved) < 0)
                return -errno;
        caller.fd = fd;
        if (atexit(terminal_restore) != 0)
                return -ENOMEM;
        catch_fatal_signals();
        return 0;
}

int terminal_raw(void) {
        struct termios raw = caller.saved;
        pid_t foreground;

        foreground = tcgetpgrp(caller.fd);
        if (foreground >= 0 && foreground != getpgrp())
                return 0;
        cfmakeraw(&raw);
        caller.changed = 1;
        return set_attributes(caller.fd, &raw);
}

int terminal_copy_settings(int master) {
        static const int characters[] = { VINTR, VQUIT,    VERASE,  VKILL,  VEOF,     VSTART, VSTOP,
                                          VSUSP, VREPRINT, VWERASE, VLNEXT, VDISCARD, VEOL,   VEOL2 };
        struct termios settings;
        bool differs = false;

        if (tcgetattr(master, &settings) < 0)
                return -errno;
        for (size_t i = 0; i < sizeof(characters) / sizeof(characters[0]); i++) {
                cc_t *now = &settings.c_cc[characters[i]], wanted = caller.saved.c_cc[characters[i]];

                differs = differs || *now != wanted;
                *now = wanted;
        }
        if ((settings.c_iflag ^ caller.saved.c_iflag) & IUTF8) {
                settings.c_iflag ^= IUTF8;
                differs = true;
        }
        /* The program runs already and may be setting its own: the less is written the better. */
        return differs ? set_attributes(master, &settings) : 0;
}
