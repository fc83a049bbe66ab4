/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* From a spec to the flat plan that the launched child executes: the standard mounts, devices, masks and
 * links of a container, the defaults of its environment, its limits and capability sets. Pure computation:
 * nothing is opened, nothing is looked up, so that the whole of it can be tested without a container. */
#pragma once

#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "service/launch/message.h"
#include "service/spec.h"

/* What the plan depends on beside the spec. */
typedef struct PlanContext {
        const char *name;     /* the container's: its host name unless the spec has one */
        bool enter;           /* no container is made: the spec is another process of one that runs */
        bool user_namespace;  /* the container gets its own */
        bool one_id;          /* only one id is mapped in it: setgroups is denied, tty's group is unmapped */
        bool send_devpts;     /* unprivileged: the child makes devpts, and the pty, and sends them */
        bool cgroup_gate;     /* the child must be moved to its cgroup before it executes */
        bool die_with_parent; /* direct mode */
        uint64_t capabilities_lacking; /* what this host has not got to give: left out of the sets */
        unsigned n_throttle;           /* processors with a thermal_throttle to be hidden */
        uint16_t rows, columns, x_pixels, y_pixels; /* rows or columns 0: 24×80 with a terminal */
        const struct sock_filter *filter;           /* borrowed, or NULL: unconfined */
        size_t n_filter;
        uint32_t filter_flags;
} PlanContext;

/* The CLONE_NEW* flags for the container's init. */
uint64_t plan_clone_flags(const Spec *spec, const PlanContext *context);

/* Builds the plan. Its steps come in this order: standard mounts, devices, links, console, the spec's
 * mounts, the host's resolv.conf, masks, read-only paths. *ret is malloced, *ret_size long, the caller's;
 * its first bytes are a LaunchPlan. 0, -ENOMEM, or -E2BIG when it would be larger than LAUNCH_PLAN_MAX. */
int plan_build(const Spec *spec, const PlanContext *context, void **ret, size_t *ret_size);
