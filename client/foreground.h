/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A program in the foreground: sends the call that starts it, forwards its terminal and the signals that
 * berthctl gets, and turns its end into an exit status. Used by run, start and exec. */
#pragma once

#include <stdbool.h>
#include <systemd/sd-bus.h>

#include "client/connection.h"
#include "client/globals.h"

/* Whether standard input and output are both terminals. */
bool foreground_on_terminal(void);

/* Appends the options of RunContainer or Start as one a{sv} (the entries alone: to one that is open): the caller's size with a terminal; without one
 * the three standard streams (stdio) and OnDisconnect=kill, so that the program ends with a berthctl that is
 * killed. */
int foreground_append_options(sd_bus_message *call, bool terminal);
int foreground_append_entries(sd_bus_message *call, bool terminal);

/* Sends call and stays until the program has ended. path is the object's for Start, NULL for RunContainer and
 * Exec, whose replies tell it; interface is the one that it has. Returns the exit status, or negative errno with *error set. With a
 * terminal of the caller's it is in raw mode meanwhile, and as before afterwards. */
int foreground_run(const Globals *globals, Connection *connection, sd_bus_message *call, const char *path,
                   const char *interface, bool terminal, sd_bus_error *error);
