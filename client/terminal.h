/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The caller's terminal: its size, raw mode, and getting it back as it was on every way out. */
#pragma once

#include <stdbool.h>
#include <sys/ioctl.h>
#include <termios.h>

/* The size of the terminal on standard output, input or error, whichever is one. 0, or -ENOTTY when none is
 * or when it says 0×0, which means that nobody knows. */
int terminal_size(struct winsize *ret);

/* Remembers the settings of the terminal fd, and sees to it that they come back when the process ends: by
 * exit(3), or by any signal that would end it now and isn't blocked, crashes included. Once in a process. fd
 * stays the caller's and open. Returns 0 or negative errno. */
int terminal_save(int fd);

/* Sets raw mode, every byte passes as it is; also again after something else changed the settings. From the
 * background it does nothing: the terminal is somebody else's then. */
int terminal_raw(void);

/* The settings as they were saved. Does nothing when that has been done, or when nothing was saved. Safe in
 * a signal handler. */
void terminal_restore(void);

/* Gives the container's terminal the control characters and the UTF-8 flag of the one that was saved. master
 * may be either side. */
int terminal_copy_settings(int master);
