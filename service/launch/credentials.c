/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/launch/credentials.h"

#include "service/launch/plan.h"
#include "service/launch/report.h"
#include "service/launch/sys.h"
#include "service/launch/text.h"

#define CAPABILITIES_MAX 64

static uint64_t bit(unsigned capability) {
        return UINT64_C(1) << capability;
}

int credentials_find(Child *child) {
        const LaunchPlan *plan = child->plan;
        const UsersRequest request = {
                .name = launch_plan_string(plan, plan->user),
                .uid = plan->uid,
                .gid = plan->gid,
                .has_gid = plan->has_gid,
                .groups = launch_plan_list(child->plan, &plan->groups),
        };
        const char *detail;
        int r;

        child->user = sys_allocate(sizeof(User));
        if (sys_is_error(child->user))
                return (int) (long) child->user;
        r = users_resolve(child->root, &request, child->user, &detail);
        if (r < 0)
                return report_detail(child->report, r, detail);
        /* With one id there are no other groups to be in; asking for one by name is a mistake to be told
         * of. */
        if (plan->flags & LAUNCH_PLAN_SETGROUPS_DENIED && plan->groups.n > 0)
                return report_detail(child->report, -EPERM, request.groups[0]);
        return 0;
}

static bool environment_has(char *const *environment, const char *key) {
        size_t n = text_length(key);

        for (; *environment; environment++)
                if (text_starts(*environment, key) && (*environment)[n] == '=')
                        return true;
        return false;
}

int credentials_complete_environment(Child *child) {
        char **environment = launch_plan_list(child->plan, &child->plan->environment), **end = environment;
        const User *user = child->user;
        const struct {
                const char *key, *value;
        } all[LAUNCH_ENVIRONMENT_SPARE] = {
                { "HOME", user->home },
                { "USER", user->name },
                { "LOGNAME", user->name },
                { "SHELL", user->shell },
        };
        size_t size = USERS_TEXT_MAX + 16;
        char *room;

        room = sys_allocate(LAUNCH_ENVIRONMENT_SPARE * size);
        if (sys_is_error(room))
                return (int) (long) room;
        while (*end)
                end++;
        for (unsigned i = 0; i < LAUNCH_ENVIRONMENT_SPARE; i++) {
                char *text = room + i * size, *to;

                if ((i > 0 && !user->known) || environment_has(environment, all[i].key))
                        continue;
                to = text_append(text, text + size, all[i].key);
                to = text_append(to, text + size, "=");
                (void) text_append(to, text + size, all[i].value);
                *end++ = text;
        }
        return 0;
}

static int drop_bounding(uint64_t keep) {
        for (unsigned i = 0; i < CAPABILITIES_MAX; i++) {
                int r;

                if (keep & bit(i))
                        continue;
                r = sys_prctl(PR_CAPBSET_DROP, i, 0);
                if (r == -EINVAL) /* the kernel knows no more */
                        break;
                if (r < 0)
                        return r;
        }
        return 0;
}

static int set_capabilities(uint64_t effective, uint64_t permitted, uint64_t inheritable) {
        struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
        struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

        for (unsigned i = 0; i < _LINUX_CAPABILITY_U32S_3; i++)
                data[i] = (struct __user_cap_data_struct) {
                        .effective = (uint32_t) (effective >> (32 * i)),
                        .permitted = (uint32_t) (permitted >> (32 * i)),
                        .inheritable = (uint32_t) (inheritable >> (32 * i)),
                };
        return sys_capset(&header, data);
}

static int set_ambient(uint64_t ambient) {
        int r;

        r = sys_prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0);
        if (r < 0)
                return r;
        for (unsigned i = 0; i < CAPABILITIES_MAX; i++) {
                if (!(ambient & bit(i)))
                        continue;
                r = sys_prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, i);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* The service's keys aren't the container's. Nobody else is left out of anything by what is passed over
 * here: a kernel without keys, an ordinary user with too many of them, a filter around the service. */
static int leave_keyring(void) {
        int r;

        r = sys_keyctl(KEYCTL_JOIN_SESSION_KEYRING, NULL);
        return r == -ENOSYS || r == -EDQUOT || r == -EPERM ? 0 : r;
}

static int take_ids(Child *child) {
        const User *user = child->user;
        int r;

        if (!(child->plan->flags & LAUNCH_PLAN_SETGROUPS_DENIED)) {
                r = sys_setgroups(user->n_groups, user->groups);
                if (r < 0)
                        return report_detail(child->report, r, "supplementary groups");
        }
        r = sys_setresgid(user->gid);
        if (r < 0)
                return report_detail(child->report, r, "group id");
        r = sys_setresuid(user->uid);
        return r < 0 ? report_detail(child->report, r, "user id") : 0;
}

int credentials_take(Child *child) {
        const LaunchPlan *plan = child->plan;
        uint64_t for_filter = 0, effective = plan->cap_effective;
        int r;

        if (plan->filter.n > 0 && !(plan->flags & LAUNCH_PLAN_NO_NEW_PRIVILEGES))
                for_filter = bit(CAP_SYS_ADMIN);
        /* All that others than root keep through execve. With more the working directory and the program
         * would be looked for with rights that the user hasn't got. */
        if (child->user->uid != 0)
                effective &= plan->cap_ambient;
        r = leave_keyring();
        if (r < 0)
                return report_detail(child->report, r, "session keyring");
        r = drop_bounding(plan->cap_bounding);
        if (r < 0)
                return report_detail(child->report, r, "bounding set");
        r = sys_prctl(PR_SET_KEEPCAPS, 1, 0);
        if (r < 0)
                return report_detail(child->report, r, "PR_SET_KEEPCAPS");
        r = take_ids(child);
        if (r < 0)
                return r;
        r = set_capabilities(effective | for_filter, plan->cap_permitted | for_filter,
                             plan->cap_inheritable);
        if (r < 0)
                return report_detail(child->report, r, "capabilities");
        r = set_ambient(plan->cap_ambient);
        if (r < 0)
                return report_detail(child->report, r, "ambient capabilities");
        /* A change of ids sets this to what a sysctl says. */
        r = sys_prctl(PR_SET_DUMPABLE, 0, 0);
        return r < 0 ? report_detail(child->report, r, "PR_SET_DUMPABLE") : 0;
}

int credentials_confine(Child *child) {
        const LaunchPlan *plan = child->plan;
        const struct sock_fprog program = {
                .len = (unsigned short) plan->filter.n,
                .filter = (struct sock_filter *) (uintptr_t) launch_plan_array(plan, &plan->filter),
        };
        int r;

        if (plan->flags & LAUNCH_PLAN_NO_NEW_PRIVILEGES) {
                r = sys_prctl(PR_SET_NO_NEW_PRIVS, 1, 0);
                if (r < 0)
                        return report_detail(child->report, r, "PR_SET_NO_NEW_PRIVS");
        }
        return program.len ? sys_seccomp(SECCOMP_SET_MODE_FILTER, plan->filter_flags, &program) : 0;
}
