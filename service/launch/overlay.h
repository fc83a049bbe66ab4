/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A root that can be written and is forgotten: an overlay over the directory, and one of its own over each
 * real mount below it, all with their upper layers on one tmpfs.
 *
 * Left out are the kernel's own file systems, what is mounted on or below /run, mounts covered by others,
 * what can't be opened (another user's FUSE), and what is mounted below something left out. What is
 * read-only on the host is bound as it is. A file that is mounted on (and a directory of a file system that
 * can't be a layer, as vfat) is bound read-only: it can't be written. In a user namespace mounts below the
 * root are refused by the kernel: -EOPNOTSUPP, with the first of them as detail. */
#pragma once

#include "service/launch/child.h"

/* Makes child->root from the host's directory path. */
int overlay_attach(Child *child, const char *path);
