/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The first line is a name; what follows is a passwd or a group file, read as either. */
#include <string.h>

#include "service/launch/users.h"
#include "tests/fuzz/fuzz.h"
#include "util/cleanup.h"

static bool inside(const char *data, size_t size, const char *text, size_t length) {
        return text >= data && length <= size && text + length <= data + size && !memchr(text, 0, length) &&
               !memchr(text, '\n', length) && !memchr(text, ':', length);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size) {
        _cleanup_free_ char *name = NULL, *data = NULL;
        uint32_t groups[8], gid = 0;
        const uint8_t *line;
        UsersEntry entry;
        size_t n = 0;

        line = memchr(input, '\n', size);
        if (!line)
                return 0;
        name = strndup((const char *) input, (size_t) (line - input));
        size -= (size_t) (line + 1 - input);
        /* A copy of its own, of exactly this size: a read beyond it shows. */
        data = malloc(size ? size : 1);
        if (!name || !data)
                return 0;
        memcpy(data, line + 1, size);

        if (users_find(data, size, name, 0, &entry)) {
                fuzz_assert(entry.uid != UINT32_MAX && entry.gid != UINT32_MAX);
                fuzz_assert(entry.name_length == strlen(name) &&
                            memcmp(entry.name, name, strlen(name)) == 0);
                fuzz_assert(inside(data, size, entry.home, entry.home_length));
                fuzz_assert(inside(data, size, entry.shell, entry.shell_length));
                fuzz_assert(users_find(data, size, NULL, entry.uid, &entry));
        }
        if (users_find_group(data, size, name, &gid))
                fuzz_assert(gid != UINT32_MAX);
        (void) users_find_memberships(data, size, name, groups, &n, ELEMENTSOF(groups));
        fuzz_assert(n <= ELEMENTSOF(groups));
        for (size_t i = 0; i < n; i++) {
                fuzz_assert(groups[i] != UINT32_MAX);
                for (size_t k = 0; k < i; k++)
                        fuzz_assert(groups[i] != groups[k]);
        }
        return 0;
}
