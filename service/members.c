/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/members.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/nsfs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "service/cgroup-parse.h"
#include "service/cgroup.h"
#include "util/fd.h"

#define PROCS_MAX (1U << 20)
#define DEPTH_MAX 32U      /* of control groups */
#define NAMESPACES_MAX 32U /* of PID namespaces: the kernel's own limit */
#define ALLOCATE_FIRST 16U

void members_done(Members *members) {
        free(members->pids);
        *members = (Members) {};
}

static int append(Members *members, pid_t pid) {
        pid_t *pids;

        if (members->n == MEMBERS_MAX)
                return -E2BIG;
        /* Grows at each power of two. */
        if ((members->n & (members->n - 1)) == 0) {
                size_t size = members->n < ALLOCATE_FIRST ? ALLOCATE_FIRST : 2 * members->n;

                pids = reallocarray(members->pids, size, sizeof(pid_t));
                if (!pids)
                        return -ENOMEM;
                members->pids = pids;
        }
        members->pids[members->n++] = pid;
        return 0;
}

static int append_procs(int fd, Members *members) {
        _cleanup_free_ char *text = NULL;
        const char *p;
        pid_t pid;
        int r;

        r = fd_read_file(fd, "cgroup.procs", 0, PROCS_MAX, &text, NULL);
        /* A threaded group has no processes of its own; one can vanish. */
        if (r == -EOPNOTSUPP || r == -ENODEV || r == -ENOENT)
                return 0;
        if (r < 0)
                return r;
        p = text;
        while ((pid = cgroup_parse_next_pid(&p)) > 0) {
                r = append(members, pid);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int append_group(int parent, const char *name, unsigned depth, Members *members) {
        DIR *directory;
        int fd, r;

        fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
                return depth > 0 && errno == ENOENT ? 0 : -errno;
        directory = fdopendir(fd);
        if (!directory) {
                (void) fd_close(fd);
                return -ENOMEM;
        }
        r = append_procs(fd, members);
        for (struct dirent *entry; r >= 0 && depth < DEPTH_MAX && (entry = readdir(directory));)
                if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
                        r = append_group(fd, entry->d_name, depth + 1, members);
        (void) closedir(directory);
        return r;
}

int members_in_cgroup(int fd, Members *ret) {
        _cleanup_members_ Members members = {};
        int r;

        r = append_group(fd, ".", 0, &members);
        if (r < 0)
                return r;
        *ret = TAKE(members, (Members) {});
        return 0;
}

static int open_namespace(pid_t pid, struct stat *ret) {
        _cleanup_fd_ int fd = -EBADF;
        char path[64];

        (void) snprintf(path, sizeof(path), "/proc/%d/ns/pid", pid);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0 || fstat(fd, ret) < 0)
                return -errno;
        return TAKE_FD(fd);
}

static bool is_within_namespace(pid_t pid, const struct stat *wanted) {
        _cleanup_fd_ int fd = -EBADF;
        struct stat st;

        fd = open_namespace(pid, &st);
        for (unsigned i = 0; fd >= 0 && i < NAMESPACES_MAX; i++) {
                int parent;

                if (st.st_dev == wanted->st_dev && st.st_ino == wanted->st_ino)
                        return true;
                parent = ioctl(fd, NS_GET_PARENT);
                (void) fd_close(fd);
                fd = parent;
                if (fd < 0 || fstat(fd, &st) < 0)
                        break;
        }
        return false;
}

/* The namespace of a container's init; never the service's own. */
static int namespace_of(pid_t init, struct stat *ret) {
        _cleanup_fd_ int fd = -EBADF, own = -EBADF;
        struct stat st;

        fd = open_namespace(init, ret);
        if (fd < 0)
                return fd;
        own = open_namespace(getpid(), &st);
        return own >= 0 && st.st_dev == ret->st_dev && st.st_ino == ret->st_ino ? -EOPNOTSUPP : 0;
}

int members_in_namespace(pid_t init, Members *ret) {
        _cleanup_members_ Members members = {};
        struct stat wanted;
        DIR *directory;
        int r;

        r = namespace_of(init, &wanted);
        if (r < 0)
                return r;
        directory = opendir("/proc");
        if (!directory)
                return -errno;
        for (struct dirent *entry; r >= 0 && (entry = readdir(directory));) {
                const char *name = entry->d_name;
                pid_t pid = cgroup_parse_next_pid(&name);

                if (pid > 0 && is_within_namespace(pid, &wanted))
                        r = append(&members, pid);
        }
        (void) closedir(directory);
        if (r < 0)
                return r;
        *ret = TAKE(members, (Members) {});
        return 0;
}

bool member_of_namespace(pid_t pid, pid_t init) {
        struct stat wanted;

        return namespace_of(init, &wanted) >= 0 && is_within_namespace(pid, &wanted);
}

bool cgroup_path_is_within(const char *path, const char *group) {
        size_t n = strlen(group);

        return strncmp(path, group, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

bool member_of_cgroup(pid_t pid, const char *path) {
        _cleanup_free_ char *own = NULL;

        return cgroup_of_process(pid, &own) >= 0 && cgroup_path_is_within(own, path);
}
