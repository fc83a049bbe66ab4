/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The steps of a plan: what is mounted, made, masked and linked in a container's root, and in which order.
 * */
#pragma once

#include "service/plan-builder.h"
#include "service/plan.h"

/* Appends the steps: the standard ones, the spec's mounts, the host's resolv.conf, then masks and read-only
 * paths. A mount of the spec with the destination of one of berth's own steps takes its place. With a /dev
 * bound by the spec no nodes and links are made in it, it is somebody's directory. 0 or -ENOMEM; the
 * builder's own error sticks to it. */
int plan_add_steps(PlanBuilder *builder, const Spec *spec, const PlanContext *context, LaunchArray *ret);
