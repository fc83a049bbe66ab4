/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The errno that stands for each error of org.berth1 (interfaces/names.h): what sd_bus_error_set() and its kin return, and
 * sd_bus_error_get_errno() finds. */
#pragma once

/* Makes the names known to sd-bus, for the whole process; more than once does no harm. 0 or negative errno. Without it
 * every one of them is EIO. */
int errors_register(void);
