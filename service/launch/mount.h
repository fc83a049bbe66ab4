/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The steps of a plan that fill the root. */
#pragma once

#include <stdbool.h>

#include "service/launch/child.h"

/* For a read-only root: makes the missing targets of the steps, as far as the root lets it (the steps
 * tell of the rest), then makes the whole tree read-only. */
int mount_seal_root(Child *child);

/* Executes the steps that are LATE, or those that aren't, in their order. */
int mount_execute(Child *child, bool late);
