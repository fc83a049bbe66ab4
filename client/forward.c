/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/forward.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <termios.h>
#include <time.h>

#define CHUNK 16384U
#define TURNS 64U /* chunks in a row before other events get their turn */
#define SILENCE_USEC (1000U * 1000U)

/* How a descriptor is read or written without ever blocking the loop and without touching its shared
 * flags. */
typedef enum EndKind {
        END_NONBLOCK, /* its description is our own and non-blocking */
        END_SOCKET,   /* MSG_DONTWAIT */
        END_POLLED,   /* one small piece each time that poll says so */
        END_FILE,     /* never waits: a regular file, /dev/null */
} EndKind;

typedef struct End {
        int fd;
        EndKind kind;
        bool owned, terminal;
        bool readable, writable;
        sd_event_source *source; /* owned; NULL for a file */
} End;

typedef struct Flow {
        char data[CHUNK];
        size_t start, size;
        bool ended;
} Flow;

struct Forward {
        sd_event *event; /* owned: a reference */
        End input, output, master;
        Flow in, out;                     /* to the master, from the master */
        sd_event_source *again, *silence; /* owned */
        ForwardHandler handler;
        void *userdata;
        char last;       /* the last byte of the input */
        bool finishing;  /* forward_finish() was called */
        bool master_end; /* its last read said EIO; more may come all the same (vhangup(2)) */
        bool over;
};

static ssize_t end_read(End *end, void *data, size_t size) {
        ssize_t n;

        do
                n = end->kind == END_SOCKET ? recv(end->fd, data, size, MSG_DONTWAIT)
                                            : read(end->fd, data, size);
        while (n < 0 && errno == EINTR);
        if (end->kind == END_POLLED || (n < 0 && errno == EAGAIN)) {
                end->readable = false;
                if (end->kind == END_POLLED)
                        (void) sd_event_source_set_enabled(end->source, SD_EVENT_ONESHOT);
        }
        return n < 0 ? -errno : n;
}

static ssize_t end_write(End *end, const void *data, size_t size) {
        ssize_t n;

        if (end->kind == END_POLLED && size > 512)
                size = 512;
        do
                n = end->kind == END_SOCKET ? send(end->fd, data, size, MSG_DONTWAIT | MSG_NOSIGNAL)
                                            : write(end->fd, data, size);
        while (n < 0 && errno == EINTR);
        if (end->kind == END_POLLED || (n < 0 && errno == EAGAIN)) {
                end->writable = false;
                if (end->kind == END_POLLED)
                        (void) sd_event_source_set_enabled(end->source, SD_EVENT_ONESHOT);
        }
        return n < 0 ? -errno : n;
}

static void end_done(End *end) {
        sd_event_source_disable_unref(end->source);
        if (end->owned)
                (void) fd_close(end->fd);
}

/* A description of our own for the same file, so that O_NONBLOCK is ours alone. Not for a master: opening
 * that gives a new terminal. */
static int reopen(int fd, int flags) {
        char path[sizeof("/proc/self/fd/") + 11];
        unsigned number;
        int r;

        if (ioctl(fd, TIOCGPTN, &number) >= 0)
                return -EOPNOTSUPP;
        (void) snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        r = open(path, flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        return r < 0 ? -errno : r;
}

/* events: EPOLLIN or EPOLLOUT. */
static int end_open(End *end, sd_event *event, int fd, uint32_t events, sd_event_io_handler_t handler,
                    void *userdata) {
        struct stat st;
        int r;

        if (fstat(fd, &st) < 0)
                return -errno;
        end->fd = fd;
        end->terminal = isatty(fd) > 0;
        end->kind = END_POLLED;
        if (S_ISSOCK(st.st_mode))
                end->kind = END_SOCKET;
        else if (S_ISFIFO(st.st_mode) || end->terminal) {
                r = reopen(fd, events == EPOLLIN ? O_RDONLY : O_WRONLY);
                if (r >= 0) {
                        end->fd = r;
                        end->owned = true;
                        end->kind = END_NONBLOCK;
                }
        }
        /* Edge-triggered, where we read and write until EAGAIN, so that no event comes for what we can't
         * use. */
        r = sd_event_add_io(event, &end->source, end->fd,
                            end->kind == END_POLLED ? events : events | (uint32_t) EPOLLET, handler,
                            userdata);
        if (r == -EPERM) {
                end->kind = END_FILE;
                end->readable = end->writable = true;
                return 0;
        }
        if (r >= 0 && end->kind == END_POLLED)
                r = sd_event_source_set_enabled(end->source, SD_EVENT_ONESHOT);
        return r;
}

static void forward_over(Forward *f, ForwardEnd end) {
        if (f->over)
                return;
        f->over = true;
        f->handler(end, f->userdata);
}

/* What Ctrl-D is there, for an input that ended: twice after an unfinished line, which the first only hands
 * over. */
static void put_end_of_file(Forward *f) {
        struct termios settings;
        char eof = 4;

        if (tcgetattr(f->master.fd, &settings) >= 0 && settings.c_cc[VEOF] != _POSIX_VDISABLE)
                eof = (char) settings.c_cc[VEOF];
        f->in.data[0] = f->in.data[1] = eof;
        f->in.start = 0;
        f->in.size = f->last && f->last != '\n' ? 2 : 1;
}

/* 0: can't go on now. 1: something was moved. Negative: the input is a terminal that is gone. */
static int move_in(Forward *f) {
        Flow *flow = &f->in;
        ssize_t n;

        if (flow->size > 0) {
                if (!f->master.writable)
                        return 0;
                n = end_write(&f->master, flow->data + flow->start, flow->size);
                if (n == -EAGAIN)
                        return 0;
                /* Nobody at the other side: as on any line that is hung up, what is typed goes nowhere. */
                if (n < 0)
                        n = (ssize_t) flow->size;
                flow->start += (size_t) n;
                flow->size -= (size_t) n;
                return 1;
        }
        if (flow->ended || !f->input.readable)
                return 0;
        n = end_read(&f->input, flow->data, sizeof(flow->data));
        if (n == -EAGAIN)
                return 0;
        if (n <= 0) {
                flow->ended = true;
                if (f->input.source)
                        (void) sd_event_source_set_enabled(f->input.source, SD_EVENT_OFF);
                if (f->input.terminal)
                        return -EIO;
                put_end_of_file(f);
                return 1;
        }
        flow->start = 0;
        flow->size = (size_t) n;
        f->last = flow->data[n - 1];
        return 1;
}

/* 0: can't go on now. 1: something was moved. Negative: the output takes no more. */
static int move_out(Forward *f) {
        Flow *flow = &f->out;
        ssize_t n;

        if (flow->size > 0) {
                if (!f->output.writable)
                        return 0;
                n = end_write(&f->output, flow->data + flow->start, flow->size);
                if (n == -EAGAIN)
                        return 0;
                if (n < 0)
                        return (int) n;
                flow->start += (size_t) n;
                flow->size -= (size_t) n;
                return 1;
        }
        if (!f->master.readable)
                return 0;
        n = end_read(&f->master, flow->data, sizeof(flow->data));
        if (n == -EAGAIN)
                return 0;
        if (n <= 0) {
                f->master_end = true;
                f->master.readable = false;
                return 0;
        }
        f->master_end = false;
        flow->start = 0;
        flow->size = (size_t) n;
        if (f->silence)
                (void) sd_event_source_set_time_relative(f->silence, SILENCE_USEC);
        return 1;
}

static void pump(Forward *f) {
        bool more_in = true, more_out = true;
        int r;

        if (f->over)
                return;
        for (unsigned i = 0; i < TURNS && (more_in || more_out); i++) {
                r = move_out(f);
                if (r < 0) {
                        forward_over(f, FORWARD_END_OUTPUT);
                        return;
                }
                more_out = r > 0;
                r = move_in(f);
                if (r < 0) {
                        forward_over(f, FORWARD_END_INPUT);
                        return;
                }
                more_in = r > 0;
        }
        if (f->finishing && f->master_end && f->out.size == 0) {
                forward_over(f, FORWARD_END_DRAINED);
                return;
        }
        if (more_in || more_out)
                (void) sd_event_source_set_enabled(f->again, SD_EVENT_ONESHOT);
}

static int on_input(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        Forward *f = userdata;

        f->input.readable = true;
        pump(f);
        return 0;
}

static int on_output(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        Forward *f = userdata;

        f->output.writable = true;
        pump(f);
        return 0;
}

static int on_master(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        Forward *f = userdata;

        if (revents & (EPOLLIN | EPOLLHUP | EPOLLERR))
                f->master.readable = true;
        if (revents & (EPOLLOUT | EPOLLHUP | EPOLLERR))
                f->master.writable = true;
        pump(f);
        return 0;
}

static int on_again(sd_event_source *source, void *userdata) {
        pump(userdata);
        return 0;
}

static int on_silence(sd_event_source *source, uint64_t usec, void *userdata) {
        Forward *f = userdata;

        /* An output that doesn't take what we have isn't silence. */
        if (f->out.size > 0) {
                (void) sd_event_source_set_time_relative(source, SILENCE_USEC);
                (void) sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
        } else
                forward_over(f, FORWARD_END_DRAINED);
        return 0;
}

void forward_resize(Forward *f, const struct winsize *size) {
        (void) ioctl(f->master.fd, TIOCSWINSZ, size);
}

void forward_finish(Forward *f) {
        f->finishing = true;
        f->in.ended = true;
        f->in.size = 0;
        if (sd_event_add_time_relative(f->event, &f->silence, CLOCK_MONOTONIC, SILENCE_USEC, 0, on_silence,
                                       f) < 0) {
                forward_over(f, FORWARD_END_DRAINED);
                return;
        }
        f->master.readable = true;
        (void) sd_event_source_set_enabled(f->again, SD_EVENT_ONESHOT);
}

int forward_new(sd_event *event, int input, int output, int master, ForwardHandler handler, void *userdata,
                Forward **ret) {
        _cleanup_forward_ Forward *f = NULL;
        int r;

        f = calloc(1, sizeof(*f));
        if (!f) {
                (void) fd_close(master);
                return -ENOMEM;
        }
        f->event = sd_event_ref(event);
        f->handler = handler;
        f->userdata = userdata;
        f->master = (End) { .fd = master, .kind = END_NONBLOCK, .owned = true };
        r = fd_set_nonblock(master, 1);
        if (r < 0)
                return r;
        r = sd_event_add_io(event, &f->master.source, master, EPOLLIN | EPOLLOUT | EPOLLET, on_master, f);
        if (r < 0)
                return r;
        r = sd_event_add_defer(event, &f->again, on_again, f);
        if (r < 0)
                return r;
        r = end_open(&f->input, event, input, EPOLLIN, on_input, f);
        if (r < 0)
                return r;
        r = end_open(&f->output, event, output, EPOLLOUT, on_output, f);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(f);
        return 0;
}

Forward *forward_free(Forward *f) {
        if (!f)
                return NULL;
        sd_event_source_disable_unref(f->again);
        sd_event_source_disable_unref(f->silence);
        end_done(&f->input);
        end_done(&f->output);
        end_done(&f->master);
        (void) sd_event_unref(f->event);
        free(f);
        return NULL;
}
