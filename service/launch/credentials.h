/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Who the program is and what it may do. */
#pragma once

#include "service/launch/child.h"

/* Looks the plan's user up in the root. */
int credentials_find(Child *child);

/* Adds HOME, USER, LOGNAME and SHELL where the environment lacks them. */
int credentials_complete_environment(Child *child);

/* Bounding set, groups, ids and capabilities, in the order that each of them needs. Where the seccomp
 * filter is loaded without no_new_privs, CAP_SYS_ADMIN is left effective for that: it goes with execve,
 * which computes the capabilities of the program anew from the bounding, inheritable and ambient sets. */
int credentials_take(Child *child);

/* no_new_privs, where it is wanted, and the filter. Nothing but execve(2) may be called after it. */
int credentials_confine(Child *child);
