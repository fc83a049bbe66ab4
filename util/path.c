/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "util/path.h"

#include <errno.h>
#include <string.h>

#include "util/cleanup.h"

int path_normalise(const char *path, char **ret) {
        _cleanup_free_ char *result = NULL;
        size_t n = 0;

        result = malloc(strlen(path) + 2);
        if (!result)
                return -ENOMEM;
        for (const char *p = path + strspn(path, "/"); *p; p += strspn(p, "/")) {
                size_t length = strcspn(p, "/");

                if (length == 2 && p[0] == '.' && p[1] == '.') {
                        while (n > 0 && result[--n] != '/')
                                ;
                } else if (length != 1 || p[0] != '.') {
                        result[n++] = '/';
                        memcpy(result + n, p, length);
                        n += length;
                }
                p += length;
        }
        if (n == 0)
                result[n++] = '/';
        result[n] = 0;
        *ret = TAKE_PTR(result);
        return 0;
}

bool path_has_parent(const char *path) {
        for (const char *p = path + strspn(path, "/"); *p; p += strspn(p, "/")) {
                size_t length = strcspn(p, "/");

                if (length == 2 && p[0] == '.' && p[1] == '.')
                        return true;
                p += length;
        }
        return false;
}
