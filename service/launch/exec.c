/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/launch/exec.h"

#include "service/launch/sys.h"
#include "service/launch/text.h"

#define PATH_DEFAULT "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

static bool has_slash(const char *name) {
        for (; *name; name++)
                if (*name == '/')
                        return true;
        return false;
}

static const char *find_path(char *const *environment) {
        for (; *environment; environment++)
                if (text_starts(*environment, "PATH="))
                        return *environment + 5;
        return PATH_DEFAULT;
}

int exec_program(char *const *arguments, char *const *environment) {
        const char *name = arguments[0], *path;
        char candidate[PATH_MAX];
        bool denied = false;

        if (!*name)
                return -ENOENT;
        if (has_slash(name))
                return sys_execve(name, arguments, environment);

        path = find_path(environment);
        for (;;) {
                const char *end = path;
                int r;

                while (*end && *end != ':')
                        end++;
                if ((size_t) (end - path) + text_length(name) + 2 <= sizeof(candidate)) {
                        char *to = candidate;

                        /* An empty element is the working directory. */
                        if (end > path) {
                                __builtin_memcpy(to, path, (size_t) (end - path));
                                to += end - path;
                                *to++ = '/';
                        }
                        (void) text_append(to, candidate + sizeof(candidate), name);
                        r = sys_execve(candidate, arguments, environment);
                        if (r == -EACCES)
                                denied = true;
                        else if (r != -ENOENT && r != -ENOTDIR)
                                return r;
                }
                if (!*end)
                        return denied ? -EACCES : -ENOENT;
                path = end + 1;
        }
}
