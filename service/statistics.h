/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The numbers of a control group, by the names that GetStatistics has for them: org.berth1(5) says what each means. Counters
 * only, so that rates are for the reader to compute. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define STATISTICS_MAX 24U

typedef struct Statistic {
        const char *name;
        uint64_t value;
} Statistic;

/* Reads what the host can tell about the group whose directory this is. -ENODEV: it is gone. */
int statistics_read(int fd, Statistic ret[STATISTICS_MAX], size_t *ret_n);
