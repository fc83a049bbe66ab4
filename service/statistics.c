/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/statistics.h"

#include <assert.h>
#include <errno.h>

#include "service/cgroup-parse.h"
#include "util/cleanup.h"
#include "util/fd.h"

#define FILE_MAX (1U << 20) /* io.stat has a line for each device */
#define NSEC_PER_USEC 1000U

typedef enum Form {
        FORM_KEY,      /* "key value" lines */
        FORM_USEC,     /* the same, to be told in nanoseconds */
        FORM_NUMBER,   /* one number; "max" is not told */
        FORM_IO,       /* io.stat */
        FORM_PRESSURE, /* the total of a line */
} Form;

typedef struct Source {
        const char *name, *file;
        Form form;
        const char *key;
} Source;

static const Source sources[] = {
        { "CPUUsageNSec", "cpu.stat", FORM_USEC, "usage_usec" },
        { "CPUUserNSec", "cpu.stat", FORM_USEC, "user_usec" },
        { "CPUSystemNSec", "cpu.stat", FORM_USEC, "system_usec" },
        { "MemoryCurrent", "memory.current", FORM_NUMBER, NULL },
        { "MemoryPeak", "memory.peak", FORM_NUMBER, NULL },
        { "MemorySwapCurrent", "memory.swap.current", FORM_NUMBER, NULL },
        { "OOMKills", "memory.events", FORM_KEY, "oom_kill" },
        { "TasksCurrent", "pids.current", FORM_NUMBER, NULL },
        { "IOReadBytes", "io.stat", FORM_IO, "rbytes" },
        { "IOWriteBytes", "io.stat", FORM_IO, "wbytes" },
        { "CPUPressureSomeUSec", "cpu.pressure", FORM_PRESSURE, "some" },
        { "CPUPressureFullUSec", "cpu.pressure", FORM_PRESSURE, "full" },
        { "MemoryPressureSomeUSec", "memory.pressure", FORM_PRESSURE, "some" },
        { "MemoryPressureFullUSec", "memory.pressure", FORM_PRESSURE, "full" },
        { "IOPressureSomeUSec", "io.pressure", FORM_PRESSURE, "some" },
        { "IOPressureFullUSec", "io.pressure", FORM_PRESSURE, "full" },
};
static_assert(ELEMENTSOF(sources) <= STATISTICS_MAX, "there is room for all");

static int parse(const Source *source, const char *text, uint64_t *ret) {
        int r;

        switch (source->form) {
        case FORM_KEY:
                return cgroup_parse_key(text, source->key, ret);
        case FORM_USEC:
                r = cgroup_parse_key(text, source->key, ret);
                if (r >= 0 && __builtin_mul_overflow(*ret, (uint64_t) NSEC_PER_USEC, ret))
                        *ret = UINT64_MAX;
                return r;
        case FORM_NUMBER:
                r = cgroup_parse_number(text, ret);
                return r >= 0 && *ret == UINT64_MAX ? -ENODATA : r;
        case FORM_IO:
                *ret = cgroup_parse_io(text, source->key);
                return 0;
        case FORM_PRESSURE:
                return cgroup_parse_pressure(text, source->key, ret);
        }
        return -EINVAL;
}

int statistics_read(int fd, Statistic ret[STATISTICS_MAX], size_t *ret_n) {
        _cleanup_free_ char *text = NULL;
        const char *file = NULL;
        size_t n = 0;
        int r = 0;

        for (const Source *source = sources; source < sources + ELEMENTSOF(sources); source++) {
                uint64_t value;

                /* Lines of one file follow each other, so that it is read once. */
                if (source->file != file) {
                        free(text);
                        text = NULL;
                        r = fd_read_file(fd, source->file, 0, FILE_MAX, &text, NULL);
                        if (r == -ENODEV)
                                return r;
                        file = source->file;
                }
                if (r >= 0 && parse(source, text, &value) >= 0)
                        ret[n++] = (Statistic) { source->name, value };
        }
        /* Every group of version 2 has cpu.stat. */
        if (n == 0)
                return -ENODEV;
        *ret_n = n;
        return 0;
}
