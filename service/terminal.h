/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One pty in a container's own devpts: its size, its hand-over and its hang-up. The service keeps the slave only, so
 * that the client who got the master is its one holder (pty(7), devpts(5) in mount(8)). */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <systemd/sd-event.h>

#include "util/cleanup.h"

typedef struct TerminalSize {
        uint16_t rows, columns, x_pixels, y_pixels;
} TerminalSize;

#define TERMINAL_SIZE_DEFAULT ((TerminalSize) { .rows = 24, .columns = 80 })

typedef struct Terminal Terminal;

/* The client has gone: every copy of the master is closed. Called once, from the event loop. */
typedef void (*terminal_hung_up_t)(Terminal *terminal, void *userdata);

/* Makes a devpts instance as a detached mount (needs CAP_SYS_ADMIN). `tty_gid` owns the slaves; (gid_t) -1: whoever
 * opens them. A descriptor of the caller's, or negative errno. */
int terminal_make_devpts(gid_t tty_gid);

/* Makes a pty of this size in a devpts, which stays the caller's. */
int terminal_new(int devpts, TerminalSize size, Terminal **ret);

/* Takes the master of a pty that a launched child made, also on an error. */
int terminal_adopt(int master, Terminal **ret);

/* Closes everything that the service holds of it. Returns NULL. */
Terminal *terminal_free(Terminal *terminal);
DEFINE_CLEANUP(Terminal *, terminal_free);

/* The slave's descriptor, borrowed. */
int terminal_slave(const Terminal *terminal);

/* Hands over the master: the caller owns it now, and the service has none any more. -EBADF when it was handed over
 * before. */
int terminal_take_master(Terminal *terminal);

/* Watches for the hang-up; to be called once, when the master is about to be handed over. */
int terminal_watch(Terminal *terminal, sd_event *event, terminal_hung_up_t callback, void *userdata);

/* Sets the size; the foreground process group gets SIGWINCH when it changes. A terminal that is hung up takes it
 * without effect. 0 or negative errno. */
int terminal_resize(Terminal *terminal, TerminalSize size);

int terminal_get_size(const Terminal *terminal, TerminalSize *ret);
