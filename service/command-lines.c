/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/command-lines.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/fd.h"

#define REPLACEMENT "\xef\xbf\xbd"
#define CODE_POINT_MAX 0x10ffffU

/* What the child writes: this, and size bytes. */
typedef struct Header {
        uint32_t index, size;
} Header;

typedef struct Reading {
        Members members; /* owned */
        char **lines;    /* owned, members.n of them */
        char *buffer;    /* owned: what has come and is not a whole line yet */
        size_t n_buffer;
        int pipe, pidfd; /* owned */
        sd_event_source *input, *child, *deadline;
        command_lines_done_t done; /* NULL: has been called */
        void *userdata;
} Reading;

/* ---- text ------------------------------------------------------------------------------------------------------ */

/* The length of the character that begins here, 0 when it is none. */
static size_t character_length(const unsigned char *p, size_t size) {
        static const uint32_t first[] = { 0, 0, 0x80, 0x800, 0x10000 }; /* shorter forms are no UTF-8 */
        size_t n = p[0] < 0x80   ? 1
                   : p[0] < 0xc2 ? 0
                   : p[0] < 0xe0 ? 2
                   : p[0] < 0xf0 ? 3
                   : p[0] < 0xf5 ? 4
                                 : 0;
        uint32_t c;

        if (n <= 1 || n > size)
                return n > size ? 0 : n;
        c = p[0] & (0x7fU >> n);
        for (size_t i = 1; i < n; i++) {
                if ((p[i] & 0xc0) != 0x80)
                        return 0;
                c = c << 6 | (p[i] & 0x3f);
        }
        return c < first[n] || c > CODE_POINT_MAX || (c >= 0xd800 && c < 0xe000) ? 0 : n;
}

char *command_line_clean(const char *bytes, size_t size) {
        char *text, *q;

        while (size > 0 && bytes[size - 1] == '\0')
                size--;
        text = q = malloc(size * strlen(REPLACEMENT) + 1);
        if (!text)
                return NULL;
        for (size_t i = 0; i < size;) {
                size_t n = character_length((const unsigned char *) bytes + i, size - i);

                if (n == 0) {
                        q = stpcpy(q, REPLACEMENT);
                        i++;
                        continue;
                }
                memcpy(q, bytes + i, n);
                if (*q == '\0')
                        *q = ' ';
                q += n;
                i += n;
        }
        *q = '\0';
        return text;
}

/* ---- the child -------------------------------------------------------------------------------------------------- */

static int read_line(pid_t pid, char buffer[COMMAND_LINE_MAX], size_t *ret_size) {
        _cleanup_fd_ int fd = -EBADF;
        char path[64];
        ssize_t n;

        (void) snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        n = read(fd, buffer, COMMAND_LINE_MAX);
        if (n < 0)
                return -errno;
        *ret_size = (size_t) n;
        return 0;
}

__attribute__((noreturn)) static void run_child(const Members *members, int output) {
        char buffer[COMMAND_LINE_MAX];
        size_t total = 0, size = 0;

        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        /* It may be held up: it must not hold anything that somebody waits for the end of. */
        if (dup2(output, STDIN_FILENO) < 0 || close_range(1, ~0U, 0) < 0)
                _exit(1);
        for (size_t i = 0; i < members->n && total < COMMAND_LINES_MAX; i++) {
                Header header = { .index = (uint32_t) i };

                if (read_line(members->pids[i], buffer, &size) < 0 || size == 0)
                        continue;
                header.size = (uint32_t) size;
                total += size;
                if (fd_write_all(STDIN_FILENO, &header, sizeof(header)) < 0 ||
                    fd_write_all(STDIN_FILENO, buffer, size) < 0)
                        _exit(1);
        }
        _exit(0);
}

/* ---- the service ------------------------------------------------------------------------------------------------ */

static Reading *reading_free(Reading *reading) {
        if (!reading)
                return NULL;
        (void) sd_event_source_disable_unref(reading->input);
        (void) sd_event_source_disable_unref(reading->child);
        (void) sd_event_source_disable_unref(reading->deadline);
        (void) fd_close(reading->pipe);
        (void) fd_close(reading->pidfd);
        for (size_t i = 0; reading->lines && i < reading->members.n; i++)
                free(reading->lines[i]);
        free(reading->lines);
        free(reading->buffer);
        members_done(&reading->members);
        free(reading);
        return NULL;
}
DEFINE_CLEANUP(Reading *, reading_free);

/* Takes whole lines out of the buffer. */
static void take_lines(Reading *reading) {
        size_t at = 0;
        Header header;

        while (reading->n_buffer - at >= sizeof(header)) {
                memcpy(&header, reading->buffer + at, sizeof(header));
                if (reading->n_buffer - at - sizeof(header) < header.size)
                        break;
                at += sizeof(header);
                if (header.index < reading->members.n && !reading->lines[header.index])
                        reading->lines[header.index] = command_line_clean(reading->buffer + at, header.size);
                at += header.size;
        }
        memmove(reading->buffer, reading->buffer + at, reading->n_buffer - at);
        reading->n_buffer -= at;
}

/* Reads what is there. 0 at the end. */
static ssize_t read_input(Reading *reading) {
        ssize_t n;

        n = read(reading->pipe, reading->buffer + reading->n_buffer,
                 sizeof(Header) + COMMAND_LINE_MAX - reading->n_buffer);
        if (n < 0)
                return -errno;
        reading->n_buffer += (size_t) n;
        take_lines(reading);
        return n;
}

static void tell(Reading *reading) {
        command_lines_done_t done = reading->done;

        reading->done = NULL;
        reading->input = sd_event_source_disable_unref(reading->input);
        reading->deadline = sd_event_source_disable_unref(reading->deadline);
        for (size_t i = 0; i < reading->members.n; i++)
                if (!reading->lines[i])
                        reading->lines[i] = strdup("");
        if (done)
                done(&reading->members, reading->lines, reading->userdata);
}

static int on_input(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        Reading *reading = userdata;
        ssize_t n = read_input(reading);

        if (n == 0 || (n < 0 && n != -EAGAIN && n != -EINTR))
                tell(reading);
        return 0;
}

/* The object lives until the child is reaped, and nothing waits for that. */
static int on_child(sd_event_source *source, const siginfo_t *si, void *userdata) {
        Reading *reading = userdata;

        while (reading->done && read_input(reading) > 0)
                ;
        tell(reading);
        (void) reading_free(reading);
        return 0;
}

static int on_deadline(sd_event_source *source, uint64_t usec, void *userdata) {
        Reading *reading = userdata;

        (void) pidfd_send_signal(reading->pidfd, SIGKILL, NULL, 0);
        tell(reading);
        return 0;
}

static int start_child(Reading *reading) {
        int pair[2], r;
        pid_t pid;

        if (pipe2(pair, O_CLOEXEC) < 0)
                return -errno;
        reading->pipe = pair[0];
        pid = fork();
        if (pid == 0)
                run_child(&reading->members, pair[1]);
        r = pid < 0 ? -errno : fd_set_nonblock(pair[0], 1);
        (void) fd_close(pair[1]);
        if (pid < 0)
                return r;
        reading->pidfd = pidfd_open(pid, 0);
        if (reading->pidfd < 0 || r < 0) {
                r = reading->pidfd < 0 ? -errno : r;
                (void) kill(pid, SIGKILL);
                (void) waitpid(pid, NULL, 0);
        }
        return r;
}

int command_lines_read(sd_event *event, Members *members, command_lines_done_t done, void *userdata) {
        _cleanup_(reading_freep) Reading *reading = NULL;
        int r;

        reading = calloc(1, sizeof(*reading));
        if (!reading)
                return -ENOMEM;
        reading->pipe = reading->pidfd = -EBADF;
        reading->buffer = malloc(sizeof(Header) + COMMAND_LINE_MAX);
        reading->lines = calloc(members->n + 1, sizeof(char *));
        if (!reading->buffer || !reading->lines)
                return -ENOMEM;
        reading->members = *members;
        r = start_child(reading);
        if (r >= 0)
                r = sd_event_add_child_pidfd(event, &reading->child, reading->pidfd, WEXITED, on_child,
                                             reading);
        if (r >= 0)
                r = sd_event_add_io(event, &reading->input, reading->pipe, EPOLLIN, on_input, reading);
        if (r >= 0)
                r = sd_event_add_time_relative(event, &reading->deadline, CLOCK_MONOTONIC,
                                               COMMAND_LINES_USEC, 0, on_deadline, reading);
        if (r < 0) {
                if (reading->pidfd >= 0 && pidfd_send_signal(reading->pidfd, SIGKILL, NULL, 0) >= 0) {
                        reading->child = sd_event_source_disable_unref(reading->child);
                        (void) waitid(P_PIDFD, (id_t) reading->pidfd, &(siginfo_t) {}, WEXITED);
                }
                reading->members = (Members) {};
                return r;
        }
        *members = (Members) {};
        reading->done = done;
        reading->userdata = userdata;
        TAKE_PTR(reading);
        return 0;
}
