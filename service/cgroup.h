/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Control groups (cgroups(7), version 2): where a process is, and the service's own sub-tree where there is no
 * systemd to make scopes. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <systemd/sd-event.h>

#include "service/resources.h"
#include "util/cleanup.h"

/* The path of a process in the unified hierarchy, as the service sees it, malloced into *ret. -ENODATA: it is in
 * none. */
int cgroup_of_process(pid_t pid, char **ret);

/* The directory of a group in the unified hierarchy. A descriptor of the caller's, or negative errno. */
int cgroup_open(const char *path);

/* Whether systemd can set limits of a controller ("memory", "pids", "cpu", "io", "cpuset") on this host: it has it in the
 * unified hierarchy or, unless `unified` asks for that, in one of its own on an older host. */
bool cgroup_host_has(const char *controller, bool unified);

/* <own>/berth-<pid>, made if it can be. */
typedef struct CgroupTree CgroupTree;

/* -EOPNOTSUPP, -EACCES, -EROFS and the like when there is no writable hierarchy. */
int cgroup_tree_new(sd_event *event, CgroupTree **ret);

/* Removes the sub-tree, whose groups must be empty. Returns NULL. */
CgroupTree *cgroup_tree_free(CgroupTree *tree);
DEFINE_CLEANUP(CgroupTree *, cgroup_tree_free);

/* Whether its groups keep containers from the host's devices (device-filter.h). */
bool cgroup_tree_limits_devices(const CgroupTree *tree);

/* Whether limits of a controller ("memory", "pids") can be set below. */
bool cgroup_tree_has(const CgroupTree *tree, const char *controller);

/* One container's group. */
typedef struct Cgroup Cgroup;

/* Makes the group of this name, with the limits that were given. On an error *ret_key is what could not be made or set: the
 * name, or the key of a limit. */
int cgroup_new(CgroupTree *tree, const char *name, const Resources *resources, const char **ret_key,
               Cgroup **ret);

/* The directory, borrowed, to clone into; and its path in the hierarchy. */
int cgroup_fd(const Cgroup *cgroup);
const char *cgroup_path(const Cgroup *cgroup);

/* Removes the group and those below it; at once, or as soon as the last process in it is gone. Returns NULL. */
Cgroup *cgroup_free(Cgroup *cgroup);
DEFINE_CLEANUP(Cgroup *, cgroup_free);
