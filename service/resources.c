/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/resources.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "service/cgroup-parse.h"
#include "service/spec-check.h"
#include "util/cleanup.h"
#include "util/fd.h"
#include "util/quote.h"

#define WEIGHT_MAX 10000U
#define WEIGHT_DEFAULT 100U
#define ALLOWED_CPUS "AllowedCPUs"

/* The kernel takes no quota below 1 ms. */
#define QUOTA_MIN_USEC 1000U
#define PERIOD_USEC 100000U
#define PERIOD_LONG_USEC 1000000U

typedef struct Row {
        const char *key, *controller, *file;
        bool unified; /* version 1 has nothing like it */
        uint64_t min, max;
} Row;

static const Row rows[_RESOURCE_MAX] = {
        [RESOURCE_MEMORY_MAX] = { "MemoryMax", "memory", "memory.max", false, 1, UINT64_MAX },
        [RESOURCE_MEMORY_HIGH] = { "MemoryHigh", "memory", "memory.high", true, 1, UINT64_MAX },
        [RESOURCE_MEMORY_SWAP_MAX] = { "MemorySwapMax", "memory", "memory.swap.max", true, 0, UINT64_MAX },
        [RESOURCE_TASKS_MAX] = { "TasksMax", "pids", "pids.max", false, 1, UINT64_MAX },
        [RESOURCE_CPU_WEIGHT] = { "CPUWeight", "cpu", "cpu.weight", false, 1, WEIGHT_MAX },
        [RESOURCE_CPU_QUOTA] = { "CPUQuotaPerSecUSec", "cpu", "cpu.max", false, 1, UINT64_MAX },
        [RESOURCE_IO_WEIGHT] = { "IOWeight", "io", "io.weight", true, 1, WEIGHT_MAX },
};

void resources_init(Resources *resources) {
        *resources = (Resources) {};
        for (Resource i = 0; i < _RESOURCE_MAX; i++)
                resources->values[i] = RESOURCE_NONE;
}

void resources_done(Resources *resources) {
        free(resources->allowed_cpus);
        resources->allowed_cpus = NULL;
}

const char *resource_to_string(Resource resource) {
        return resource >= 0 && resource < _RESOURCE_MAX ? rows[resource].key : NULL;
}

Resource resource_from_string(const char *key) {
        for (Resource i = 0; i < _RESOURCE_MAX; i++)
                if (strcmp(rows[i].key, key) == 0)
                        return i;
        return _RESOURCE_INVALID;
}

int resources_set(Resources *resources, Resource resource, uint64_t value, sd_bus_error *error) {
        const Row *row = rows + resource;

        if (value < row->min)
                return spec_invalid(error, "%s: %llu is out of range, give at least %llu.", row->key,
                                    (unsigned long long) value, (unsigned long long) row->min);
        if (value > row->max && value != RESOURCE_NONE)
                return spec_invalid(error, "%s: %llu is out of range, give at most %llu.", row->key,
                                    (unsigned long long) value, (unsigned long long) row->max);
        resources->values[resource] = value;
        resources->given |= UINT32_C(1) << resource;
        return 0;
}

int resources_set_allowed_cpus(Resources *resources, const char *list, sd_bus_error *error) {
        uint8_t mask[CPU_LIST_MAX / 8];
        char *copy = NULL;
        size_t n;

        if (*list) {
                if (cpu_list_parse(list, mask, &n) < 0)
                        return spec_invalid(error,
                                            ALLOWED_CPUS
                                            ": \"%s\" is no list of processors below %u, such as "
                                            "\"0-3,8\".",
                                            QUOTE(list), CPU_LIST_MAX);
                copy = strdup(list);
                if (!copy)
                        return -ENOMEM;
        }
        free(resources->allowed_cpus);
        resources->allowed_cpus = copy;
        resources->allowed_cpus_given = true;
        return 0;
}

int resources_merge(Resources *resources, const Resources *from) {
        char *copy = NULL;

        if (from->allowed_cpus) {
                copy = strdup(from->allowed_cpus);
                if (!copy)
                        return -ENOMEM;
        }
        if (from->allowed_cpus_given) {
                free(resources->allowed_cpus);
                resources->allowed_cpus = copy;
                resources->allowed_cpus_given = true;
        }
        for (Resource i = 0; i < _RESOURCE_MAX; i++)
                if (from->given & UINT32_C(1) << i)
                        resources->values[i] = from->values[i];
        resources->given |= from->given;
        return 0;
}

static int lacking(const char *key, const char *controller, sd_bus_error *error) {
        return spec_not_supported(error, "%s: there is no %s controller to use", key, controller);
}

int resources_check(const Resources *resources, resources_has_t has, const void *userdata,
                    sd_bus_error *error) {
        for (const Row *row = rows; row < rows + _RESOURCE_MAX; row++)
                if (resources->values[row - rows] != RESOURCE_NONE &&
                    !has(userdata, row->controller, row->unified))
                        return lacking(row->key, row->controller, error);
        if (resources->allowed_cpus && !has(userdata, "cpuset", true))
                return lacking(ALLOWED_CPUS, "cpuset", error);
        return 0;
}

/* The kernel wants a part of a period, and no part below 1 ms. */
static void print_quota(uint64_t usec_per_sec, char *text, size_t size) {
        uint64_t part = usec_per_sec / (PERIOD_LONG_USEC / PERIOD_USEC), period = PERIOD_USEC;

        if (part < QUOTA_MIN_USEC) {
                part = usec_per_sec < QUOTA_MIN_USEC ? QUOTA_MIN_USEC : usec_per_sec;
                period = PERIOD_LONG_USEC;
        }
        (void) snprintf(text, size, "%llu %llu", (unsigned long long) part, (unsigned long long) period);
}

static int write_value(Resource resource, uint64_t value, int fd) {
        const char *prefix = resource == RESOURCE_IO_WEIGHT ? "default " : "";
        char text[64];
        int r;

        if (rows[resource].max == WEIGHT_MAX && value == RESOURCE_NONE)
                (void) snprintf(text, sizeof(text), "%s%u", prefix, WEIGHT_DEFAULT);
        else if (value == RESOURCE_NONE)
                (void) snprintf(text, sizeof(text), "max");
        else if (resource == RESOURCE_CPU_QUOTA)
                print_quota(value, text, sizeof(text));
        else
                (void) snprintf(text, sizeof(text), "%s%llu", prefix, (unsigned long long) value);
        r = fd_write_file(fd, rows[resource].file, text);
        /* Where there is no controller there is no limit either. */
        return r == -ENOENT && value == RESOURCE_NONE ? 0 : r;
}

int resources_write(const Resources *resources, int fd, const char **ret_key) {
        int r;

        for (Resource i = 0; i < _RESOURCE_MAX; i++) {
                if (!(resources->given & UINT32_C(1) << i))
                        continue;
                r = write_value(i, resources->values[i], fd);
                if (r < 0) {
                        *ret_key = rows[i].key;
                        return r;
                }
        }
        if (!resources->allowed_cpus_given)
                return 0;
        r = fd_write_file(fd, "cpuset.cpus", resources->allowed_cpus ?: "\n");
        if (r == -ENOENT && !resources->allowed_cpus)
                return 0;
        if (r < 0)
                *ret_key = ALLOWED_CPUS;
        return r;
}

static int append_allowed_cpus(const Resources *resources, sd_bus_message *message) {
        uint8_t mask[CPU_LIST_MAX / 8];
        size_t n = 0;
        int r;

        if (resources->allowed_cpus) {
                r = cpu_list_parse(resources->allowed_cpus, mask, &n);
                if (r < 0)
                        return r;
        }
        r = sd_bus_message_open_container(message, 'r', "sv");
        if (r >= 0)
                r = sd_bus_message_append(message, "s", ALLOWED_CPUS);
        if (r >= 0)
                r = sd_bus_message_open_container(message, 'v', "ay");
        if (r >= 0)
                r = sd_bus_message_append_array(message, 'y', mask, n);
        if (r >= 0)
                r = sd_bus_message_close_container(message);
        return r < 0 ? r : sd_bus_message_close_container(message);
}

int resources_append(const Resources *resources, sd_bus_message *message) {
        int r;

        for (Resource i = 0; i < _RESOURCE_MAX; i++) {
                if (!(resources->given & UINT32_C(1) << i))
                        continue;
                r = sd_bus_message_append(message, "(sv)", rows[i].key, "t", resources->values[i]);
                if (r < 0)
                        return r;
        }
        return resources->allowed_cpus_given ? append_allowed_cpus(resources, message) : 0;
}
