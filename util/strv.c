/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "util/strv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

char **strv_free(char **l) {
        for (char **s = l; s && *s; s++)
                free(*s);
        free(l);
        return NULL;
}

size_t strv_length(char *const *l) {
        size_t n = 0;

        while (l && l[n])
                n++;
        return n;
}

int strv_append(char ***l, const char *s) {
        size_t n = strv_length(*l);
        char **bigger, *copy;

        copy = strdup(s);
        if (!copy)
                return -ENOMEM;
        bigger = reallocarray(*l, n + 2, sizeof(char *));
        if (!bigger) {
                free(copy);
                return -ENOMEM;
        }
        bigger[n] = copy;
        bigger[n + 1] = NULL;
        *l = bigger;
        return 0;
}

int strv_copy(char *const *l, char ***ret) {
        _cleanup_strv_ char **copy = NULL;
        size_t n = strv_length(l);

        if (n > 0) {
                copy = calloc(n + 1, sizeof(char *));
                if (!copy)
                        return -ENOMEM;
                for (size_t i = 0; i < n; i++) {
                        copy[i] = strdup(l[i]);
                        if (!copy[i])
                                return -ENOMEM;
                }
        }
        *ret = TAKE_PTR(copy);
        return 0;
}

bool strv_contains(char *const *l, const char *s) {
        for (; l && *l; l++)
                if (strcmp(*l, s) == 0)
                        return true;
        return false;
}

const char *strv_env_get(char *const *l, const char *key) {
        size_t n = strlen(key);
        const char *value = NULL;

        for (; l && *l; l++)
                if (strncmp(*l, key, n) == 0 && (*l)[n] == '=')
                        value = *l + n + 1;
        return value;
}
