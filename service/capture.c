/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/capture.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "interfaces/names.h"
#include "service/exec.h"
#include "util/fd.h"
#include "util/timer.h"

/* A pipe's contents at most, by default; also how much one turn of the event loop reads. */
#define CHUNK (64U << 10)

typedef struct Stream {
        struct Capture *capture;
        int fd; /* owned */
        sd_event_source *source;
        char *data; /* owned: what was read */
        size_t size, room;
} Stream;

typedef struct Capture {
        sd_event *event;      /* owned reference */
        Client *client;       /* owned reference */
        Exec *exec;           /* owned reference; NULL: the container itself */
        Container *container; /* owned reference */
        Stream output[2];
        int input; /* owned: the writing end */
        sd_event_source *input_source, *timer;
        CaptureOptions what; /* owned */
        size_t written;
        bool running;
        sd_bus_error failure; /* owned: why it is being killed */
        capture_done_t done;
        void *userdata;
} Capture;

void capture_options_done(CaptureOptions *options) {
        free(options->input);
        options->input = NULL;
}

static void stream_close(Stream *stream) {
        stream->source = sd_event_source_disable_unref(stream->source);
        stream->fd = fd_close(stream->fd);
}

static void close_input(Capture *capture) {
        capture->input_source = sd_event_source_disable_unref(capture->input_source);
        capture->input = fd_close(capture->input);
}

static Capture *capture_free(Capture *capture) {
        if (!capture)
                return NULL;
        for (size_t i = 0; i < ELEMENTSOF(capture->output); i++) {
                stream_close(&capture->output[i]);
                free(capture->output[i].data);
        }
        close_input(capture);
        (void) sd_event_source_disable_unref(capture->timer);
        capture_options_done(&capture->what);
        sd_bus_error_free(&capture->failure);
        (void) exec_unref(capture->exec);
        (void) container_unref(capture->container);
        (void) client_unref(capture->client);
        (void) sd_event_unref(capture->event);
        free(capture);
        return NULL;
}
DEFINE_CLEANUP(Capture *, capture_free);

static void finish(Capture *capture, const CaptureResult *result, const sd_bus_error *error) {
        /* The reason for which it was killed says more than what came of that. */
        if (sd_bus_error_is_set(&capture->failure)) {
                error = &capture->failure;
                result = NULL;
        }
        capture->done(result, error, capture->userdata);
        (void) capture_free(capture);
}

/* May free the capture, when the start had not begun. */
static void kill_program(Capture *capture) {
        for (size_t i = 0; i < ELEMENTSOF(capture->output); i++)
                stream_close(&capture->output[i]);
        close_input(capture);
        if (!capture->exec)
                (void) container_stop(capture->container, 0, NULL, NULL, NULL, NULL);
        else if (capture->running)
                (void) process_signal_group(capture->exec->process, SIGKILL);
        else
                exec_cancel_start(capture->exec);
}

/* ---- bytes ------------------------------------------------------------------------------------------------------ */

static int make_room(Stream *stream) {
        size_t room = stream->room ? stream->room * 2 : CHUNK;
        char *data;

        /* One byte more than is allowed tells that there is more. */
        if (room > CAPTURE_MAX + 1)
                room = CAPTURE_MAX + 1;
        data = realloc(stream->data, room);
        if (!data)
                return -ENOMEM;
        stream->data = data;
        stream->room = room;
        return 0;
}

/* 1: something was read; 0: the end; -EAGAIN: nothing now; -EFBIG: more than is allowed. */
static int read_some(Stream *stream) {
        ssize_t n;
        int r;

        if (stream->size == stream->room) {
                r = make_room(stream);
                if (r < 0)
                        return r;
        }
        n = read(stream->fd, stream->data + stream->size, stream->room - stream->size);
        if (n < 0)
                return errno == EINTR ? 1 : -errno;
        stream->size += (size_t) n;
        if (stream->size > CAPTURE_MAX)
                return -EFBIG;
        return n > 0;
}

static void set_read_failure(Capture *capture, int error) {
        if (error == -EFBIG)
                (void) sd_bus_error_setf(&capture->failure, BERTH_ERROR_OUTPUT_TOO_LARGE,
                                         "container %s: the output is larger than %u bytes, use pipes",
                                         capture->container->name, CAPTURE_MAX);
        else
                (void) sd_bus_error_set_errno(&capture->failure, error);
}

static int on_output(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        Stream *stream = userdata;
        int r;

        r = read_some(stream);
        if (r > 0 || r == -EAGAIN)
                return 0;
        stream_close(stream);
        if (r < 0) {
                set_read_failure(stream->capture, r);
                kill_program(stream->capture);
        }
        return 0;
}

/* What is there when the program has ended; a job that still holds the pipe may go on filling it. */
static int drain(Stream *stream) {
        int r = 0;

        while (stream->fd >= 0 && (r = read_some(stream)) > 0)
                ;
        return r == -EAGAIN ? 0 : r;
}

static int on_input(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        Capture *capture = userdata;
        const CaptureOptions *what = &capture->what;
        ssize_t n = 0;

        if (capture->written < what->input_size)
                n = write(fd, (const char *) what->input + capture->written,
                          what->input_size - capture->written);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return 0;
        /* A program need not read all of it: EPIPE is no error. */
        if (n >= 0)
                capture->written += (size_t) n;
        if (n < 0 || capture->written == what->input_size)
                close_input(capture);
        return 0;
}

static int watch_streams(Capture *capture, Process *process) {
        int r;

        for (unsigned i = 0; i < ELEMENTSOF(capture->output); i++) {
                Stream *stream = &capture->output[i];

                stream->capture = capture;
                stream->fd = process_take_stream(process, i + 1);
                r = fd_set_nonblock(stream->fd, 1);
                if (r >= 0)
                        r = sd_event_add_io(capture->event, &stream->source, stream->fd, EPOLLIN, on_output,
                                            stream);
                if (r < 0)
                        return r;
        }
        capture->input = process_take_stream(process, 0);
        if (capture->input < 0)
                return 0;
        r = fd_set_nonblock(capture->input, 1);
        return r < 0 ? r
                     : sd_event_add_io(capture->event, &capture->input_source, capture->input, EPOLLOUT,
                                       on_input, capture);
}

/* ---- life ------------------------------------------------------------------------------------------------------- */

static void on_exited(Process *process, const sd_bus_error *error, void *userdata) {
        Capture *capture = userdata;
        CaptureResult result = { .exit_code = process->exit_code, .exit_status = process->exit_status };

        if (error) {
                /* Nobody wants it any more. */
                kill_program(capture);
                finish(capture, NULL, error);
                return;
        }
        for (unsigned i = 0; i < ELEMENTSOF(capture->output); i++) {
                int r;

                r = drain(&capture->output[i]);
                if (r < 0 && !sd_bus_error_is_set(&capture->failure))
                        set_read_failure(capture, r);
                result.output[i] = capture->output[i].data;
                result.output_size[i] = capture->output[i].size;
        }
        finish(capture, &result, NULL);
}

static void on_started(Process *process, const sd_bus_error *error, void *userdata) {
        Capture *capture = userdata;
        int r;

        if (error) {
                finish(capture, NULL, error);
                return;
        }
        capture->running = true;
        if (!capture->exec)
                capture->container->remove_on_exit = true;
        r = watch_streams(capture, process);
        if (r >= 0)
                r = process_wait(process, capture->client, on_exited, capture);
        if (r < 0) {
                set_read_failure(capture, r);
                kill_program(capture);
                finish(capture, NULL, NULL);
        }
}

static int on_timeout(sd_event_source *source, uint64_t usec, void *userdata) {
        Capture *capture = userdata;

        (void) sd_event_source_set_enabled(source, SD_EVENT_OFF);
        if (!sd_bus_error_is_set(&capture->failure))
                (void) sd_bus_error_setf(&capture->failure, BERTH_ERROR_TIMEOUT,
                                         "container %s: the program took longer than TimeoutUSec",
                                         capture->container->name);
        kill_program(capture);
        return 0;
}

/* Takes what. */
static int capture_new(sd_event *event, StartOptions *options, CaptureOptions *what, Client *client,
                       capture_done_t done, void *userdata, Capture **ret) {
        _cleanup_(capture_freep) Capture *capture = NULL;

        capture = calloc(1, sizeof(*capture));
        if (!capture) {
                capture_options_done(what);
                return -ENOMEM;
        }
        capture->event = sd_event_ref(event);
        capture->client = client_ref(client);
        capture->input = capture->output[0].fd = capture->output[1].fd = -EBADF;
        capture->what = TAKE(*what, (CaptureOptions) CAPTURE_OPTIONS_INIT);
        capture->done = done;
        capture->userdata = userdata;

        options->stdio_given = true;
        options->streams[0] = capture->what.input_size > 0 ? STREAM_PIPE : STREAM_NULL;
        options->streams[1] = options->streams[2] = STREAM_PIPE;
        options->on_disconnect = ON_DISCONNECT_KILL;
        *ret = TAKE_PTR(capture);
        return 0;
}

static int arm(Capture *capture) {
        return timer_start(capture->event, capture->what.timeout_usec, on_timeout, capture, &capture->timer);
}

static int check(const Spec *spec, const StartOptions *options, sd_bus_error *error) {
        const char *key = NULL;

        if (spec->terminal)
                key = "Terminal";
        else if (options->stdio_given)
                key = "StandardInput, StandardOutput and StandardError";
        else if (options->on_disconnect != ON_DISCONNECT_DEFAULT &&
                 options->on_disconnect != ON_DISCONNECT_KILL)
                key = "OnDisconnect but kill";
        if (!key)
                return 0;
        (void) sd_bus_error_setf(error, BERTH_ERROR_INVALID_ARGS,
                                 "A captured program has pipes and its caller waits: leave %s out.", key);
        return -EINVAL;
}

int capture_exec(Container *container, Spec *spec, StartOptions *options, CaptureOptions *what,
                 Client *client, capture_done_t done, void *userdata, sd_bus_error *error) {
        _cleanup_options_ StartOptions given = options_take(options);
        _cleanup_(capture_freep) Capture *capture = NULL;
        _cleanup_spec_ Spec *owned = spec;
        int r;

        r = check(owned, &given, error);
        if (r >= 0)
                r = capture_new(container->manager->event, &given, what, client, done, userdata, &capture);
        if (r < 0)
                return r;
        capture->container = container_ref(container);
        r = arm(capture);
        if (r >= 0)
                r = exec_start(container, TAKE_PTR(owned), &given, client, on_started, capture, error);
        if (r < 0)
                return r;
        capture->exec = exec_ref(exec_find(container, container->last_exec));
        TAKE_PTR(capture);
        return 0;
}

int capture_run(Manager *manager, const char *name, Spec *spec, StartOptions *options, CaptureOptions *what,
                Client *client, capture_done_t done, void *userdata, sd_bus_error *error) {
        _cleanup_options_ StartOptions given = options_take(options);
        _cleanup_(capture_freep) Capture *capture = NULL;
        _cleanup_spec_ Spec *owned = spec;
        Container *container;
        int r;

        r = check(owned, &given, error);
        if (r >= 0)
                r = capture_new(manager->event, &given, what, client, done, userdata, &capture);
        if (r >= 0)
                r = arm(capture);
        if (r >= 0)
                r = manager_run(manager, name, TAKE_PTR(owned), &given, client, on_started, capture,
                                &container, error);
        if (r < 0)
                return r;
        capture->container = container_ref(container);
        TAKE_PTR(capture);
        return 0;
}
