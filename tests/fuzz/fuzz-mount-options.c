/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The first lines are destination, type and source of a mount, each other one is an option. */
#include <linux/mount.h>
#include <string.h>

#include "service/spec.h"
#include "tests/fuzz/fuzz.h"
#include "util/path.h"

static void check(const SpecMount *mount) {
        fuzz_assert(mount->destination[0] == '/' && mount->destination[1]);
        fuzz_assert(!path_has_parent(mount->destination));
        fuzz_assert(!strstr(mount->destination, "//"));
        fuzz_assert(mount->type && mount->type[0] && mount->source);
        fuzz_assert(!mount->bind ||
                    (mount->source[0] == '/' && !mount->data && strcmp(mount->type, "bind") == 0));
        fuzz_assert(mount->bind || (mount->attr_set_recursive | mount->attr_clear_recursive) == 0);
        fuzz_assert(mount->bind || !mount->recursive);
        /* mount_setattr(2): a kind of access time only where the field is cleared, and that as a whole;
         * any other bit is set or cleared, not both. */
        for (int i = 0; i < 2; i++) {
                uint64_t set = i ? mount->attr_set_recursive : mount->attr_set;
                uint64_t clear = i ? mount->attr_clear_recursive : mount->attr_clear;

                fuzz_assert((set & clear & ~(uint64_t) MOUNT_ATTR__ATIME) == 0);
                fuzz_assert((clear & MOUNT_ATTR__ATIME) == 0 ||
                            (clear & MOUNT_ATTR__ATIME) == MOUNT_ATTR__ATIME);
                fuzz_assert((set & MOUNT_ATTR__ATIME) == 0 || (clear & MOUNT_ATTR__ATIME) != 0);
                fuzz_assert((set & MOUNT_ATTR__ATIME) != (MOUNT_ATTR_NOATIME | MOUNT_ATTR_STRICTATIME));
        }
        if (mount->data)
                for (const char *p = mount->data; p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL)
                        fuzz_assert(*p && *p != ',');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_bus_error_ sd_bus_error error = SD_BUS_ERROR_NULL;
        _cleanup_free_ char *text = NULL;
        _cleanup_spec_ Spec *spec = spec_new();
        char *lines[64] = {};
        char *rest;
        int r;

        text = strndup((const char *) data, size);
        if (!text || !spec)
                return 0;
        rest = text;
        for (size_t i = 0; i < ELEMENTSOF(lines) - 1 && rest; i++)
                lines[i] = strsep(&rest, "\n");
        if (!lines[2])
                return 0;
        r = spec_add_mount(spec, lines[0], lines[1], lines[2], lines + 3, &error);
        fuzz_assert(r <= 0);
        fuzz_assert(spec->n_mounts == (r == 0));
        fuzz_assert((r < 0) == (sd_bus_error_is_set(&error) > 0));
        if (r == 0)
                check(&spec->mounts[0]);
        return 0;
}
