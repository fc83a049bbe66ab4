/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What memory.events of a control group counts: processes killed for want of memory, in the group and below (oom_kill; a limit
 * of a nested group counts there, not in oom). It works on an open file, since the group can be gone when the count is wanted,
 * and on the caller's clock. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* How long after a kill an end by SIGKILL is put down to it: the memory of a large process takes time to free. */
#define OOM_EXPLAINS_USEC (5U * 1000U * 1000U)

typedef struct OomCounter {
        int fd; /* owned by the caller; -EBADF: nothing is ever counted */
        uint64_t kills;
        uint64_t at_usec; /* when it was last seen to rise; 0: never, or that one is explained already */
} OomCounter;

/* Reads the file. -ENODEV and the like when the group is gone: the counter stays as it was. */
int oom_counter_update(OomCounter *counter, uint64_t now_usec);

/* Whether a process that has just ended by SIGKILL was killed for want of memory. */
bool oom_counter_explains(const OomCounter *counter, uint64_t now_usec);

/* That end has been told: the same kill explains no other. */
void oom_counter_claim(OomCounter *counter);
