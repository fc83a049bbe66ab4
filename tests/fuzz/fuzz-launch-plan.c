/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The bytes of a plan, as the child finds them mapped. What passes the check is walked as the child walks
 * it. */
#include <linux/filter.h>
#include <string.h>

#include "service/launch/plan.h"
#include "tests/fuzz/fuzz.h"
#include "util/cleanup.h"

static void walk_string(const LaunchPlan *plan, LaunchString string) {
        const char *s = launch_plan_string(plan, string);

        fuzz_assert(!s || strlen(s) < plan->size);
}

static size_t walk_list(LaunchPlan *plan, const LaunchList *list) {
        char **l = launch_plan_list(plan, list);
        size_t n = 0;

        for (; l && l[n]; n++)
                fuzz_assert(strlen(l[n]) < plan->size);
        fuzz_assert(n == list->n);
        return n;
}

static void walk(LaunchPlan *plan) {
        const LaunchStep *steps = launch_plan_array(plan, &plan->steps);
        const LaunchLimit *limits = launch_plan_array(plan, &plan->limits);
        const struct sock_filter *filter = launch_plan_array(plan, &plan->filter);
        volatile uint64_t sum = 0;

        fuzz_assert(walk_list(plan, &plan->arguments) > 0);
        (void) walk_list(plan, &plan->environment);
        (void) walk_list(plan, &plan->groups);
        fuzz_assert(launch_plan_string(plan, plan->root)[0] == '/');
        walk_string(plan, plan->hostname);
        walk_string(plan, plan->user);
        walk_string(plan, plan->working_directory);
        for (uint32_t i = 0; i < plan->steps.n; i++) {
                fuzz_assert(steps[i].kind < _LAUNCH_STEP_MAX);
                fuzz_assert(launch_plan_string(plan, steps[i].target)[0] == '/');
                walk_string(plan, steps[i].source);
                walk_string(plan, steps[i].type);
                walk_string(plan, steps[i].data);
        }
        for (uint32_t i = 0; i < plan->limits.n; i++)
                sum += limits[i].soft;
        for (uint32_t i = 0; i < plan->filter.n; i++)
                sum += filter[i].k;
        (void) sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size) {
        _cleanup_free_ void *data = NULL;

        data = malloc(size ? size : 1);
        if (!data)
                return 0;
        memcpy(data, input, size);
        /* Without this hardly any input would get as far as the lists. */
        if (size >= sizeof(LaunchPlan))
                ((LaunchPlan *) data)->size = size;
        if (launch_plan_check(data, size) >= 0)
                walk(data);
        return 0;
}
