/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The words of a seccomp profile and what they are to libseccomp and the kernel. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* SCMP_ACT_*, with 0 where an errno or data belongs. 0 or -EINVAL. */
int seccomp_action_from_string(const char *name, uint32_t *ret);

/* SCMP_CMP_*: an enum scmp_compare, or -EINVAL. */
int seccomp_operator_from_string(const char *name);

/* SECCOMP_FILTER_FLAG_*. A flag without meaning for a single thread is 0. 0, -EINVAL, or -EOPNOTSUPP for
 * what needs an agent. */
int seccomp_flag_from_string(const char *name, uint32_t *ret);

/* SCMP_ARCH_X86_64, x86_64 or amd64: the library's token, or 0 for an architecture that exists but that the
 * library does not know. 0 or -EINVAL. */
int seccomp_architecture_from_string(const char *name, uint32_t *ret);

/* Whether this machine's kernel executes programs of it: its own, and the one or two beside. */
bool seccomp_architecture_runs_here(uint32_t token);
