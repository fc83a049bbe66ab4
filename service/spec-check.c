/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/spec-check.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "util/quote.h"

#define STRING_MAX_SIZE (128U * 1024U) /* MAX_ARG_STRLEN of the kernel, with the NUL */
#define ACCOUNT_MAX 255U

int spec_check_path(const char *key, const char *path, sd_bus_error *error) {
        if (path[0] != '/')
                return spec_invalid(error, "%s: \"%s\" is not an absolute path.", key, QUOTE(path));
        if (strlen(path) >= PATH_MAX)
                return spec_invalid(error, "%s: the path is longer than %i bytes.", key, PATH_MAX - 1);
        return 0;
}

int spec_check_strings(const char *key, char *const *list, size_t max, sd_bus_error *error) {
        for (size_t i = 0; list && list[i]; i++) {
                if (i >= max)
                        return spec_invalid(error, "%s: has more than %zu entries.", key, max);
                if (strnlen(list[i], STRING_MAX_SIZE) >= STRING_MAX_SIZE)
                        return spec_invalid(error, "%s: entry %zu is longer than %u bytes.", key, i + 1,
                                            STRING_MAX_SIZE - 1);
        }
        return 0;
}

bool spec_is_number(const char *text) {
        return text[0] && !text[strspn(text, "0123456789")];
}

int spec_parse_id(const char *text, uint32_t *ret) {
        uint64_t n = 0;

        if (!spec_is_number(text) || strlen(text) > 10)
                return -EINVAL;
        for (; *text; text++)
                n = n * 10 + (uint64_t) (*text - '0');
        if (n >= UINT32_MAX)
                return -EINVAL;
        *ret = (uint32_t) n;
        return 0;
}

bool spec_is_account(const char *name) {
        size_t n = strnlen(name, ACCOUNT_MAX + 1);

        if (n < 1 || n > ACCOUNT_MAX || name[0] == '-' || name[0] == '+')
                return false;
        for (; *name; name++)
                if ((unsigned char) *name <= ' ' || *name == 0x7f || strchr(":,/", *name))
                        return false;
        return true;
}
