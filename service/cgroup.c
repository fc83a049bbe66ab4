/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "service/device-filter.h"
#include "util/fd.h"
#include "util/log.h"

#ifndef CGROUP2_SUPER_MAGIC
#        define CGROUP2_SUPER_MAGIC 0x63677270
#endif

#define PROC_CGROUP_MAX (64U << 10)
#define DEPTH_MAX 32
#define NAME_TRIES 1000U

/* How long the end of the service waits for its own group to become empty. */
#define REMOVE_TRIES 20U
#define REMOVE_WAIT_MSEC 50

/* Where version 2 is mounted: alone, or beside version 1. */
static const char *const mount_points[] = { "/sys/fs/cgroup", "/sys/fs/cgroup/unified" };

/* Those that have limits of ours. */
static const char *const controllers[] = { "memory", "pids", "cpu", "io", "cpuset" };

struct CgroupTree {
        int own;    /* owned: the service's own group */
        int fd;     /* owned: berth-<pid> below it */
        char *path; /* owned: of berth-<pid> in the hierarchy */
        char name[32];
        bool has[ELEMENTSOF(controllers)];
        int devices;     /* owned: the program that says which devices may be opened; negative without one */
        sd_event *event; /* owned reference */
        TAILQ_HEAD(, Cgroup) doomed; /* owned: to be removed as soon as they are empty */
};

struct Cgroup {
        CgroupTree *tree;  /* borrowed */
        int fd;            /* owned */
        char *name, *path; /* owned */
        int events;        /* owned once doomed: its cgroup.events */
        sd_event_source *source;
        TAILQ_ENTRY(Cgroup) link;
};

int cgroup_of_process(pid_t pid, char **ret) {
        _cleanup_free_ char *text = NULL;
        char path[64], *line, *rest, *copy;
        int r;

        (void) snprintf(path, sizeof(path), "/proc/%d/cgroup", pid);
        r = fd_read_file(AT_FDCWD, path, 0, PROC_CGROUP_MAX, &text, NULL);
        if (r < 0)
                return r;
        rest = text;
        while ((line = strsep(&rest, "\n")))
                if (strncmp(line, "0::", 3) == 0) {
                        copy = strdup(line + 3);
                        if (!copy)
                                return -ENOMEM;
                        *ret = copy;
                        return 0;
                }
        return -ENODATA;
}

static int open_hierarchy(void) {
        for (size_t i = 0; i < ELEMENTSOF(mount_points); i++) {
                _cleanup_fd_ int fd = -EBADF;
                struct statfs fs;

                fd = open(mount_points[i], O_PATH | O_DIRECTORY | O_CLOEXEC);
                if (fd >= 0 && fstatfs(fd, &fs) == 0 && fs.f_type == CGROUP2_SUPER_MAGIC)
                        return TAKE_FD(fd);
        }
        return -EOPNOTSUPP;
}

int cgroup_open(const char *path) {
        _cleanup_fd_ int root = -EBADF;
        int fd;

        root = open_hierarchy();
        if (root < 0)
                return root;
        fd = openat(root, path[0] == '/' && path[1] ? path + 1 : ".",
                    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

bool cgroup_host_has(const char *controller, bool unified) {
        _cleanup_free_ char *list = NULL;
        _cleanup_fd_ int root = -EBADF;
        char path[64], *word, *rest;

        root = open_hierarchy();
        if (root >= 0 && fd_read_file(root, "cgroup.controllers", 0, PROC_CGROUP_MAX, &list, NULL) >= 0) {
                rest = list;
                while ((word = strsep(&rest, " \n")))
                        if (strcmp(word, controller) == 0)
                                return true;
        }
        if (unified)
                return false;
        (void) snprintf(path, sizeof(path), "/sys/fs/cgroup/%s/cgroup.procs", controller);
        return access(path, F_OK) == 0;
}

/* Hands a controller on to the groups below; without effect where the kernel or the hierarchy does not allow it. */
static bool enable_controller(const CgroupTree *tree, const char *controller) {
        char word[32];

        (void) snprintf(word, sizeof(word), "+%s", controller);
        (void) fd_write_file(tree->own, "cgroup.subtree_control", word);
        return fd_write_file(tree->fd, "cgroup.subtree_control", word) == 0;
}

/* Removes an empty group, those that the container made in it first. */
static int remove_group(int parent, const char *name, unsigned depth) {
        DIR *directory;
        int fd;

        if (unlinkat(parent, name, AT_REMOVEDIR) == 0)
                return 0;
        if (errno != EBUSY || depth == 0)
                return -errno;
        fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        directory = fdopendir(fd);
        if (!directory) {
                (void) fd_close(fd);
                return -ENOMEM;
        }
        for (struct dirent *entry; (entry = readdir(directory));)
                if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
                        (void) remove_group(dirfd(directory), entry->d_name, depth - 1);
        (void) closedir(directory);
        return unlinkat(parent, name, AT_REMOVEDIR) < 0 ? -errno : 0;
}

/* Groups beside ours whose service was killed: nobody else would ever remove them. One with processes stays. */
static void remove_stale(int own) {
        DIR *directory;
        int fd;

        fd = openat(own, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                return;
        directory = fdopendir(fd);
        if (!directory) {
                (void) fd_close(fd);
                return;
        }
        for (struct dirent *entry; (entry = readdir(directory));) {
                int pid, end = 0;

                if (entry->d_type != DT_DIR || sscanf(entry->d_name, "berth-%d%n", &pid, &end) != 1 ||
                    entry->d_name[end] || pid <= 0)
                        continue;
                if (kill(pid, 0) < 0 && errno == ESRCH)
                        (void) remove_group(own, entry->d_name, DEPTH_MAX);
        }
        (void) closedir(directory);
}

int cgroup_tree_new(sd_event *event, CgroupTree **ret) {
        _cleanup_(cgroup_tree_freep) CgroupTree *tree = NULL;
        _cleanup_fd_ int root = -EBADF;
        _cleanup_free_ char *own = NULL;
        int r;

        root = open_hierarchy();
        if (root < 0)
                return root;
        r = cgroup_of_process(getpid(), &own);
        if (r < 0)
                return r;

        tree = calloc(1, sizeof(*tree));
        if (!tree)
                return -ENOMEM;
        tree->own = tree->fd = -EBADF;
        tree->devices = device_filter_load();
        tree->event = sd_event_ref(event);
        TAILQ_INIT(&tree->doomed);
        tree->own = openat(root, own[1] ? own + 1 : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (tree->own < 0)
                return -errno;
        remove_stale(tree->own);
        (void) snprintf(tree->name, sizeof(tree->name), "berth-%d", getpid());
        if (asprintf(&tree->path, "%s/%s", own[1] ? own : "", tree->name) < 0) {
                tree->path = NULL;
                return -ENOMEM;
        }
        if (mkdirat(tree->own, tree->name, 0755) < 0 && errno != EEXIST)
                return -errno;
        tree->fd = openat(tree->own, tree->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (tree->fd < 0)
                return -errno;
        for (size_t i = 0; i < ELEMENTSOF(controllers); i++)
                tree->has[i] = enable_controller(tree, controllers[i]);
        *ret = TAKE_PTR(tree);
        return 0;
}

/* Removes the service's group at its end. The kernel takes a process that has ended off the counts of one group after
 * the other upwards, so this one can be busy when those below are gone; its events file tells when that is over. */
static int remove_tree(const CgroupTree *tree) {
        struct pollfd events = { .fd = -EBADF, .events = POLLPRI };
        char text[128];
        int r;

        events.fd = openat(tree->fd, "cgroup.events", O_RDONLY | O_CLOEXEC);
        for (unsigned i = 0;; i++) {
                /* poll(2) tells of changes since the last read. */
                (void) pread(events.fd, text, sizeof(text), 0);
                r = remove_group(tree->own, tree->name, DEPTH_MAX);
                if (r != -EBUSY || i == REMOVE_TRIES)
                        break;
                (void) poll(&events, 1, REMOVE_WAIT_MSEC);
        }
        (void) fd_close(events.fd);
        return r;
}

static void destroy(Cgroup *cgroup) {
        (void) sd_event_source_disable_unref(cgroup->source);
        (void) fd_close(cgroup->events);
        (void) fd_close(cgroup->fd);
        free(cgroup->name);
        free(cgroup->path);
        free(cgroup);
}

CgroupTree *cgroup_tree_free(CgroupTree *tree) {
        int r;

        if (!tree)
                return NULL;
        /* At the end of the service: the tree's own removal waits for the last ones, and takes them with it. */
        while (!TAILQ_EMPTY(&tree->doomed)) {
                Cgroup *cgroup = TAILQ_FIRST(&tree->doomed);

                TAILQ_REMOVE(&tree->doomed, cgroup, link);
                destroy(cgroup);
        }
        if (tree->fd >= 0) {
                r = remove_tree(tree);
                if (r < 0) {
                        errno = -r;
                        log_message(LOG_WARNING, "Cannot remove control group %s: %m", tree->path);
                }
        }
        (void) fd_close(tree->fd);
        (void) fd_close(tree->own);
        (void) fd_close(tree->devices);
        (void) sd_event_unref(tree->event);
        free(tree->path);
        free(tree);
        return NULL;
}

bool cgroup_tree_limits_devices(const CgroupTree *tree) {
        return tree->devices >= 0;
}

bool cgroup_tree_has(const CgroupTree *tree, const char *controller) {
        for (size_t i = 0; i < ELEMENTSOF(controllers); i++)
                if (strcmp(controllers[i], controller) == 0)
                        return tree->has[i];
        return false;
}

/* The group of the last container of this name may not be gone yet: then there is another one beside it. */
static int make_directory(CgroupTree *tree, const char *name, char **ret) {
        for (unsigned i = 0; i < NAME_TRIES; i++) {
                _cleanup_free_ char *try = NULL;

                if ((i == 0 ? asprintf(&try, "%s", name) : asprintf(&try, "%s.%u", name, i)) < 0) {
                        try = NULL;
                        return -ENOMEM;
                }
                if (mkdirat(tree->fd, try, 0755) >= 0) {
                        *ret = TAKE_PTR(try);
                        return 0;
                }
                if (errno != EEXIST)
                        return -errno;
        }
        return -EEXIST;
}

int cgroup_new(CgroupTree *tree, const char *name, const Resources *resources, const char **ret_key,
               Cgroup **ret) {
        _cleanup_(cgroup_freep) Cgroup *cgroup = NULL;
        int r;

        *ret_key = name;
        cgroup = calloc(1, sizeof(*cgroup));
        if (!cgroup)
                return -ENOMEM;
        cgroup->tree = tree;
        cgroup->fd = cgroup->events = -EBADF;
        r = make_directory(tree, name, &cgroup->name);
        if (r < 0)
                return r;
        if (asprintf(&cgroup->path, "%s/%s", tree->path, cgroup->name) < 0) {
                cgroup->path = NULL;
                r = -ENOMEM;
        } else {
                cgroup->fd = openat(tree->fd, cgroup->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
                r = cgroup->fd < 0 ? -errno : 0;
        }
        if (r < 0) {
                (void) unlinkat(tree->fd, cgroup->name, AT_REMOVEDIR);
                return r;
        }
        if (tree->devices >= 0) {
                r = device_filter_attach(tree->devices, cgroup->fd);
                if (r < 0)
                        return r;
        }
        r = resources_write(resources, cgroup->fd, ret_key);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(cgroup);
        return 0;
}

int cgroup_fd(const Cgroup *cgroup) {
        return cgroup->fd;
}

const char *cgroup_path(const Cgroup *cgroup) {
        return cgroup->path;
}

static int on_events(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        Cgroup *cgroup = userdata;
        char text[128];

        /* What was read is told of no more. */
        (void) pread(fd, text, sizeof(text), 0);
        if (remove_group(cgroup->tree->fd, cgroup->name, DEPTH_MAX) == -EBUSY)
                return 0;
        TAILQ_REMOVE(&cgroup->tree->doomed, cgroup, link);
        destroy(cgroup);
        return 0;
}

/* A process that was killed is on its way out of it: its removal is put off until the kernel says that it is empty. */
static int doom(Cgroup *cgroup) {
        int r;

        cgroup->events = openat(cgroup->fd, "cgroup.events", O_RDONLY | O_CLOEXEC);
        if (cgroup->events < 0)
                return -errno;
        r = sd_event_add_io(cgroup->tree->event, &cgroup->source, cgroup->events, EPOLLPRI, on_events,
                            cgroup);
        if (r < 0)
                return r;
        TAILQ_INSERT_TAIL(&cgroup->tree->doomed, cgroup, link);
        /* It may have become empty before it was watched. */
        (void) on_events(cgroup->source, cgroup->events, EPOLLPRI, cgroup);
        return 0;
}

Cgroup *cgroup_free(Cgroup *cgroup) {
        int r = 0;

        if (!cgroup)
                return NULL;
        if (cgroup->fd >= 0) {
                r = remove_group(cgroup->tree->fd, cgroup->name, DEPTH_MAX);
                if (r == -EBUSY) {
                        r = doom(cgroup);
                        if (r >= 0)
                                return NULL;
                }
        }
        if (r < 0) {
                errno = -r;
                log_message(LOG_WARNING, "Cannot remove control group %s: %m", cgroup->path);
        }
        destroy(cgroup);
        return NULL;
}
