/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Forwards between the caller's standard input and output and a terminal's master, on an event loop: every
 * byte as it is, as fast as the slower side takes it. It knows no raw mode and no container. */
#pragma once

#include <sys/ioctl.h>
#include <systemd/sd-event.h>

#include "util/cleanup.h"

typedef struct Forward Forward;

typedef enum ForwardEnd {
        FORWARD_END_DRAINED, /* after forward_finish(): all output that there was has been written */
        FORWARD_END_OUTPUT,  /* the caller's output takes no more */
        FORWARD_END_INPUT,   /* the caller's input was a terminal and is gone */
} ForwardEnd;

/* Called once, from the loop; it may free the Forward. */
typedef void (*ForwardHandler)(ForwardEnd end, void *userdata);

/* Begins. master is taken over, also on error, and made non-blocking; input and output stay the caller's,
 * and their file descriptions, which the caller's shell may share, keep their flags. At the end of an input
 * that is no terminal the master gets its end-of-file character. *ret is the caller's. */
int forward_new(sd_event *event, int input, int output, int master, ForwardHandler handler, void *userdata,
                Forward **ret);

/* Gives the terminal this size, which its foreground processes hear of by SIGWINCH. */
void forward_resize(Forward *forward, const struct winsize *size);

/* The program has ended: writes what is left, and ends when the terminal says that there is no more (EIO),
 * or when nothing has come for one second because a process that outlived the program still holds the
 * terminal. */
void forward_finish(Forward *forward);

/* Ends at once and closes the master. Accepts NULL, returns NULL. */
Forward *forward_free(Forward *forward);
DEFINE_CLEANUP(Forward *, forward_free);
#define _cleanup_forward_ _cleanup_(forward_freep)
