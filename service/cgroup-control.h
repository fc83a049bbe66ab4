/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The control group of a container that runs, whoever made it: freezing, killing, and what memory.events counts. It keeps
 * descriptors, since systemd removes the group within milliseconds of the last process' end. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "util/cleanup.h"

typedef struct CgroupControl CgroupControl;

/* All processes of the group have stopped or go on, by whoever's doing. From the event loop. */
typedef void (*cgroup_frozen_t)(bool frozen, void *userdata);

/* Opens and watches the group of this path in the hierarchy. */
int cgroup_control_new(sd_event *event, const char *path, cgroup_frozen_t frozen, void *userdata,
                       CgroupControl **ret);
CgroupControl *cgroup_control_free(CgroupControl *control);
DEFINE_CLEANUP(CgroupControl *, cgroup_control_free);

/* The directory, borrowed. */
int cgroup_control_fd(const CgroupControl *control);

/* Begins to stop all processes, or lets them go on. -ENOENT: the kernel can't; -ENODEV: the group is gone. */
int cgroup_control_freeze(const CgroupControl *control, bool freeze);

/* Tells of a change that has not come by the event loop yet. */
void cgroup_control_update(CgroupControl *control);

/* SIGKILL to all, at once. Errors as above. */
int cgroup_control_kill(const CgroupControl *control);

/* Whether a process of the group that has just ended by SIGKILL was killed for want of memory. To be asked first of all: the
 * group may be gone in a moment. With `claim` the same kill explains no other end. */
bool cgroup_control_oom_killed(CgroupControl *control, bool claim);

/* Whether all processes of a group are stopped, or are on the way to it by its own cgroup.freeze; false when that can't be
 * told. */
bool cgroup_is_freezing(int fd);
