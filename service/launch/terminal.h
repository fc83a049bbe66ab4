/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The container's terminal, and standard input, output and error. */
#pragma once

#include "service/launch/child.h"

/* Makes a pty in the devpts mount, sends the mount and the master to berthd, keeps the slave in
 * child->tty. */
int terminal_make(Child *child, int devpts);

/* Before the host's files are out of reach: fills what of standard input, output and error has no
 * descriptor. */
int terminal_prepare(Child *child);

/* Gives the terminal, or the pipes that the service made, to the user, and puts descriptors 0 to 2 in their place. */
int terminal_place(Child *child);

/* Begins a session and makes the terminal, on descriptor 0, the controlling one. */
int terminal_take(Child *child);
