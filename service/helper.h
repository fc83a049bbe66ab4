/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The one way the service runs a program of its own. Each helper is waited for by its own pidfd, so no other wait can
 * take its status and it takes nobody else's. */
#pragma once

#include <stdint.h>
#include <systemd/sd-event.h>

#include "util/cleanup.h"

typedef struct Helper Helper;

/* How it ended, as waitid(2) tells; a helper over its time is killed and told with code 0 and status -ETIMEDOUT. */
typedef void (*helper_exited_t)(Helper *helper, int code, int status, void *userdata);

/* Starts argv[0] (a path, or a name looked for in PATH), with /dev/null as standard input and output, the service's
 * standard error, all signals default and none blocked. `callback` comes once, from the event loop; the helper is
 * freed after it. 0 and *ret, or negative errno (-ENOENT: there is no such program). */
int helper_start(sd_event *event, char *const argv[], uint64_t timeout_usec, helper_exited_t callback,
                 void *userdata, Helper **ret);

/* Kills a helper that still runs, reaps it, and forgets it without a call. Returns NULL. */
Helper *helper_free(Helper *helper);
DEFINE_CLEANUP(Helper *, helper_free);
