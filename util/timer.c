/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "util/timer.h"

#include <time.h>

int timer_start(sd_event *event, uint64_t usec, sd_event_time_handler_t callback, void *userdata,
                sd_event_source **ret) {
        uint64_t now, at;
        int r;

        if (usec == UINT64_MAX)
                return 0;
        r = sd_event_now(event, CLOCK_MONOTONIC, &now);
        if (r < 0)
                return r;
        at = usec > UINT64_MAX - 1 - now ? UINT64_MAX - 1 : now + usec;
        /* An accuracy of 1 µs: 0 would stand for sd-event's default of 250 ms. */
        return sd_event_add_time(event, ret, CLOCK_MONOTONIC, at, 1, callback, userdata);
}
