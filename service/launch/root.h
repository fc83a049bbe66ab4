/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The root directory: a copy of its mounts laid over the host's root, where no path of the host leads to
 * it, and the move into it. Until then every path without a descriptor is one of the host's. */
#pragma once

#include "service/launch/child.h"

/* Makes child->root. With LAUNCH_PLAN_EPHEMERAL it is one of overlays (overlay.h). */
int root_attach(Child *child);

/* pivot_root(2) into child->root; the host's mounts are gone then. */
int root_enter(Child *child);
