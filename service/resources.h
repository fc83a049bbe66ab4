/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a container may use of the host, as its control group limits it: one table of keys, controllers and files. For a scope
 * the same keys are systemd's properties (systemd.resource-control(5)). */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-bus.h>

typedef enum Resource {
        RESOURCE_MEMORY_MAX,
        RESOURCE_MEMORY_HIGH,
        RESOURCE_MEMORY_SWAP_MAX,
        RESOURCE_TASKS_MAX,
        RESOURCE_CPU_WEIGHT,
        RESOURCE_CPU_QUOTA,
        RESOURCE_IO_WEIGHT,
        _RESOURCE_MAX,
        _RESOURCE_INVALID = -EINVAL,
} Resource;

#define RESOURCE_NONE UINT64_MAX

typedef struct Resources {
        uint64_t values[_RESOURCE_MAX]; /* RESOURCE_NONE: no limit, or the weight that all have */
        uint32_t given;                 /* bit n: values[n] was given, be it to say that there is none */
        char *allowed_cpus;             /* owned: a list, or NULL: all */
        bool allowed_cpus_given;
} Resources;

/* Nothing given. */
void resources_init(Resources *resources);
void resources_done(Resources *resources);

/* The key of the spec, which is systemd's property. */
const char *resource_to_string(Resource resource);
Resource resource_from_string(const char *key);

/* Check and set; InvalidSpec naming the key. An empty list is all processors. */
int resources_set(Resources *resources, Resource resource, uint64_t value, sd_bus_error *error);
int resources_set_allowed_cpus(Resources *resources, const char *list, sd_bus_error *error);

/* What was given in `from` replaces what is there. */
int resources_merge(Resources *resources, const Resources *from);

/* Whether each limit that is one has its controller: NotSupported naming the key. `unified` asks for one in the unified
 * hierarchy, where version 1 has nothing like it. */
typedef bool (*resources_has_t)(const void *userdata, const char *controller, bool unified);
int resources_check(const Resources *resources, resources_has_t has, const void *userdata,
                    sd_bus_error *error);

/* Writes what was given to the files of a group. On an error *ret_key is the key that could not be set. */
int resources_write(const Resources *resources, int fd, const char **ret_key);

/* Appends what was given to an open array of (sv), as systemd wants it. */
int resources_append(const Resources *resources, sd_bus_message *message);
