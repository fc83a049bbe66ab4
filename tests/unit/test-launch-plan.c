/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Plans that the child must refuse, each one a good plan with one thing wrong. */
#include <errno.h>
#include <linux/filter.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "service/launch/plan.h"
#include "util/cleanup.h"
#include "util/fd.h"

typedef struct Good {
        LaunchPlan plan;
        uint64_t arguments[3];
        uint64_t environment[6];
        uint64_t groups[2];
        LaunchStep steps[2];
        LaunchLimit limits[1];
        struct sock_filter filter[1];
        char root[8], path[8], type[8], name[8], last[8];
} Good;

#define AT(member) ((uint32_t) offsetof(Good, member))

static Good good(void) {
        return (Good) {
                .plan = {
                        .size = sizeof(Good),
                        .flags = LAUNCH_PLAN_READ_ONLY,
                        .clone_flags = CLONE_NEWNS | CLONE_NEWUTS,
                        .root = AT(root),
                        .hostname = AT(name),
                        .arguments = { AT(arguments), 2, 3 },
                        .environment = { AT(environment), 1, 6 },
                        .groups = { AT(groups), 1, 2 },
                        .working_directory = AT(path),
                        .steps = { AT(steps), 2 },
                        .limits = { AT(limits), 1 },
                        .filter = { AT(filter), 1 },
                },
                .arguments = { AT(name), AT(path), 99 },
                .environment = { AT(name), 1, 2, 3, 4, 5 },
                .groups = { AT(name) },
                .steps = {
                        { .kind = LAUNCH_STEP_FILESYSTEM, .target = AT(path), .type = AT(type) },
                        { .kind = LAUNCH_STEP_BIND, .target = AT(path), .source = AT(root) },
                },
                .root = "/r",
                .path = "/p",
                .type = "tmpfs",
                .name = "name",
                .last = "last",
        };
}

static void test_good_plan(void **state) {
        Good g = good();
        char **list;

        assert_int_equal(launch_plan_check(&g, sizeof(g)), 0);
        list = launch_plan_list(&g.plan, &g.plan.arguments);
        assert_ptr_equal(list[0], g.name);
        assert_string_equal(list[1], "/p");
        assert_null(list[2]);
        list = launch_plan_list(&g.plan, &g.plan.environment);
        assert_string_equal(list[0], "name");
        for (int i = 1; i < 6; i++)
                assert_null(list[i]);
        assert_string_equal(launch_plan_string(&g.plan, g.plan.root), "/r");
        assert_null(launch_plan_string(&g.plan, 0));
        assert_ptr_equal(launch_plan_array(&g.plan, &g.plan.steps), g.steps);
}

static void test_nothing_optional(void **state) {
        Good g = good();

        g.plan.hostname = g.plan.working_directory = 0;
        g.plan.groups = (LaunchList) {};
        g.plan.steps = g.plan.limits = g.plan.filter = (LaunchArray) {};
        assert_int_equal(launch_plan_check(&g, sizeof(g)), 0);
        assert_null(launch_plan_list(&g.plan, &g.plan.groups));
}

#define REFUSED(change)                                                      \
        do {                                                                 \
                Good g = good();                                             \
                change;                                                      \
                assert_int_equal(launch_plan_check(&g, sizeof(g)), -EINVAL); \
        } while (0)

static void test_bad_numbers(void **state) {
        Good whole = good();

        for (size_t size = 0; size < sizeof(whole); size++) {
                Good g = good();

                assert_int_equal(launch_plan_check(&g, size), -EINVAL);
        }
        REFUSED(g.plan.size--);
        REFUSED(g.plan.flags = 1ULL << 40);
        REFUSED(g.plan.flags = LAUNCH_PLAN_USER_NAMESPACE);
        REFUSED(g.plan.clone_flags = CLONE_NEWUTS);
        REFUSED(g.plan.clone_flags |= CLONE_NEWUSER);
        REFUSED(g.plan.clone_flags = CLONE_NEWNS); /* a host name without a namespace for it */
        REFUSED(g.plan.flags |= LAUNCH_PLAN_NETWORK_LOOPBACK);
}

static void test_bad_lists(void **state) {
        REFUSED(g.plan.arguments.n = 0);
        REFUSED(g.plan.arguments.n = 3);
        REFUSED(g.plan.arguments.slots = 2);
        REFUSED(g.plan.arguments.slots = UINT32_MAX);
        REFUSED(g.plan.arguments.n = UINT32_MAX; g.plan.arguments.slots = UINT32_MAX);
        REFUSED(g.plan.arguments.offset = 0);
        REFUSED(g.plan.arguments.offset++);
        REFUSED(g.plan.arguments.offset = 8);
        REFUSED(g.plan.arguments.offset = (uint32_t) sizeof(g) + 8);
        REFUSED(g.plan.arguments.offset = UINT32_MAX - 7);
        REFUSED(g.plan.environment.slots = 5); /* no room for four more */
        REFUSED(g.plan.environment = (LaunchList) {});
        REFUSED(g.plan.groups.offset = 0);
        REFUSED(g.plan.groups = g.plan.arguments); /* a slot is converted once */
        REFUSED(g.arguments[1] = 0);
        REFUSED(g.arguments[1] = 8);
        REFUSED(g.arguments[1] = sizeof(g));
        REFUSED(g.arguments[1] = UINT64_MAX);
        REFUSED(g.arguments[0] = AT(last); memset(g.last, 'x', sizeof(g.last)));
}

static void test_bad_strings(void **state) {
        REFUSED(g.plan.root = 0);
        REFUSED(g.plan.root = AT(name)); /* relative */
        REFUSED(g.plan.root = 4);
        REFUSED(g.plan.root = (uint32_t) sizeof(g));
        REFUSED(g.plan.root = UINT32_MAX);
        REFUSED(g.plan.working_directory = AT(name));
        REFUSED(g.plan.hostname = UINT32_MAX);
        REFUSED(g.plan.user = 1);
        REFUSED(g.plan.user = AT(last); memset(g.last, 'x', sizeof(g.last)));
}

static void test_bad_arrays(void **state) {
        REFUSED(g.plan.steps.n = 1000);
        REFUSED(g.plan.steps.n = UINT32_MAX);
        REFUSED(g.plan.steps.offset += 4);
        REFUSED(g.plan.steps.offset = UINT32_MAX - 7);
        REFUSED(g.plan.limits.n = 1U << 30);
        REFUSED(g.plan.filter.n = BPF_MAXINSNS + 1);
        REFUSED(g.plan.filter.n = 4096);
        REFUSED(g.steps[0].kind = _LAUNCH_STEP_MAX);
        REFUSED(g.steps[0].kind = UINT32_MAX);
        REFUSED(g.steps[0].flags = 1U << 31);
        REFUSED(g.steps[0].type = 0);
        REFUSED(g.steps[0].target = 0);
        REFUSED(g.steps[0].target = AT(name));
        REFUSED(g.steps[0].data = UINT32_MAX);
        REFUSED(g.steps[1].source = 0);
        REFUSED(g.steps[1].source = AT(name));
        REFUSED(g.steps[1].kind = LAUNCH_STEP_SYMLINK; g.steps[1].source = 0);
        REFUSED(g.steps[1].kind = LAUNCH_STEP_DEVICE; g.steps[1].source = AT(name));
}

static void test_plan_is_mapped_privately(void **state) {
        _cleanup_fd_ int fd = -EBADF, small = -EBADF;
        Good g = good(), copy;
        LaunchPlan *plan;

        fd = fd_sealed_memory("plan", &g, sizeof(g));
        assert_true(fd >= 0);
        assert_int_equal(launch_plan_map(fd, &plan), 0);
        assert_string_equal(launch_plan_list(plan, &plan->arguments)[0], "name");
        assert_int_equal(pread(fd, &copy, sizeof(copy), 0), sizeof(copy));
        assert_memory_equal(&copy, &g, sizeof(g));
        small = fd_sealed_memory("plan", &g, 8);
        assert_int_equal(launch_plan_map(small, &plan), -EINVAL);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_good_plan),
                cmocka_unit_test(test_nothing_optional),
                cmocka_unit_test(test_bad_numbers),
                cmocka_unit_test(test_bad_lists),
                cmocka_unit_test(test_bad_strings),
                cmocka_unit_test(test_bad_arrays),
                cmocka_unit_test(test_plan_is_mapped_privately),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
