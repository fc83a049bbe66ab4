/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a terminal says while nobody is attached to it: the service's copy of a master, drained into a bounded ring. It
 * knows a descriptor and bytes; who is attached is the owner's.
 *
 * The description of a master is shared with clients, who may clear O_NONBLOCK between a poll and a read, and a
 * read of a tty can't be told not to wait. So a thread reads, one for each terminal that is
 * drained, and the event loop never does. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <systemd/sd-event.h>

#include "util/cleanup.h"

#define KEEP_RING_SIZE (256U * 1024U)

/* How long a drainer that was told to stop may take before it is cut off. */
#define KEEP_STOP_USEC (100U * 1000U)

typedef struct Keep Keep;

/* The drainer has ended: it was told to stop or was cut off (at_end false), or the output has ended (true). From the
 * event loop, once for each keep_drain() unless the object is freed before. */
typedef void (*keep_stopped_t)(Keep *keep, bool at_end, void *userdata);

/* Duplicates the master. Nothing is read before keep_drain(). */
int keep_new(sd_event *event, int master, keep_stopped_t stopped, void *userdata, Keep **ret);

/* Never waits: a drainer that is stuck is left to its own references and ends when its read returns. Returns NULL. */
Keep *keep_free(Keep *keep);
DEFINE_CLEANUP(Keep *, keep_free);

/* Begins to drain, after O_NONBLOCK, O_ASYNC and packet mode have been undone. -EBUSY while it drains already. */
int keep_drain(Keep *keep);

/* Tells the drainer to stop. `stopped` follows, in KEEP_STOP_USEC at the latest. Nothing happens while none drains. */
int keep_stop(Keep *keep);

bool keep_draining(const Keep *keep);

/* The newest bytes drained, KEEP_RING_SIZE at most, as a sealed memory file of the caller's; negative errno. A drainer may go
 * on meanwhile. */
int keep_scrollback(const Keep *keep);
