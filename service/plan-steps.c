/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/plan-steps.h"

#include <errno.h>
#include <linux/mount.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/cleanup.h"

#define ATTR_NO_SUID_DEV (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)
#define ATTR_NO_SUID_DEV_EXEC (ATTR_NO_SUID_DEV | MOUNT_ATTR_NOEXEC)
#define ATTR_READ_ONLY (ATTR_NO_SUID_DEV_EXEC | MOUNT_ATTR_RDONLY)

/* The container's own devpts has these whoever mounts it, since berthd can have made it before. Group 5 is
 * tty everywhere; with a single id there is no such group to give it to. */
#define DEVPTS_DATA "newinstance,ptmxmode=0666,mode=0620,max=1024"
#define DEVPTS_DATA_TTY DEVPTS_DATA ",gid=5"

#define RESOLV_CONF "/etc/resolv.conf"

/* No noexec on /dev: mapping /dev/zero executable, as some programs do, is refused there. The read-only ones
 * are so as mounts only, since their superblocks may be the host's. */
static const struct {
        const char *target, *type, *source, *data;
        uint64_t attr_set, attr_clear;
        uint32_t flags;
} file_systems[] = {
        { "/proc", "proc", "proc", NULL, ATTR_NO_SUID_DEV_EXEC, 0, 0 },
        { "/dev", "tmpfs", "tmpfs", "mode=755,size=65536k", MOUNT_ATTR_NOSUID | MOUNT_ATTR_STRICTATIME,
          MOUNT_ATTR__ATIME, 0 },
        { "/dev/pts", "devpts", "devpts", NULL, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, 0, 0 },
        { "/dev/shm", "tmpfs", "shm", "mode=1777,size=65536k", ATTR_NO_SUID_DEV_EXEC, 0, 0 },
        { "/dev/mqueue", "mqueue", "mqueue", NULL, ATTR_NO_SUID_DEV_EXEC, 0, 0 },
        { "/sys", "sysfs", "sysfs", NULL, ATTR_READ_ONLY, 0, 0 },
        { "/sys/fs/cgroup", "cgroup2", "cgroup", NULL, ATTR_READ_ONLY, 0,
          LAUNCH_STEP_FLAG_LATE | LAUNCH_STEP_FLAG_OPTIONAL | LAUNCH_STEP_FLAG_IF_TARGET },
};

static const struct {
        const char *path;
        uint32_t major, minor;
} devices[] = {
        { "/dev/null", 1, 3 },   { "/dev/zero", 1, 5 },    { "/dev/full", 1, 7 },
        { "/dev/random", 1, 8 }, { "/dev/urandom", 1, 9 }, { "/dev/tty", 5, 0 },
};

static const struct {
        const char *path, *text;
} links[] = {
        { "/dev/fd", "/proc/self/fd" },       { "/dev/stdin", "/proc/self/fd/0" },
        { "/dev/stdout", "/proc/self/fd/1" }, { "/dev/stderr", "/proc/self/fd/2" },
        { "/dev/ptmx", "pts/ptmx" },
};

/* What tells about the host or reaches its hardware. Interrupt counts and thermal events are side channels:
 * they tell other users' keystrokes and load. */
static const char *const masks[] = {
        "/proc/acpi",
        "/proc/asound",
        "/proc/interrupts",
        "/proc/kcore",
        "/proc/keys",
        "/proc/latency_stats",
        "/proc/sched_debug",
        "/proc/scsi",
        "/proc/timer_list",
        "/proc/timer_stats",
        "/sys/devices/virtual/powercap",
        "/sys/firmware",
};

static const char *const read_only_paths[] = {
        "/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger",
};

typedef struct Steps {
        PlanBuilder *builder;
        const Spec *spec;
        const char *devpts_data;
        LaunchStep *steps; /* owned; room for all of them */
        size_t n;
        bool *placed;   /* owned: mounts of the spec that took a standard step's place */
        bool dev_bound; /* the spec binds a directory on /dev */
} Steps;

static void steps_done(Steps *s) {
        free(s->steps);
        free(s->placed);
}

/* Whether path is upper or lies below it; both are normalised. */
static bool path_is_below(const char *path, const char *upper) {
        size_t n = strlen(upper);

        if (n == 1)
                return true;
        return strncmp(path, upper, n) == 0 && (path[n] == 0 || path[n] == '/');
}

static void add_step(Steps *s, const char *target, LaunchStep step) {
        step.target = plan_builder_string(s->builder, target);
        if (s->builder->error < 0)
                return;
        for (size_t i = 0; i < s->n; i++) {
                if (!path_is_below(target, s->builder->data + s->steps[i].target))
                        continue;
                step.flags |= LAUNCH_STEP_FLAG_NESTED;
                /* What lies on a late mount can't come before it. */
                step.flags |= s->steps[i].flags & LAUNCH_STEP_FLAG_LATE;
        }
        s->steps[s->n++] = step;
}

static void add_mount(Steps *s, const SpecMount *mount) {
        LaunchStep step = {
                .kind = mount->bind ? LAUNCH_STEP_BIND : LAUNCH_STEP_FILESYSTEM,
                .attr_set = mount->attr_set,
                .attr_clear = mount->attr_clear,
                .attr_set_recursive = mount->attr_set_recursive,
                .attr_clear_recursive = mount->attr_clear_recursive,
                .propagation = mount->propagation,
                .sb_read_only = mount->superblock_read_only,
        };
        const char *type = mount->type, *data = mount->data;

        if (mount->bind)
                type = data = NULL;
        else if (strcmp(type, "devpts") == 0 && strcmp(mount->destination, "/dev/pts") == 0) {
                step.kind = LAUNCH_STEP_DEVPTS;
                data = s->devpts_data;
        } else if (strcmp(type, "cgroup") == 0 || strcmp(type, "cgroup2") == 0) {
                /* Only in its namespace does it show the container's own cgroup. */
                type = "cgroup2";
                step.flags |= LAUNCH_STEP_FLAG_LATE;
        }
        if (mount->recursive)
                step.flags |= LAUNCH_STEP_FLAG_RECURSIVE;
        if (mount->propagation_recursive)
                step.flags |= LAUNCH_STEP_FLAG_RECURSIVE_PROPAGATION;
        step.source = plan_builder_string(s->builder, mount->source ? mount->source : type);
        step.type = plan_builder_string(s->builder, type);
        step.data = plan_builder_string(s->builder, data);
        add_step(s, mount->destination, step);
}

static const SpecMount *find_mount(const Spec *spec, const char *target) {
        for (size_t i = 0; i < spec->n_mounts; i++)
                if (strcmp(spec->mounts[i].destination, target) == 0)
                        return &spec->mounts[i];
        return NULL;
}

/* Puts the spec's mount on target where berth's own step would be. False: there is none. */
static bool replace(Steps *s, const char *target) {
        const SpecMount *mount = find_mount(s->spec, target);

        if (!mount)
                return false;
        s->placed[mount - s->spec->mounts] = true;
        add_mount(s, mount);
        return true;
}

static void add_file_systems(Steps *s, const PlanContext *context) {
        for (size_t i = 0; i < ELEMENTSOF(file_systems); i++) {
                const char *target = file_systems[i].target, *data = file_systems[i].data;
                LaunchStep step = {
                        .kind = LAUNCH_STEP_FILESYSTEM,
                        .flags = file_systems[i].flags,
                        .attr_set = file_systems[i].attr_set,
                        .attr_clear = file_systems[i].attr_clear,
                };

                if (replace(s, target))
                        continue;
                if (s->dev_bound && path_is_below(target, "/dev"))
                        step.flags |= LAUNCH_STEP_FLAG_IF_TARGET;
                if (strcmp(target, "/dev/pts") == 0) {
                        step.kind = LAUNCH_STEP_DEVPTS;
                        data = s->devpts_data;
                } else if (strcmp(target, "/sys") == 0 && context->user_namespace &&
                           s->spec->network == SPEC_NETWORK_HOST) {
                        /* sysfs belongs to the network namespace: who does not own that can't mount it. */
                        step.kind = LAUNCH_STEP_BIND;
                        step.flags |= LAUNCH_STEP_FLAG_RECURSIVE;
                        step.attr_set_recursive = step.attr_set;
                        step.source = plan_builder_string(s->builder, target);
                }
                if (step.kind != LAUNCH_STEP_BIND) {
                        step.source = plan_builder_string(s->builder, file_systems[i].source);
                        step.type = plan_builder_string(s->builder, file_systems[i].type);
                        step.data = plan_builder_string(s->builder, data);
                }
                add_step(s, target, step);
        }
}

static void add_devices(Steps *s) {
        for (size_t i = 0; i < ELEMENTSOF(devices); i++) {
                if (replace(s, devices[i].path) || s->dev_bound)
                        continue;
                add_step(s, devices[i].path,
                         (LaunchStep) {
                                 .kind = LAUNCH_STEP_DEVICE,
                                 .source = plan_builder_string(s->builder, devices[i].path),
                                 .major = devices[i].major,
                                 .minor = devices[i].minor,
                                 .mode = 0666,
                         });
        }
        for (size_t i = 0; i < ELEMENTSOF(links); i++) {
                if (replace(s, links[i].path) || s->dev_bound)
                        continue;
                add_step(s, links[i].path,
                         (LaunchStep) {
                                 .kind = LAUNCH_STEP_SYMLINK,
                                 .source = plan_builder_string(s->builder, links[i].text),
                         });
        }
        if (s->spec->terminal && !replace(s, "/dev/console"))
                add_step(s, "/dev/console",
                         (LaunchStep) {
                                 .kind = LAUNCH_STEP_CONSOLE,
                                 .flags = s->dev_bound ? LAUNCH_STEP_FLAG_IF_TARGET : 0,
                         });
}

static void add_resolv_conf(Steps *s) {
        if (s->spec->network != SPEC_NETWORK_HOST || find_mount(s->spec, RESOLV_CONF))
                return;
        add_step(s, RESOLV_CONF,
                 (LaunchStep) {
                         .kind = LAUNCH_STEP_BIND,
                         .flags = LAUNCH_STEP_FLAG_IF_TARGET | LAUNCH_STEP_FLAG_OPTIONAL,
                         .source = plan_builder_string(s->builder, RESOLV_CONF),
                         .attr_set = ATTR_READ_ONLY,
                 });
}

/* A path that the spec mounts itself is left as it says. */
static void add_cover(Steps *s, LaunchStepKind kind, const char *target) {
        if (!find_mount(s->spec, target))
                add_step(s, target, (LaunchStep) { .kind = kind, .flags = LAUNCH_STEP_FLAG_IF_TARGET });
}

static void add_covers(Steps *s, const PlanContext *context) {
        for (size_t i = 0; i < ELEMENTSOF(masks); i++)
                add_cover(s, LAUNCH_STEP_MASK, masks[i]);
        for (unsigned i = 0; i < context->n_throttle; i++) {
                char path[64];

                (void) snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u/thermal_throttle", i);
                add_cover(s, LAUNCH_STEP_MASK, path);
        }
        for (size_t i = 0; i < ELEMENTSOF(read_only_paths); i++)
                add_cover(s, LAUNCH_STEP_READ_ONLY, read_only_paths[i]);
}

int plan_add_steps(PlanBuilder *builder, const Spec *spec, const PlanContext *context, LaunchArray *ret) {
        size_t room = ELEMENTSOF(file_systems) + ELEMENTSOF(devices) + ELEMENTSOF(links) + 1 +
                      spec->n_mounts + 1 + ELEMENTSOF(masks) + context->n_throttle +
                      ELEMENTSOF(read_only_paths);
        _cleanup_(steps_done) Steps s = {
                .builder = builder,
                .spec = spec,
                .devpts_data = context->one_id ? DEVPTS_DATA : DEVPTS_DATA_TTY,
        };
        const SpecMount *dev = find_mount(spec, "/dev");

        s.dev_bound = dev && dev->bind;
        s.steps = calloc(room, sizeof(LaunchStep));
        s.placed = calloc(spec->n_mounts + 1, sizeof(bool));
        if (!s.steps || !s.placed)
                return -ENOMEM;

        add_file_systems(&s, context);
        add_devices(&s);
        for (size_t i = 0; i < spec->n_mounts; i++)
                if (!s.placed[i])
                        add_mount(&s, &spec->mounts[i]);
        add_resolv_conf(&s);
        add_covers(&s, context);

        ret->offset = plan_builder_bytes(builder, s.steps, s.n * sizeof(LaunchStep));
        ret->n = (uint32_t) s.n;
        return 0;
}
