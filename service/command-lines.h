/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The command lines of processes (/proc/PID/cmdline). The kernel reads them from the process' own memory, which can lie in a
 * file system that the container serves itself and never answers: so a child reads them, and only it can be held up. */
#pragma once

#include <stddef.h>
#include <sys/types.h>
#include <systemd/sd-event.h>

#include "service/members.h"

#define COMMAND_LINE_MAX 4096U        /* bytes of one */
#define COMMAND_LINES_MAX (16U << 20) /* of all of them; later ones are left empty */
#define COMMAND_LINES_USEC (2U * 1000U * 1000U)

/* In the order of the members; "" for one that has gone, has none (a kernel thread, a zombie), or could not be read in
 * COMMAND_LINES_USEC. Valid UTF-8. Called once, from the event loop. */
typedef void (*command_lines_done_t)(const Members *members, char *const *lines, void *userdata);

/* Takes the members when it succeeds. */
int command_lines_read(sd_event *event, Members *members, command_lines_done_t done, void *userdata);

/* The bytes of a cmdline as text: NULs between arguments become spaces, those at the end go, and every byte that is not UTF-8
 * becomes U+FFFD. Malloced, or NULL. */
char *command_line_clean(const char *bytes, size_t size);
