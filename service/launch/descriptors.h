/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The descriptors that a program is given beside the standard ones, under numbers that the launching process may be
 * using for its own. */
#pragma once

#include "service/launch/child.h"

/* Remembers one of the hello's. -EINVAL: a number that is out of range or taken, or too many. */
int descriptors_add(Child *child, unsigned number, int fd);

/* Puts each under its number, CLOEXEC still; the child's socket makes way. All else that the child had open is lost, so
 * this comes when nothing of it is needed any more. -EBADF: beyond the program's limit of open files. */
int descriptors_place(Child *child);

/* Lets them, and them alone, through execve. */
int descriptors_pass(Child *child);
