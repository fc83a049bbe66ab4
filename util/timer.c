/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "util/timer.h"

#include <time.h>

int timer_at(sd_event *event, uint64_t usec, uint64_t *ret) {
        uint64_t now;
        int r;

        r = sd_event_now(event, CLOCK_MONOTONIC, &now);
        if (r < 0)
                return r;
        *ret = usec > UINT64_MAX - 1 - now ? UINT64_MAX - 1 : now + usec;
        return 0;
}

int timer_start(sd_event *event, uint64_t usec, sd_event_time_handler_t callback, void *userdata,
                sd_event_source **ret) {
        uint64_t at;
        int r;

        if (usec == UINT64_MAX)
                return 0;
        r = timer_at(event, usec, &at);
        if (r < 0)
                return r;
        /* An accuracy of 1 µs: 0 would stand for sd-event's default of 250 ms. */
        return sd_event_add_time(event, ret, CLOCK_MONOTONIC, at, 1, callback, userdata);
}
