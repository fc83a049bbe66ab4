/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Resource limits and the OOM killer's score. */
#pragma once

#include "service/launch/child.h"

/* Writes the plan's oom_score_adj, if it has one; while the host's procfs is there, and before an
 * ordinary user's process ceases to own its files in it. */
int limits_set_oom_score(Child *child);

/* Sets the resource limits of the plan. */
int limits_set(Child *child);
