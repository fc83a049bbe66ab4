/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* From the end of a process as Wait tells it to a shell's number. The only place where the two parts of a
 * status become one. */
#pragma once

/* The program's status, 128+n for signal n, EXIT_BERTH when nobody knows (`lost`). */
int exit_status(int code, int status, const char *result);

/* A sentence about an end that the number alone doesn't explain, or NULL. */
const char *exit_status_remark(const char *result);
