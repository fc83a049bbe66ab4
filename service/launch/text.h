/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The few things that the launcher does with strings. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline size_t text_length(const char *s) {
        size_t n = 0;

        while (s[n])
                n++;
        return n;
}

static inline bool text_equal(const char *a, const char *b) {
        while (*a && *a == *b) {
                a++;
                b++;
        }
        return *a == *b;
}

static inline bool text_starts(const char *s, const char *prefix) {
        while (*prefix)
                if (*s++ != *prefix++)
                        return false;
        return true;
}

/* Appends s at `to`, keeping inside of [to, end) with a NUL; returns where the NUL is. What does not fit
 * is cut off: then the result is end - 1 and the caller treats the text as too long. */
static inline char *text_append(char *to, const char *end, const char *s) {
        while (*s && to + 1 < end)
                *to++ = *s++;
        *to = 0;
        return to;
}

static inline char *text_append_number(char *to, const char *end, uint64_t value) {
        char digits[24], *d = digits + sizeof(digits) - 1;

        *d = 0;
        do {
                *--d = (char) ('0' + value % 10);
                value /= 10;
        } while (value);
        return text_append(to, end, d);
}

/* A decimal number that is the whole of s[0..n), at most max. */
static inline bool text_parse_number(const char *s, size_t n, uint64_t max, uint64_t *ret) {
        uint64_t value = 0;

        if (n == 0 || n > 19)
                return false;
        for (size_t i = 0; i < n; i++) {
                if (s[i] < '0' || s[i] > '9')
                        return false;
                value = value * 10 + (uint64_t) (s[i] - '0');
        }
        if (value > max)
                return false;
        *ret = value;
        return true;
}
