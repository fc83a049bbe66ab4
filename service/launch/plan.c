/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/launch/plan.h"

#include "service/launch/sys.h"

#define FLAGS_KNOWN ((uint64_t) LAUNCH_PLAN_ENTER * 2 - 1)
#define STEP_FLAGS_KNOWN ((uint32_t) LAUNCH_STEP_FLAG_IF_TARGET * 2 - 1)

typedef struct Area {
        char *data;
        size_t size;
} Area;

static bool area_has(const Area *area, uint32_t offset, uint64_t n, size_t size, size_t alignment) {
        return offset >= sizeof(LaunchPlan) && offset % alignment == 0 && offset <= area->size &&
               n <= (area->size - offset) / size;
}

static bool area_has_string(const Area *area, uint64_t offset) {
        if (offset < sizeof(LaunchPlan))
                return false;
        for (uint64_t i = offset; i < area->size; i++)
                if (!area->data[i])
                        return true;
        return false;
}

static bool check_optional(const Area *area, LaunchString string) {
        return string == 0 || area_has_string(area, string);
}

static bool check_path(const Area *area, LaunchString string) {
        return area_has_string(area, string) && area->data[string] == '/';
}

/* Makes pointers of the slots. The strings are looked at when all lists are done: should a list and a
 * string overlap, it is the outcome that counts. */
static bool convert_list(const Area *area, const LaunchList *list, uint32_t spare) {
        uint64_t *slots;

        if (list->offset == 0)
                return list->n == 0 && list->slots == 0;
        if (!area_has(area, list->offset, list->slots, sizeof(*slots), sizeof(*slots)) ||
            list->n >= list->slots || list->slots - list->n <= spare)
                return false;
        slots = (uint64_t *) (void *) (area->data + list->offset);
        for (uint32_t i = 0; i < list->n; i++) {
                if (slots[i] < sizeof(LaunchPlan) || slots[i] >= area->size)
                        return false;
                slots[i] = (uintptr_t) (area->data + slots[i]);
        }
        for (uint32_t i = list->n; i < list->slots; i++)
                slots[i] = 0;
        return true;
}

static bool check_list(const Area *area, const LaunchList *list) {
        const uint64_t *slots = (const uint64_t *) (const void *) (area->data + list->offset);

        for (uint32_t i = 0; i < list->n; i++) {
                uint64_t offset = slots[i] - (uintptr_t) area->data;

                if (offset >= area->size || !area_has_string(area, offset))
                        return false;
        }
        return true;
}

static bool check_step(const Area *area, const LaunchStep *step) {
        if (step->kind >= _LAUNCH_STEP_MAX || step->flags & ~STEP_FLAGS_KNOWN ||
            !check_path(area, step->target) || !check_optional(area, step->source) ||
            !check_optional(area, step->type) || !check_optional(area, step->data))
                return false;
        switch ((LaunchStepKind) step->kind) {
        case LAUNCH_STEP_FILESYSTEM:
                return step->type != 0;
        case LAUNCH_STEP_BIND:
                return check_path(area, step->source);
        case LAUNCH_STEP_SYMLINK:
                return step->source != 0;
        case LAUNCH_STEP_DEVICE:
                return step->source == 0 || check_path(area, step->source);
        case LAUNCH_STEP_DEVPTS:
        case LAUNCH_STEP_CONSOLE:
        case LAUNCH_STEP_MASK:
        case LAUNCH_STEP_READ_ONLY:
        case _LAUNCH_STEP_MAX:
                break;
        }
        return true;
}

static bool check_array(const Area *area, const LaunchArray *array, size_t size, size_t alignment) {
        return array->n == 0 || area_has(area, array->offset, array->n, size, alignment);
}

static bool check_arrays(const Area *area, const LaunchPlan *plan) {
        const LaunchStep *steps = launch_plan_array(plan, &plan->steps);

        if (!check_array(area, &plan->steps, sizeof(LaunchStep), sizeof(uint64_t)) ||
            !check_array(area, &plan->limits, sizeof(LaunchLimit), sizeof(uint64_t)) ||
            !check_array(area, &plan->filter, sizeof(struct sock_filter), sizeof(uint32_t)) ||
            plan->filter.n > BPF_MAXINSNS)
                return false;
        for (uint32_t i = 0; i < plan->steps.n; i++)
                if (!check_step(area, steps + i))
                        return false;
        return true;
}

/* Without a mount namespace of its own the child would turn the host's mounts over. */
static bool check_flags(const LaunchPlan *plan) {
        if (plan->flags & LAUNCH_PLAN_ENTER &&
            (plan->root || plan->hostname || plan->steps.n > 0 ||
             plan->flags & (LAUNCH_PLAN_READ_ONLY | LAUNCH_PLAN_EPHEMERAL | LAUNCH_PLAN_SEND_DEVPTS)))
                return false;
        return !(plan->flags & ~FLAGS_KNOWN) && plan->clone_flags & CLONE_NEWNS &&
               (plan->flags & LAUNCH_PLAN_ENTER ||
                !(plan->flags & LAUNCH_PLAN_USER_NAMESPACE) == !(plan->clone_flags & CLONE_NEWUSER)) &&
               (!(plan->flags & LAUNCH_PLAN_NETWORK_LOOPBACK) || plan->clone_flags & CLONE_NEWNET) &&
               (!plan->hostname || plan->clone_flags & CLONE_NEWUTS);
}

int launch_plan_check(void *data, size_t size) {
        const Area area = { .data = data, .size = size };
        LaunchPlan *plan = data;

        if (size < sizeof(*plan) || size > LAUNCH_PLAN_MAX || plan->size != size || !check_flags(plan))
                return -EINVAL;
        if (plan->arguments.n == 0 || plan->environment.offset == 0 ||
            !convert_list(&area, &plan->arguments, 0) ||
            !convert_list(&area, &plan->environment, LAUNCH_ENVIRONMENT_SPARE) ||
            !convert_list(&area, &plan->groups, 0))
                return -EINVAL;
        if (!check_arrays(&area, plan) || !check_list(&area, &plan->arguments) ||
            !check_list(&area, &plan->environment) || !check_list(&area, &plan->groups))
                return -EINVAL;
        if (!(plan->flags & LAUNCH_PLAN_ENTER || check_path(&area, plan->root)) ||
            !check_optional(&area, plan->hostname) || !check_optional(&area, plan->user) ||
            (plan->working_directory && !check_path(&area, plan->working_directory)))
                return -EINVAL;
        return 0;
}

int launch_plan_map(int fd, LaunchPlan **ret) {
        struct statx st;
        void *data;
        int r;

        r = sys_statx(fd, "", AT_EMPTY_PATH, STATX_SIZE, &st);
        if (r < 0)
                return r;
        if (st.stx_size < sizeof(LaunchPlan) || st.stx_size > LAUNCH_PLAN_MAX)
                return -EINVAL;
        data = sys_mmap(st.stx_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd);
        if (sys_is_error(data))
                return (int) (long) data;
        r = launch_plan_check(data, st.stx_size);
        if (r < 0)
                return r;
        *ret = data;
        return 0;
}

const char *launch_plan_string(const LaunchPlan *plan, LaunchString string) {
        return string ? (const char *) plan + string : NULL;
}

char **launch_plan_list(LaunchPlan *plan, const LaunchList *list) {
        return list->offset ? (char **) (void *) ((char *) plan + list->offset) : NULL;
}

const void *launch_plan_array(const LaunchPlan *plan, const LaunchArray *array) {
        return (const char *) plan + array->offset;
}
