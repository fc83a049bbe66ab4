/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "util/unit-name.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "util/cleanup.h"

#define LETTERS_AND_DIGITS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

/* Writes n bytes of name escaped to t, which has room for four times as many and a NUL. */
static void escape(const char *name, char *t) {
        for (const char *f = name; *f; f++) {
                /* A dot at the front would make a hidden file of it. */
                bool plain = strchr(LETTERS_AND_DIGITS ":_.", *f) && !(f == name && *f == '.');

                if (*f == '/')
                        *t++ = '-';
                else if (plain)
                        *t++ = *f;
                else
                        t += sprintf(t, "\\x%02x", (unsigned char) *f);
        }
        *t = 0;
}

int unit_name_scope(const char *container, char **ret) {
        _cleanup_free_ char *escaped = NULL, *name = NULL;

        escaped = malloc(strlen(container) * 4 + 1);
        if (!escaped)
                return -ENOMEM;
        escape(container, escaped);
        if (asprintf(&name, "berth-%s.scope", escaped) < 0) {
                name = NULL;
                return -ENOMEM;
        }
        if (strlen(name) > UNIT_NAME_MAX)
                return -ENAMETOOLONG;
        *ret = TAKE_PTR(name);
        return 0;
}

bool unit_name_is_slice(const char *name) {
        size_t n = strlen(name), stem = n - strlen(".slice");

        if (n <= strlen(".slice") || n > UNIT_NAME_MAX || strcmp(name + stem, ".slice") != 0)
                return false;
        if (name[strspn(name, LETTERS_AND_DIGITS ":_.\\-")] || strstr(name, ".."))
                return false;
        /* The root slice; otherwise each dash stands between the names of two slices, one within the
         * other. */
        if (strcmp(name, "-.slice") == 0)
                return true;
        return name[0] != '-' && name[0] != '.' && name[stem - 1] != '-' && !strstr(name, "--");
}
