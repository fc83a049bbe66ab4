/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Flat memory for a LaunchPlan: a growing block in which things are found by their offset, aligned to 8
 * bytes. An error sticks: whoever builds goes on and asks once, at the end. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "service/launch/message.h"

typedef struct PlanBuilder {
        char *data; /* owned; moves as it grows */
        size_t size, room;
        int error; /* 0, -ENOMEM or -E2BIG (beyond LAUNCH_PLAN_MAX) */
} PlanBuilder;

void plan_builder_done(PlanBuilder *builder);

/* Each appends and returns the offset; 0 once there has been an error. Bytes given as NULL are zeros. */
uint32_t plan_builder_bytes(PlanBuilder *builder, const void *bytes, size_t size);

/* NULL is 0. */
LaunchString plan_builder_string(PlanBuilder *builder, const char *s);

/* A list of n strings with spare slots behind the closing NULL. */
LaunchList plan_builder_list(PlanBuilder *builder, const char *const *strings, size_t n, size_t spare);
