/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Paths inside a root that somebody else has filled. A symbolic link, absolute or with .. in it, leads to
 * another place in the same root and never out of it; magic links of procfs lead nowhere. */
#pragma once

#include <stdint.h>

enum {
        PATH_NO_SYMLINKS = 1 << 0, /* a link anywhere on the way is -ELOOP */
        PATH_FILE =
                1 << 1, /* path_make: what is missing in the end becomes an empty file, not a directory */
};

/* Opens path inside the directory root with these O_* flags (O_CLOEXEC is added). A descriptor of the
 * caller's, or negative errno. */
int path_open(int root, const char *path, int open_flags, unsigned flags);

/* An O_PATH descriptor of path inside root; what is missing is made, one component at a time, directories
 * with mode 0755. A link that leads to nothing is followed, and what it leads to is made. */
int path_make(int root, const char *path, unsigned flags);

/* As path_make() for the directory that holds the last component. *ret_name is that component, in path's
 * own memory: never empty, "." or ".." (-EINVAL). */
int path_make_parent(int root, const char *path, const char **ret_name);

/* An O_PATH descriptor of /proc/self, checked to be on procfs. */
int path_open_self(void);
