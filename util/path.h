/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Paths as text: no file is looked at. */
#pragma once

#include <stdbool.h>

/* The path as seen from the top of a root: absolute, with every "." and ".." resolved by text (".." at
 * the top stays at the top) and without double or trailing slashes. *ret is malloced. 0, or -ENOMEM. */
int path_normalise(const char *path, char **ret);

/* Is one of the components ".."? */
bool path_has_parent(const char *path);
