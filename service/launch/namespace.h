/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What new namespaces need before they can be used. */
#pragma once

#include "service/launch/child.h"

/* Becomes 0:0 without groups in a user namespace whose maps are written, and hides the process from
 * ptrace. */
int namespace_become_root(Child *child);

/* Joins the user namespace of the container's init and becomes 0:0 in it. */
int namespace_join_user(Child *child);

/* Joins the namespaces of the container's init that the plan names, and finds its root; children will be born
 * into its PID namespace. */
int namespace_enter(Child *child);

/* The loopback interface and the host name. */
int namespace_configure(Child *child);
