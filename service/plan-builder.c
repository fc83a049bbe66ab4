/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/plan-builder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ALIGN8(n) (((n) + 7U) & ~(size_t) 7U)

void plan_builder_done(PlanBuilder *builder) {
        free(builder->data);
        *builder = (PlanBuilder) { 0 };
}

uint32_t plan_builder_bytes(PlanBuilder *builder, const void *bytes, size_t size) {
        size_t offset = builder->size, end;

        if (builder->error < 0)
                return 0;
        if (size > LAUNCH_PLAN_MAX || offset + ALIGN8(size) > LAUNCH_PLAN_MAX) {
                builder->error = -E2BIG;
                return 0;
        }
        end = offset + ALIGN8(size);
        if (end > builder->room) {
                size_t room = builder->room ? builder->room : 8192;
                char *bigger;

                while (room < end)
                        room *= 2;
                bigger = realloc(builder->data, room);
                if (!bigger) {
                        builder->error = -ENOMEM;
                        return 0;
                }
                builder->data = bigger;
                builder->room = room;
        }
        /* The padding too: the plan goes to another process, and nothing of the heap's past with it. */
        memset(builder->data + offset, 0, end - offset);
        if (bytes && size > 0)
                memcpy(builder->data + offset, bytes, size);
        builder->size = end;
        return (uint32_t) offset;
}

LaunchString plan_builder_string(PlanBuilder *builder, const char *s) {
        return s ? plan_builder_bytes(builder, s, strlen(s) + 1) : 0;
}

LaunchList plan_builder_list(PlanBuilder *builder, const char *const *strings, size_t n, size_t spare) {
        LaunchList list = { .n = (uint32_t) n, .slots = (uint32_t) (n + 1 + spare) };

        if (n + 1 + spare > LAUNCH_PLAN_MAX / sizeof(uint64_t)) {
                builder->error = builder->error < 0 ? builder->error : -E2BIG;
                return (LaunchList) { 0 };
        }
        list.offset = plan_builder_bytes(builder, NULL, list.slots * sizeof(uint64_t));
        for (size_t i = 0; i < n; i++) {
                uint64_t slot = plan_builder_string(builder, strings[i]);

                if (builder->error < 0)
                        return (LaunchList) { 0 };
                memcpy(builder->data + list.offset + i * sizeof(slot), &slot, sizeof(slot));
        }
        return list;
}
