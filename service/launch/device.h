/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Device nodes. */
#pragma once

#include "service/launch/child.h"

/* Executes a LAUNCH_STEP_DEVICE. */
int device_make(Child *child, const LaunchStep *step);

/* An O_PATH descriptor of /dev/null, checked to be that device; child->null. Borrowed. */
int device_null(Child *child);

/* Opens /dev/null for reading and writing, checked in the same way. */
int device_open_null(Child *child);
