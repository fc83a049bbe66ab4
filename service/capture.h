/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A program run to its end whose output comes back as bytes: the one place where the service touches what programs read
 * and write, on the event loop, without blocking, and bounded. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-bus.h>

#include "service/client.h"
#include "service/container.h"
#include "service/manager.h"
#include "service/options.h"
#include "service/spec.h"

/* Of each of the two outputs. */
#define CAPTURE_MAX (1U << 20)

typedef struct CaptureOptions {
        void *input; /* owned; NULL: the null device */
        size_t input_size;
        uint64_t timeout_usec; /* from the call on; UINT64_MAX: none */
} CaptureOptions;

#define CAPTURE_OPTIONS_INIT \
        { .timeout_usec = UINT64_MAX }

void capture_options_done(CaptureOptions *options);

typedef struct CaptureResult {
        int exit_code, exit_status; /* as waitid(2) has them */
        const void *output[2];      /* borrowed for the call: standard output and error */
        size_t output_size[2];
} CaptureResult;

/* The outcome: a result, or an error (OutputTooLarge, Timeout, Cancelled, those of a start), after which the program is
 * dead or, when the client has gone, is being killed. Exactly once for each capture that was accepted, from the event
 * loop. */
typedef void (*capture_done_t)(const CaptureResult *result, const sd_bus_error *error, void *userdata);

/* Exec, to the end. Takes spec, options and what; options must have no standard streams. Whoever holds the pipes beyond
 * the end of the program is not waited for. Errors as exec_start(); InvalidArgs. */
int capture_exec(Container *container, Spec *spec, StartOptions *options, CaptureOptions *what,
                 Client *client, capture_done_t done, void *userdata, sd_bus_error *error);

/* A container created, run and removed: the object is gone before `done` is called. Likewise; errors as manager_run(). */
int capture_run(Manager *manager, const char *name, Spec *spec, StartOptions *options, CaptureOptions *what,
                Client *client, capture_done_t done, void *userdata, sd_bus_error *error);
