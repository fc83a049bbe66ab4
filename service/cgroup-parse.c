/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/cgroup-parse.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>

/* Digits, at least one; moves past them. Saturates. */
static bool read_number(const char **p, uint64_t *ret) {
        uint64_t n = 0;

        if (**p < '0' || **p > '9')
                return false;
        for (; **p >= '0' && **p <= '9'; (*p)++)
                if (__builtin_mul_overflow(n, 10U, &n) ||
                    __builtin_add_overflow(n, (uint64_t) (**p - '0'), &n))
                        n = UINT64_MAX;
        *ret = n;
        return true;
}

/* What follows a word and one more character at the beginning of a line. */
static const char *find_line(const char *text, const char *word, char separator) {
        size_t n = strlen(word);

        for (const char *p = text; p; p = strchr(p, '\n')) {
                if (*p == '\n')
                        p++;
                if (strncmp(p, word, n) == 0 && p[n] == separator)
                        return p + n + 1;
                if (!*p)
                        break;
        }
        return NULL;
}

int cgroup_parse_key(const char *text, const char *key, uint64_t *ret) {
        const char *p = find_line(text, key, ' ');
        uint64_t n;

        if (!p)
                return -ENODATA;
        if (!read_number(&p, &n) || (*p && *p != '\n'))
                return -EBADMSG;
        *ret = n;
        return 0;
}

int cgroup_parse_number(const char *text, uint64_t *ret) {
        const char *p = text;
        uint64_t n;

        if (strncmp(p, "max", 3) == 0) {
                p += 3;
                n = UINT64_MAX;
        } else if (!read_number(&p, &n))
                return -EBADMSG;
        if (*p && *p != '\n')
                return -EBADMSG;
        *ret = n;
        return 0;
}

uint64_t cgroup_parse_io(const char *text, const char *counter) {
        size_t n = strlen(counter);
        uint64_t sum = 0, value;

        for (const char *p = text; (p = strstr(p, counter));) {
                bool whole = p > text && p[-1] == ' ' && p[n] == '=';

                p += n;
                if (!whole)
                        continue;
                p++;
                if (read_number(&p, &value) && __builtin_add_overflow(sum, value, &sum))
                        return UINT64_MAX;
        }
        return sum;
}

int cgroup_parse_pressure(const char *text, const char *line, uint64_t *ret) {
        const char *p = find_line(text, line, ' '), *end;

        if (!p)
                return -ENODATA;
        end = strchr(p, '\n') ?: p + strlen(p);
        p = strstr(p, "total=");
        if (!p || p > end)
                return -EBADMSG;
        p += strlen("total=");
        return read_number(&p, ret) ? 0 : -EBADMSG;
}

pid_t cgroup_parse_next_pid(const char **text) {
        uint64_t n;

        while (**text == '\n')
                (*text)++;
        /* 0 stands for a process of a PID namespace that ours does not see. */
        while (read_number(text, &n)) {
                if (n > 0 && n <= INT_MAX)
                        return (pid_t) n;
                while (**text == '\n')
                        (*text)++;
        }
        return 0;
}

int cpu_list_parse(const char *text, uint8_t mask[CPU_LIST_MAX / 8], size_t *ret_size) {
        uint8_t bits[CPU_LIST_MAX / 8] = {};
        uint64_t first, last, highest = 0;

        for (const char *p = text;; p++) {
                if (!read_number(&p, &first))
                        return -EINVAL;
                last = first;
                if (*p == '-') {
                        p++;
                        if (!read_number(&p, &last) || last < first)
                                return -EINVAL;
                }
                if (last >= CPU_LIST_MAX)
                        return -ERANGE;
                for (uint64_t i = first; i <= last; i++)
                        bits[i / 8] |= (uint8_t) (1U << (i % 8));
                highest = last > highest ? last : highest;
                if (!*p)
                        break;
                if (*p != ',')
                        return -EINVAL;
        }
        memcpy(mask, bits, sizeof(bits));
        *ret_size = (size_t) highest / 8 + 1;
        return 0;
}
