/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/plan.h"

#include <ctype.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>

#include "service/plan-builder.h"
#include "service/plan-environment.h"
#include "service/plan-steps.h"
#include "util/cleanup.h"
#include "util/strv.h"

#define HOSTNAME_MAX 64U
#define ROWS_DEFAULT 24U
#define COLUMNS_DEFAULT 80U

uint64_t plan_clone_flags(const Spec *spec, const PlanContext *context) {
        uint64_t flags = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWUTS | CLONE_NEWIPC;

        if (spec->network == SPEC_NETWORK_PRIVATE)
                flags |= CLONE_NEWNET;
        if (context->user_namespace)
                flags |= CLONE_NEWUSER;
        return flags;
}

/* Of a container that is to be made. */
static uint64_t container_flags(const Spec *spec, const PlanContext *context) {
        /* Always a cgroup namespace: joined once the process is in its cgroup, which is then its root. */
        uint64_t flags = LAUNCH_PLAN_CGROUP_NAMESPACE;

        if (context->cgroup_gate)
                flags |= LAUNCH_PLAN_CGROUP_GATE;
        if (spec->network == SPEC_NETWORK_PRIVATE)
                flags |= LAUNCH_PLAN_NETWORK_LOOPBACK;
        if (spec->read_only)
                flags |= LAUNCH_PLAN_READ_ONLY;
        if (spec->ephemeral)
                flags |= LAUNCH_PLAN_EPHEMERAL;
        if (context->send_devpts)
                flags |= LAUNCH_PLAN_SEND_DEVPTS;
        return flags;
}

static uint64_t plan_flags(const Spec *spec, const PlanContext *context) {
        uint64_t flags = context->enter ? LAUNCH_PLAN_ENTER : container_flags(spec, context);

        if (context->user_namespace)
                flags |= LAUNCH_PLAN_USER_NAMESPACE;
        if (spec->terminal)
                flags |= LAUNCH_PLAN_TERMINAL;
        if (spec->no_new_privileges)
                flags |= LAUNCH_PLAN_NO_NEW_PRIVILEGES;
        if (spec->oom_score_adjust_set)
                flags |= LAUNCH_PLAN_OOM_SCORE_ADJUST;
        if (context->one_id)
                flags |= LAUNCH_PLAN_SETGROUPS_DENIED;
        if (context->die_with_parent)
                flags |= LAUNCH_PLAN_DIE_WITH_PARENT;
        return flags;
}

/* A container's name allows characters that a host name does not. */
static LaunchString add_hostname(PlanBuilder *builder, const Spec *spec, const char *name) {
        char hostname[HOSTNAME_MAX + 1];
        size_t n = 0;

        if (spec->hostname || !name)
                return plan_builder_string(builder, spec->hostname);
        for (; name[n] && n < HOSTNAME_MAX; n++)
                hostname[n] = isascii(name[n]) && (isalnum(name[n]) || name[n] == '.') ? name[n] : '-';
        while (n > 1 && (hostname[n - 1] == '-' || hostname[n - 1] == '.'))
                n--;
        hostname[n] = 0;
        return n > 0 ? plan_builder_string(builder, hostname) : 0;
}

static LaunchArray add_limits(PlanBuilder *builder, const Spec *spec) {
        LaunchLimit limits[RLIM_NLIMITS] = { 0 };
        uint32_t n = 0;

        for (uint32_t i = 0; i < RLIM_NLIMITS; i++) {
                if (!(spec->limits_set & 1U << i))
                        continue;
                limits[n++] = (LaunchLimit) {
                        .resource = i,
                        .soft = spec->limits[i].rlim_cur,
                        .hard = spec->limits[i].rlim_max,
                };
        }
        if (n == 0)
                return (LaunchArray) { 0 };
        return (LaunchArray) { plan_builder_bytes(builder, limits, n * sizeof(LaunchLimit)), n };
}

static LaunchList add_strings(PlanBuilder *builder, char *const *l) {
        return plan_builder_list(builder, (const char *const *) l, strv_length(l), 0);
}

/* What init was cloned into, and the cgroup namespace that it made later; PID and user namespace are joined before. */
static uint64_t joined_flags(const Spec *spec, const PlanContext *context) {
        return (plan_clone_flags(spec, context) & ~(uint64_t) (CLONE_NEWPID | CLONE_NEWUSER)) |
               CLONE_NEWCGROUP;
}

int plan_build(const Spec *spec, const PlanContext *context, void **ret, size_t *ret_size) {
        _cleanup_(plan_builder_done) PlanBuilder builder = { 0 };
        LaunchPlan plan = {
                .flags = plan_flags(spec, context),
                .clone_flags = context->enter ? joined_flags(spec, context)
                                              : plan_clone_flags(spec, context),
                .uid = spec->user ? 0 : spec->uid,
                .gid = spec->has_gid || !spec->user ? spec->gid : 0,
                .has_gid = spec->has_gid,
                .filter_flags = context->filter ? context->filter_flags : 0,
                .oom_score_adjust = spec->oom_score_adjust_set ? spec->oom_score_adjust : 0,
                /* What execve(2) makes of them is right for both: root keeps all of it, and another user
                 * nothing, unless a program with the setuid bit or file capabilities gives it back. */
                .cap_bounding = spec->capabilities & ~context->capabilities_lacking,
                .cap_effective = spec->capabilities & ~context->capabilities_lacking,
                .cap_permitted = spec->capabilities & ~context->capabilities_lacking,
        };
        int r;

        if (spec->terminal) {
                bool given = context->rows > 0 && context->columns > 0;

                plan.rows = given ? context->rows : ROWS_DEFAULT;
                plan.columns = given ? context->columns : COLUMNS_DEFAULT;
                plan.x_pixels = given ? context->x_pixels : 0;
                plan.y_pixels = given ? context->y_pixels : 0;
        }

        /* The plan itself comes first; it is copied to its place when all offsets are known. */
        (void) plan_builder_bytes(&builder, NULL, sizeof(LaunchPlan));
        if (!context->enter) {
                plan.root = plan_builder_string(&builder, spec->root_directory);
                plan.hostname = add_hostname(&builder, spec, context->name);
        }
        plan.arguments = add_strings(&builder, spec->command);
        r = plan_add_environment(&builder, spec, &plan.environment);
        if (r < 0)
                return r;
        plan.working_directory = plan_builder_string(
                &builder, spec->working_directory ? spec->working_directory : "/");
        plan.user = plan_builder_string(&builder, spec->user);
        plan.groups = add_strings(&builder, spec->supplementary_groups);
        if (!context->enter) {
                r = plan_add_steps(&builder, spec, context, &plan.steps);
                if (r < 0)
                        return r;
        }
        plan.limits = add_limits(&builder, spec);
        if (context->filter && context->n_filter > 0)
                plan.filter = (LaunchArray) {
                        plan_builder_bytes(&builder, context->filter,
                                           context->n_filter * sizeof(struct sock_filter)),
                        (uint32_t) context->n_filter,
                };
        if (builder.error < 0)
                return builder.error;

        plan.size = builder.size;
        memcpy(builder.data, &plan, sizeof(plan));
        *ret = TAKE_PTR(builder.data);
        *ret_size = (size_t) plan.size;
        return 0;
}
