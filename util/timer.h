/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A time-out of a client's choosing: any value is fine, and the greatest is none at all. */
#pragma once

#include <stdint.h>
#include <systemd/sd-event.h>

/* Calls back once after usec microseconds of the monotonic clock. UINT64_MAX is no time-out: 0 is returned and *ret is left as
 * it was. What the clock cannot reach is the farthest that it can, where sd_event_add_time_relative(3) has -EOVERFLOW. */
int timer_start(sd_event *event, uint64_t usec, sd_event_time_handler_t callback, void *userdata,
                sd_event_source **ret);
