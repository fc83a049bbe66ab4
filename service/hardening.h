/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the service does to itself before it serves anybody. */
#pragma once

/* As root: no process may trace it or read its memory (PR_SET_DUMPABLE in prctl(2)), whatever a container gets hold of.
 * A build with a leak checker, which works by tracing, leaves that out (hardening-sanitizer.c). */
int hardening_forbid_tracing(void);
