/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The options of Start: a size for the terminal, what happens when the client goes, and standard streams. */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-bus.h>

#include "service/launcher.h"
#include "service/spec.h"
#include "util/cleanup.h"

typedef enum OnDisconnect {
        ON_DISCONNECT_DEFAULT, /* kill with a terminal, keep without */
        ON_DISCONNECT_HANGUP,
        ON_DISCONNECT_KEEP,
        ON_DISCONNECT_KILL,
        _ON_DISCONNECT_MAX,
        _ON_DISCONNECT_INVALID = -EINVAL,
} OnDisconnect;

/* NULL for the default, which has no word. */
const char *on_disconnect_to_string(OnDisconnect value);
OnDisconnect on_disconnect_from_string(const char *text);

/* What a standard stream is to be. */
typedef enum StreamKind {
        STREAM_DEFAULT, /* not given */
        STREAM_NULL,
        STREAM_PIPE, /* the client gets the other end */
        STREAM_JOURNAL,
        STREAM_DESCRIPTOR,
} StreamKind;

typedef struct StartOptions {
        uint16_t rows, columns, x_pixels, y_pixels; /* rows or columns 0: not given */
        OnDisconnect on_disconnect;
        bool stdio_given;      /* one of Standard* was */
        StreamKind streams[3]; /* error's is output's where it was not given */
        NumberedFd *numbered;  /* owned, and the descriptors in it */
        size_t n_numbered;
        int stdio[3]; /* owned: the program's descriptor, -EBADF where there is none (yet) */
} StartOptions;

#define START_OPTIONS_INIT                          \
        {                                           \
                .stdio = { -EBADF, -EBADF, -EBADF } \
        }

/* Closes the descriptors. */
void options_done(StartOptions *options);
#define _cleanup_options_ _cleanup_(options_done)

/* Takes everything out of *from, which is as new afterwards. */
StartOptions options_take(StartOptions *from);

/* Checks options against the spec that they start: Standard* together with Terminal is InvalidArgs, so is
 * OnDisconnect=hangup without one; OnDisconnect=keep with a terminal is NotSupported. */
int options_validate(const StartOptions *options, const Spec *spec, sd_bus_error *error);
