/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/launch/path.h"

#include "service/launch/sys.h"
#include "service/launch/text.h"

/* RESOLVE_IN_ROOT gives up when something is renamed anywhere on the host while it goes over "..". */
#define PATH_TRIES_MAX 128
#define PATH_LINKS_MAX 16

int path_open(int root, const char *path, int open_flags, unsigned flags) {
        struct open_how how = {
                .flags = (uint64_t) (unsigned) open_flags | O_CLOEXEC,
                .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
        };
        int r = -EAGAIN;

        if (flags & PATH_NO_SYMLINKS)
                how.resolve |= RESOLVE_NO_SYMLINKS;
        for (unsigned i = 0; i < PATH_TRIES_MAX && (r == -EAGAIN || r == -EINTR); i++)
                r = sys_openat2(root, path, &how);
        return r;
}

/* Puts the text of the link `name` in parent in the place of path's first n bytes, of which the last
 * `name` is part. */
static int path_expand_link(int parent, const char *name, char *path, size_t size, size_t start,
                            size_t end) {
        char text[PATH_MAX], *to;
        long n;

        n = sys_readlinkat(parent, name, text, sizeof(text));
        if (n < 0)
                return (int) n;
        if ((size_t) n >= sizeof(text) - 1)
                return -ENAMETOOLONG;
        text[n] = 0;
        /* What follows the link goes behind its text, then all of it where the link was. */
        to = text_append(text + n, text + sizeof(text), path + end);
        if (to == text + sizeof(text) - 1)
                return -ENAMETOOLONG;
        if (text[0] == '/')
                start = 0;
        to = text_append(path + start, path + size, text);
        return to == path + size - 1 ? -ENAMETOOLONG : 0;
}

/* One missing component, already known to be absent as a path. -EEXIST: it is a link that leads to
 * nothing. */
static int path_make_one(int parent, const char *name, bool directory) {
        return directory ? sys_mkdirat(parent, name, 0755) : sys_mknodat(parent, name, S_IFREG | 0644, 0);
}

static int path_make_walk(int root, char *path, size_t size, unsigned flags) {
        _cleanup_close_ int parent = -EBADF;
        unsigned links = 0;
        size_t start = 0;
        int fd, r;

        parent = path_open(root, ".", O_PATH | O_DIRECTORY, flags);
        if (parent < 0)
                return parent;
        for (;;) {
                size_t end;
                char kept;

                while (path[start] == '/')
                        start++;
                if (!path[start])
                        return sys_take_fd(&parent);
                for (end = start; path[end] && path[end] != '/'; end++)
                        ;
                kept = path[end];
                path[end] = 0;
                fd = path_open(root, path, O_PATH, flags);
                if (fd == -ENOENT) {
                        bool last = true;

                        for (size_t i = end + 1; kept && path[i]; i++)
                                last = last && path[i] == '/';
                        r = path_make_one(parent, path + start, !last || !(flags & PATH_FILE));
                        if (r == -EEXIST && !(flags & PATH_NO_SYMLINKS)) {
                                char name[256];

                                if (++links > PATH_LINKS_MAX)
                                        return -ELOOP;
                                (void) text_append(name, name + sizeof(name), path + start);
                                path[end] = kept;
                                r = path_expand_link(parent, name, path, size, start, end);
                                if (r < 0)
                                        return r;
                                (void) sys_close(parent);
                                parent = path_open(root, ".", O_PATH | O_DIRECTORY, flags);
                                if (parent < 0)
                                        return parent;
                                start = 0;
                                continue;
                        }
                        if (r < 0)
                                return r;
                        fd = path_open(root, path, O_PATH, flags);
                }
                if (fd < 0)
                        return fd;
                (void) sys_close(parent);
                parent = fd;
                path[end] = kept;
                start = end;
        }
}

int path_make(int root, const char *path, unsigned flags) {
        char copy[PATH_MAX];
        int fd;

        fd = path_open(root, path, O_PATH, flags);
        if (fd != -ENOENT)
                return fd;
        if (text_append(copy, copy + sizeof(copy), path) == copy + sizeof(copy) - 1)
                return -ENAMETOOLONG;
        return path_make_walk(root, copy, sizeof(copy), flags);
}

int path_make_parent(int root, const char *path, const char **ret_name) {
        char copy[PATH_MAX];
        const char *name = path;
        int fd;

        for (const char *p = path; *p; p++)
                if (*p == '/')
                        name = p + 1;
        if (!*name || text_equal(name, ".") || text_equal(name, ".."))
                return -EINVAL;
        if ((size_t) (name - path) >= sizeof(copy) - 1)
                return -ENAMETOOLONG;
        (void) text_append(copy, copy + (name - path) + 1, path);
        fd = path_open(root, name == path ? "." : copy, O_PATH | O_DIRECTORY, 0);
        if (fd == -ENOENT)
                fd = path_make_walk(root, copy, sizeof(copy), 0);
        if (fd >= 0)
                *ret_name = name;
        return fd;
}

int path_open_self(void) {
        _cleanup_close_ int fd = -EBADF;
        struct statfs fs;
        int r;

        fd = sys_openat(AT_FDCWD, "/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
        if (fd < 0)
                return fd;
        r = sys_fstatfs(fd, &fs);
        if (r < 0)
                return r;
        return fs.f_type == PROC_SUPER_MAGIC ? sys_take_fd(&fd) : -EXDEV;
}
