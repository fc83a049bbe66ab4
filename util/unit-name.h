/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The names of units of systemd, systemd.unit(5). */
#pragma once

#include <stdbool.h>

/* The longest name that systemd takes. */
#define UNIT_NAME_MAX 255U

/* "berth-<the container's name, escaped as systemd-escape(1) does>.scope". *ret is malloced. 0, -ENOMEM, or
 * -ENAMETOOLONG when it would be longer than UNIT_NAME_MAX. */
int unit_name_scope(const char *container, char **ret);

/* Is this the name of a slice that systemd would accept? */
bool unit_name_is_slice(const char *name);
