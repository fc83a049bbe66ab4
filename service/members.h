/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The processes of a container, as the service sees them: those of its control group and of the groups below, or, where it
 * has none of its own, those of its PID namespace and of the namespaces below. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "util/cleanup.h"

#define MEMBERS_MAX 65536U

typedef struct Members {
        pid_t *pids; /* owned */
        size_t n;
} Members;

void members_done(Members *members);
#define _cleanup_members_ _cleanup_(members_done)

/* All processes of the group whose directory this is. Those that come and go meanwhile may be among them or not. -E2BIG beyond
 * MEMBERS_MAX; what was found so far is lost then. */
int members_in_cgroup(int fd, Members *ret);

/* All processes of the PID namespace of this one. */
int members_in_namespace(pid_t init, Members *ret);

/* Whether a process is in a group (its path), or in the PID namespace of another process. */
bool member_of_cgroup(pid_t pid, const char *path);
bool member_of_namespace(pid_t pid, pid_t init);

/* Whether a path of a control group is this one or below. */
bool cgroup_path_is_within(const char *path, const char *group);
