/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The parts of spec-args that deal with paths and mounts: -v and --mount. */
#pragma once

#include <systemd/sd-bus.h>

#include "client/spec-args.h"

/* Frees what a mount owns. */
void spec_args_mount_done(SpecArgsMount *mount);

/* A path as the service needs it: absolute. One that is so already is copied, whatever it is; a relative one
 * is resolved in the caller's working directory and must exist. *ret is malloced. */
int spec_args_absolute(const char *path, char **ret, sd_bus_error *error);

/* SRC:DST[:OPTION,…], a bind with the mounts below it; "ro" makes all of them read-only. A backslash before
 * a colon makes it a part of the path. *ret is for spec_args_mount_done(). */
int spec_args_parse_volume(const char *text, SpecArgsMount *ret, sd_bus_error *error);

/* type=T,src=S,dst=D,OPTION,…: words that aren't one of the three are options of the mount. */
int spec_args_parse_mount(const char *text, SpecArgsMount *ret, sd_bus_error *error);
