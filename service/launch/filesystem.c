/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/launch/filesystem.h"

#include "service/launch/sys.h"
#include "service/launch/text.h"

/* The kernel's own limits: 256 for either. */
#define KEY_MAX 256
#define VALUE_MAX 256

static int configure_one(int fd, const char *option, size_t length) {
        char key[KEY_MAX + VALUE_MAX], *value = NULL;

        if (length >= sizeof(key))
                return -ENAMETOOLONG;
        __builtin_memcpy(key, option, length);
        key[length] = 0;
        for (size_t i = 0; i < length && !value; i++)
                if (key[i] == '=') {
                        key[i] = 0;
                        value = key + i + 1;
                }
        return value ? sys_fsconfig(fd, FSCONFIG_SET_STRING, key, value)
                     : sys_fsconfig(fd, FSCONFIG_SET_FLAG, key, NULL);
}

static int configure(int fd, const char *data) {
        int r;

        while (*data) {
                size_t n = 0;

                while (data[n] && data[n] != ',')
                        n++;
                if (n > 0) {
                        r = configure_one(fd, data, n);
                        if (r < 0)
                                return r;
                }
                data += n + (data[n] == ',');
        }
        return 0;
}

int filesystem_new(const char *type, const char *source, const char *data, bool read_only,
                   uint64_t attributes) {
        _cleanup_close_ int fd = -EBADF;
        int r;

        fd = sys_fsopen(type);
        if (fd < 0)
                return fd;
        if (source) {
                r = sys_fsconfig(fd, FSCONFIG_SET_STRING, "source", source);
                if (r < 0)
                        return r;
        }
        if (data) {
                r = configure(fd, data);
                if (r < 0)
                        return r;
        }
        if (read_only) {
                r = sys_fsconfig(fd, FSCONFIG_SET_FLAG, "ro", NULL);
                if (r < 0)
                        return r;
        }
        r = sys_fsconfig(fd, FSCONFIG_CMD_CREATE, NULL, NULL);
        if (r < 0)
                return r;
        return sys_fsmount(fd, (unsigned) attributes);
}

int filesystem_copy(int dir, const char *path, unsigned flags) {
        const struct mount_attr attr = { .propagation = MS_PRIVATE };
        _cleanup_close_ int tree = -EBADF;
        int r;

        tree = sys_open_tree(dir, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | flags);
        if (tree < 0)
                return sys_take_fd(&tree);
        r = sys_mount_setattr(tree, flags & AT_RECURSIVE, &attr);
        return r < 0 ? r : sys_take_fd(&tree);
}
