/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The text of control group files (the kernel's cgroup-v2 documentation): flat keyed ones, io.stat, pressure, lists of
 * processors. It reads memory only, never a file. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The value of "KEY VALUE\n" among such lines. -ENODATA: there is no such key. */
int cgroup_parse_key(const char *text, const char *key, uint64_t *ret);

/* A file that is one number; "max" is UINT64_MAX. */
int cgroup_parse_number(const char *text, uint64_t *ret);

/* The sum over all devices of a counter in io.stat ("8:0 rbytes=1 wbytes=2 …"), 0 without a device. */
uint64_t cgroup_parse_io(const char *text, const char *counter);

/* total= of the line "some" or "full" of a pressure file, in microseconds. */
int cgroup_parse_pressure(const char *text, const char *line, uint64_t *ret);

/* The next number of cgroup.procs; 0 at the end. */
pid_t cgroup_parse_next_pid(const char **text);

#define CPU_LIST_MAX 8192U

/* A list of processors such as "0-3,8" as a bit mask, the first processor the lowest bit of the first byte. *ret_size is the
 * number of bytes up to the highest one. -EINVAL; -ERANGE beyond CPU_LIST_MAX. */
int cpu_list_parse(const char *text, uint8_t mask[CPU_LIST_MAX / 8], size_t *ret_size);
