/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A time-out of a client's choosing: any value is fine, and the greatest is none at all. */
#pragma once

#include <stdint.h>
#include <systemd/sd-event.h>

/* When usec microseconds from now are over, on the monotonic clock; what the clock cannot reach, as UINT64_MAX, is the farthest
 * that it can. */
int timer_at(sd_event *event, uint64_t usec, uint64_t *ret);

/* Calls back once after usec microseconds of the monotonic clock. UINT64_MAX is no time-out: 0 is returned and *ret is left as
 * it was. What the clock cannot reach is the farthest that it can, where sd_event_add_time_relative(3) has -EOVERFLOW. */
int timer_start(sd_event *event, uint64_t usec, sd_event_time_handler_t callback, void *userdata,
                sd_event_source **ret);
