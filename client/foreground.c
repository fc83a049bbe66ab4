/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/foreground.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include "client/exit-status.h"
#include "client/forward.h"
#include "client/terminal.h"
#include "interfaces/names.h"

/* So many times INT or TERM without a terminal end berthctl, and with it the container: a program that is
 * PID 1 ignores both unless it asked for them. */
#define INTERRUPTS 3

typedef struct Foreground {
        Connection *connection;   /* borrowed */
        sd_bus_error *error;      /* the caller's */
        sd_event *event;          /* owned */
        sd_event_source *signals; /* owned */
        Forward *forward;         /* owned; NULL without a terminal, and after a hang-up */
        char *path;               /* owned; NULL until the service has told it */
        const char *interface;
        sigset_t pending; /* arrived before there was anybody to give them to */
        bool terminal;    /* the container's */
        bool raw;         /* the caller's terminal is in raw mode */
        bool waited;
        unsigned interrupts;
        const char *remark; /* on the end, or NULL */
        int status;
} Foreground;

bool foreground_on_terminal(void) {
        return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
}

static int append_size(sd_bus_message *call) {
        struct winsize size;
        int r;

        if (terminal_size(&size) < 0)
                return 0;
        r = sd_bus_message_append(call, "{sv}{sv}", "Rows", "q", size.ws_row, "Columns", "q", size.ws_col);
        if (r < 0 || size.ws_xpixel == 0 || size.ws_ypixel == 0)
                return r;
        return sd_bus_message_append(call, "{sv}{sv}", "XPixels", "q", size.ws_xpixel, "YPixels", "q",
                                     size.ws_ypixel);
}

int foreground_append_entries(sd_bus_message *call, bool terminal) {
        if (terminal)
                return append_size(call);
        return sd_bus_message_append(call, "{sv}{sv}{sv}{sv}", "StandardInput", "h", STDIN_FILENO,
                                     "StandardOutput", "h", STDOUT_FILENO, "StandardError", "h",
                                     STDERR_FILENO, "OnDisconnect", "s", "kill");
}

int foreground_append_options(sd_bus_message *call, bool terminal) {
        int r;

        r = sd_bus_message_open_container(call, 'a', "{sv}");
        if (r < 0)
                return r;
        r = foreground_append_entries(call, terminal);
        if (r < 0)
                return r;
        return sd_bus_message_close_container(call);
}

/* Ends the loop with an error that *f->error tells or is made to tell. */
static void fail(Foreground *f, int r) {
        terminal_restore();
        (void) connection_explain(f->connection, r, f->error);
        (void) sd_event_exit(f->event, r);
}

static void pass_size(Foreground *f) {
        struct winsize size;

        if (!f->forward || terminal_size(&size) < 0)
                return;
        forward_resize(f->forward, &size);
}

static void pass_signal(Foreground *f, int signal) {
        _cleanup_bus_message_ sd_bus_message *call = NULL;

        if (connection_new_call(f->connection, f->path, f->interface, "Signal", &call) < 0 ||
            sd_bus_message_append(call, "i", signal) < 0)
                return;
        /* It may have ended by now: then there is nobody to tell, and nothing to say about it. */
        (void) sd_bus_message_set_expect_reply(call, false);
        (void) sd_bus_send(f->connection->bus, call, NULL);
}

/* The line is cut: closing the master hangs the container's terminal up. */
static void hang_up(Foreground *f) {
        f->forward = forward_free(f->forward);
        if (f->waited)
                (void) sd_event_exit(f->event, f->status);
}

static void on_forward_end(ForwardEnd end, void *userdata) {
        hang_up(userdata);
}

static int on_waited(sd_bus_message *reply, void *userdata, sd_bus_error *ret_error) {
        Foreground *f = userdata;
        const char *result;
        int code, status, r;

        r = sd_bus_message_is_method_error(reply, NULL);
        if (r > 0) {
                r = sd_bus_error_copy(f->error, sd_bus_message_get_error(reply));
                fail(f, r < 0 ? r : -EIO);
                return 0;
        }
        r = sd_bus_message_read(reply, "iis", &code, &status, &result);
        if (r < 0) {
                fail(f, r);
                return 0;
        }
        f->waited = true;
        f->status = exit_status(code, status, result);
        f->remark = exit_status_remark(result);
        if (f->forward)
                forward_finish(f->forward);
        else
                (void) sd_event_exit(f->event, f->status);
        return 0;
}

static int wait_for_end(Foreground *f) {
        _cleanup_bus_message_ sd_bus_message *call = NULL;
        int r;

        r = connection_new_call(f->connection, f->path, f->interface, "Wait", &call);
        if (r < 0)
                return r;
        return sd_bus_call_async(f->connection->bus, NULL, call, on_waited, f, UINT64_MAX);
}

/* The terminal in an a{sh}; -ENXIO when there is none. The descriptor is the caller's. */
static int take_terminal(sd_bus_message *reply) {
        _cleanup_fd_ int master = -EBADF;
        const char *name;
        int fd, r;

        r = sd_bus_message_enter_container(reply, 'a', "{sh}");
        if (r < 0)
                return r;
        while ((r = sd_bus_message_read(reply, "{sh}", &name, &fd)) > 0)
                if (strcmp(name, "terminal") == 0 && master < 0) {
                        master = fd_dup(fd);
                        if (master < 0)
                                return master;
                }
        if (r < 0)
                return r;
        return master < 0 ? -ENXIO : TAKE_FD(master);
}

static int begin_forwarding(Foreground *f, sd_bus_message *reply) {
        int master, r;

        master = take_terminal(reply);
        if (master == -ENXIO)
                return sd_bus_error_set(f->error, SD_BUS_ERROR_FAILED, "berthd gave no terminal");
        if (master < 0)
                return master;
        if (isatty(STDIN_FILENO)) {
                r = terminal_save(STDIN_FILENO);
                if (r >= 0) {
                        (void) terminal_copy_settings(master);
                        r = terminal_raw();
                }
                if (r < 0) {
                        (void) fd_close(master);
                        return r;
                }
                f->raw = true;
        }
        r = forward_new(f->event, STDIN_FILENO, STDOUT_FILENO, master, on_forward_end, f, &f->forward);
        if (r < 0)
                return r;
        /* The caller's window may have changed while the container was started. */
        pass_size(f);
        return 0;
}

static int on_started(sd_bus_message *reply, void *userdata, sd_bus_error *ret_error) {
        Foreground *f = userdata;
        const char *path;
        int r;

        r = sd_bus_message_is_method_error(reply, NULL);
        if (r > 0) {
                r = sd_bus_error_copy(f->error, sd_bus_message_get_error(reply));
                fail(f, r < 0 ? r : -EIO);
                return 0;
        }
        if (!f->path) {
                r = sd_bus_message_read(reply, "o", &path);
                if (r >= 0) {
                        f->path = strdup(path);
                        r = f->path ? 0 : -ENOMEM;
                }
        }
        if (r >= 0)
                r = wait_for_end(f);
        if (r >= 0 && f->terminal)
                r = begin_forwarding(f, reply);
        if (r < 0) {
                fail(f, r);
                return 0;
        }
        for (int i = 1; i <= SIGRTMAX; i++)
                if (sigismember(&f->pending, i) > 0)
                        pass_signal(f, i);
        return 0;
}

static void on_signal(Foreground *f, int signal) {
        bool ends = signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT;

        switch (signal) {
        case SIGWINCH:
                pass_size(f);
                return;
        case SIGCONT:
                /* Whoever had the terminal while we were stopped, the shell, has set it as it likes it. */
                if (f->raw)
                        (void) terminal_raw();
                pass_size(f);
                return;
        case SIGTSTP:
                terminal_restore();
                (void) raise(SIGSTOP);
                return;
        default:
                break;
        }
        if (signal == SIGINT || signal == SIGTERM)
                f->interrupts++;
        if ((ends && (f->terminal || !f->path)) || f->interrupts >= INTERRUPTS) {
                terminal_restore();
                (void) sd_event_exit(f->event, EXIT_SIGNAL + signal);
        } else if (f->path)
                pass_signal(f, signal);
        else
                (void) sigaddset(&f->pending, signal);
}

static int on_signals(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        struct signalfd_siginfo info;

        while (read(fd, &info, sizeof(info)) == sizeof(info))
                on_signal(userdata, (int) info.ssi_signo);
        return 0;
}

/* Signals that we answer or pass on, unless they are ignored, which is then the caller's wish (nohup, a
 * shell's &). With a terminal the ones that only end a process keep doing that: they restore it
 * (terminal.h). */
static void choose_signals(bool terminal, sigset_t *ret) {
        static const int with_terminal[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH, SIGCONT, SIGTSTP };
        static const int without[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGPWR };
        struct sigaction now;

        (void) sigemptyset(ret);
        for (size_t i = 0; i < (terminal ? ELEMENTSOF(with_terminal) : ELEMENTSOF(without)); i++)
                (void) sigaddset(ret, terminal ? with_terminal[i] : without[i]);
        if (!terminal)
                for (int i = SIGRTMIN; i <= SIGRTMAX; i++)
                        (void) sigaddset(ret, i);
        for (int i = 1; i <= SIGRTMAX; i++)
                if (sigismember(ret, i) > 0 && sigaction(i, NULL, &now) >= 0 && now.sa_handler == SIG_IGN)
                        (void) sigdelset(ret, i);
}

static int watch_signals(Foreground *f, const sigset_t *signals) {
        _cleanup_fd_ int fd = -EBADF;
        int r;

        fd = signalfd(-1, signals, SFD_CLOEXEC | SFD_NONBLOCK);
        if (fd < 0)
                return -errno;
        r = sd_event_add_io(f->event, &f->signals, fd, EPOLLIN, on_signals, f);
        if (r < 0)
                return r;
        r = sd_event_source_set_io_fd_own(f->signals, true);
        if (r < 0)
                return r;
        (void) TAKE_FD(fd);
        /* Before all output: a flood of it must not make the keyboard dead. */
        return sd_event_source_set_priority(f->signals, SD_EVENT_PRIORITY_IMPORTANT);
}

static int foreground_loop(Foreground *f, sd_bus_message *call, const sigset_t *signals) {
        int r;

        r = sd_event_new(&f->event);
        if (r < 0)
                return r;
        r = watch_signals(f, signals);
        if (r < 0)
                return r;
        r = sd_bus_attach_event(f->connection->bus, f->event, SD_EVENT_PRIORITY_NORMAL);
        if (r < 0)
                return r;
        r = sd_bus_call_async(f->connection->bus, NULL, call, on_started, f, UINT64_MAX);
        if (r < 0)
                return r;
        return sd_event_loop(f->event);
}

int foreground_run(const Globals *globals, Connection *connection, sd_bus_message *call, const char *path,
                   const char *interface, bool terminal, sd_bus_error *error) {
        Foreground f = {
                .connection = connection,
                .error = error,
                .interface = interface,
                .terminal = terminal,
        };
        sigset_t signals, old;
        int r;

        if (path) {
                f.path = strdup(path);
                if (!f.path)
                        return -ENOMEM;
        }
        (void) sigemptyset(&f.pending);
        choose_signals(terminal, &signals);
        (void) sigprocmask(SIG_BLOCK, &signals, &old);
        (void) signal(SIGPIPE, SIG_IGN);
        r = foreground_loop(&f, call, &signals);
        terminal_restore();
        if (r >= 0 && f.remark && !globals->quiet)
                (void) fprintf(stderr, "berthctl: %s\n", f.remark);
        (void) forward_free(f.forward);
        sd_event_source_disable_unref(f.signals);
        (void) sd_bus_detach_event(connection->bus);
        (void) sd_event_unref(f.event);
        free(f.path);
        /* Whoever waits for berthd to clean up can be interrupted again. */
        (void) sigprocmask(SIG_SETMASK, &old, NULL);
        return r;
}
