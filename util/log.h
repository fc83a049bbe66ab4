/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The service's log: the journal with fields where standard error is the journal's, else standard error, and there only
 * what needs somebody's attention. */
#pragma once

#include <syslog.h>

/* One line; %m is errno's text. */
__attribute__((format(printf, 2, 3))) void log_message(int priority, const char *format, ...);

/* The same about a container, in the field BERTH_CONTAINER= (and OBJECT_SYSTEMD_UNIT= where unit is not NULL or empty, so that
 * the scope's status shows it). */
__attribute__((format(printf, 4, 5))) void log_container(int priority, const char *container,
                                                         const char *unit, const char *format, ...);
