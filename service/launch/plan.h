/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The child's view of the plan: berthd's flat data, checked, with its lists turned into arrays of
 * pointers. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "service/launch/message.h"

/* Free slots that the environment must have: HOME, USER, LOGNAME, SHELL. */
#define LAUNCH_ENVIRONMENT_SPARE 4

/* Checks size bytes of plan in place: every offset, count, string and constant that the child relies on.
 * The lists' slots become pointers, those behind the last one NULL. Nothing that passes lets the child
 * read or write outside of the mapping. 0, or -EINVAL. */
int launch_plan_check(void *data, size_t size);

/* Maps the memory file fd privately and checks it. *ret is never unmapped. 0 or negative errno. */
int launch_plan_map(int fd, LaunchPlan **ret);

/* A string of a checked plan, NULL when there is none. */
const char *launch_plan_string(const LaunchPlan *plan, LaunchString string);

/* A list of a checked plan, NULL-terminated; NULL when there is none. */
char **launch_plan_list(LaunchPlan *plan, const LaunchList *list);

/* An array of a checked plan. */
const void *launch_plan_array(const LaunchPlan *plan, const LaunchArray *array);
