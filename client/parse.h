/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Numbers as people write them on a command line. Each returns 0, -EINVAL, or -ERANGE, and no more text than
 * the number is accepted. */
#pragma once

#include <stdint.h>

#define PARSE_INFINITY UINT64_MAX

/* Decimal digits only, up to max. */
int parse_u64(const char *text, uint64_t max, uint64_t *ret);

/* An optional sign and decimal digits, between min and max. */
int parse_int(const char *text, int min, int max, int *ret);

/* Bytes: digits and one of K M G T (powers of 1024), maybe followed by B or iB; "infinity", "unlimited" and
 * "-1" are PARSE_INFINITY. */
int parse_size(const char *text, uint64_t *ret);

/* A count or one of the words for infinity. */
int parse_limit(const char *text, uint64_t *ret);

/* Seconds, with up to six digits after a point, or "infinity"; in microseconds. */
int parse_seconds(const char *text, uint64_t *ret_usec);

/* A signal's number, or its name with or without SIG in any case, or RTMIN+n, RTMAX-n. */
int parse_signal(const char *text, int *ret);
