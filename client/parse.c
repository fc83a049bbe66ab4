/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/parse.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* The digits at the start of *text, which is left behind them. */
static int take_digits(const char **text, uint64_t *ret) {
        uint64_t value = 0;
        const char *p = *text;

        if (*p < '0' || *p > '9')
                return -EINVAL;
        for (; *p >= '0' && *p <= '9'; p++)
                if (__builtin_mul_overflow(value, 10, &value) ||
                    __builtin_add_overflow(value, (uint64_t) (*p - '0'), &value))
                        return -ERANGE;
        *text = p;
        *ret = value;
        return 0;
}

int parse_u64(const char *text, uint64_t max, uint64_t *ret) {
        uint64_t value;
        int r;

        r = take_digits(&text, &value);
        if (r < 0)
                return r;
        if (*text)
                return -EINVAL;
        if (value > max)
                return -ERANGE;
        *ret = value;
        return 0;
}

int parse_int(const char *text, int min, int max, int *ret) {
        bool negative = *text == '-';
        uint64_t value;
        int r;

        if (*text == '-' || *text == '+')
                text++;
        r = parse_u64(text, INT_MAX, &value);
        if (r < 0)
                return r;
        r = negative ? -(int) value : (int) value;
        if (r < min || r > max)
                return -ERANGE;
        *ret = r;
        return 0;
}

static bool is_infinity(const char *text) {
        return strcmp(text, "infinity") == 0 || strcmp(text, "unlimited") == 0 || strcmp(text, "-1") == 0;
}

int parse_size(const char *text, uint64_t *ret) {
        static const char units[] = "KMGT";
        unsigned shift = 0;
        const char *unit;
        uint64_t value;
        int r;

        if (is_infinity(text)) {
                *ret = PARSE_INFINITY;
                return 0;
        }
        r = take_digits(&text, &value);
        if (r < 0)
                return r;
        if (*text && *text != 'B' && *text != 'b') {
                unit = strchr(units, *text >= 'a' ? *text - 'a' + 'A' : *text);
                if (!unit)
                        return -EINVAL;
                shift = 10 * (unsigned) (unit - units + 1);
                text++;
                if (*text == 'i')
                        text++;
        }
        if (*text == 'B' || *text == 'b')
                text++;
        if (*text)
                return -EINVAL;
        if (value > (UINT64_MAX - 1) >> shift)
                return -ERANGE;
        *ret = value << shift;
        return 0;
}

int parse_limit(const char *text, uint64_t *ret) {
        if (is_infinity(text)) {
                *ret = PARSE_INFINITY;
                return 0;
        }
        return parse_u64(text, UINT64_MAX - 1, ret);
}

int parse_seconds(const char *text, uint64_t *ret_usec) {
        uint64_t value, fraction = 0, unit = 100000;
        int r;

        if (is_infinity(text)) {
                *ret_usec = PARSE_INFINITY;
                return 0;
        }
        r = take_digits(&text, &value);
        if (r < 0)
                return r;
        if (*text == '.')
                for (text++; *text >= '0' && *text <= '9' && unit > 0; text++, unit /= 10)
                        fraction += unit * (uint64_t) (*text - '0');
        if (*text)
                return -EINVAL;
        if (value > UINT64_MAX / 1000000 - 1)
                return -ERANGE;
        *ret_usec = value * 1000000 + fraction;
        return 0;
}

static int parse_realtime(const char *text, int *ret) {
        int n = 0, r;

        if (strncasecmp(text, "RTMIN", 5) == 0 && (!text[5] || text[5] == '+')) {
                if (text[5]) {
                        r = parse_int(text + 6, 0, SIGRTMAX - SIGRTMIN, &n);
                        if (r < 0)
                                return r;
                }
                *ret = SIGRTMIN + n;
                return 0;
        }
        if (strncasecmp(text, "RTMAX", 5) == 0 && (!text[5] || text[5] == '-')) {
                if (text[5]) {
                        r = parse_int(text + 6, 0, SIGRTMAX - SIGRTMIN, &n);
                        if (r < 0)
                                return r;
                }
                *ret = SIGRTMAX - n;
                return 0;
        }
        return -EINVAL;
}

int parse_signal(const char *text, int *ret) {
        if (*text >= '0' && *text <= '9')
                return parse_int(text, 1, 64, ret);
        if (strncasecmp(text, "SIG", 3) == 0)
                text += 3;
        for (int i = 1; i < 32; i++) {
                const char *name = sigabbrev_np(i);

                if (name && strcasecmp(name, text) == 0) {
                        *ret = i;
                        return 0;
                }
        }
        return parse_realtime(text, ret);
}
