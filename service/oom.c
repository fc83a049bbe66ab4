/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/oom.h"

#include <errno.h>
#include <unistd.h>

#include "service/cgroup-parse.h"

#define EVENTS_MAX 1024

int oom_counter_update(OomCounter *counter, uint64_t now_usec) {
        char text[EVENTS_MAX];
        uint64_t kills;
        ssize_t n;
        int r;

        if (counter->fd < 0)
                return 0;
        n = pread(counter->fd, text, sizeof(text) - 1, 0);
        if (n < 0)
                return -errno;
        text[n] = '\0';
        r = cgroup_parse_key(text, "oom_kill", &kills);
        if (r < 0)
                return r;
        if (kills > counter->kills) {
                counter->kills = kills;
                counter->at_usec = now_usec;
        }
        return 0;
}

bool oom_counter_explains(const OomCounter *counter, uint64_t now_usec) {
        return counter->at_usec > 0 && now_usec - counter->at_usec <= OOM_EXPLAINS_USEC;
}

void oom_counter_claim(OomCounter *counter) {
        counter->at_usec = 0;
}
