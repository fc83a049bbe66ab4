/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which devices a container may open: those that it is given, whatever nodes it makes itself (CAP_MKNOD is in the
 * default set). A program of the kernel's (BPF_PROG_TYPE_CGROUP_DEVICE in bpf(2)) for control groups that the service
 * makes; for scopes systemd does the same from DevicePolicy= (systemd.resource-control(5)). */
#pragma once

/* Loads the program. A descriptor of the caller's, or negative errno. */
int device_filter_load(void);

/* Attaches it to the control group of this directory, for it and all below. */
int device_filter_attach(int program, int cgroup);
