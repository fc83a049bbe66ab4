/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* New file systems by fsopen(2), and copies of mounts by open_tree(2). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* A new mount, not attached anywhere, of a file system of this type. source and data may be NULL; data is
 * key=value or flags, separated by commas. attributes: MOUNT_ATTR_*. A descriptor of the caller's or
 * negative errno. */
int filesystem_new(const char *type, const char *source, const char *data, bool read_only,
                   uint64_t attributes);

/* A copy of the mount at path below dir, not attached anywhere and cut off from the host's: what is mounted
 * there later does not show. flags: AT_EMPTY_PATH, AT_RECURSIVE. A descriptor of the caller's or negative
 * errno. */
int filesystem_copy(int dir, const char *path, unsigned flags);
