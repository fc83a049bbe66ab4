/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One call for each of several containers, all under way at once: stopping ten takes as long as the
 * slowest. */
#pragma once

#include <systemd/sd-bus.h>

#include "client/connection.h"

/* Appends the arguments of the call. */
typedef int (*EachAppend)(sd_bus_message *call, void *userdata);

/* Calls member of org.berth1.Container for each name and waits for all the replies. What fails is said at
 * once on standard error; the others go on. replies[i] (n of them, the caller's; ret may be NULL) stays NULL
 * for a failure. Returns the exit status: 0, or EXIT_BERTH when one failed; negative errno with *error set
 * when the whole did. */
int each_call(Connection *connection, char *const *names, size_t n, const char *member, EachAppend append,
              void *userdata, sd_bus_message **ret, sd_bus_error *error);
