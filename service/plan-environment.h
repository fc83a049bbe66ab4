/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The environment of a plan: the defaults, and over them the spec's. */
#pragma once

#include "service/plan-builder.h"
#include "service/spec.h"

/* Slots for HOME, USER, LOGNAME and SHELL, which the child finds in the root's passwd. */
#define PLAN_ENVIRONMENT_SPARE 4U

/* Appends the environment: defaults first, each key once, the spec's last word on it. 0 or -ENOMEM; the
 * builder's own error sticks to it. */
int plan_add_environment(PlanBuilder *builder, const Spec *spec, LaunchList *ret);
