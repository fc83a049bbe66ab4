/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/launch/mount.h"

#include "service/launch/device.h"
#include "service/launch/filesystem.h"
#include "service/launch/path.h"
#include "service/launch/plan.h"
#include "service/launch/report.h"
#include "service/launch/sys.h"
#include "service/launch/terminal.h"
#include "service/launch/text.h"

#define ATTR_ATIME (MOUNT_ATTR__ATIME | MOUNT_ATTR_NODIRATIME)

static bool absent(int r) {
        return r == -ENOENT || r == -ENOTDIR;
}

static int is_directory(int fd, bool *ret) {
        struct statx st;
        int r;

        r = sys_statx(fd, "", AT_EMPTY_PATH, STATX_TYPE, &st);
        if (r < 0)
                return r;
        *ret = S_ISDIR(st.stx_mode);
        return 0;
}

/* A procfs in another place than the one named would make the masks and read-only paths miss it. */
static unsigned target_flags(const Child *child, const LaunchStep *step) {
        const char *type = launch_plan_string(child->plan, step->type);

        return step->kind == LAUNCH_STEP_FILESYSTEM &&
                               (text_equal(type, "proc") || text_equal(type, "sysfs"))
                       ? PATH_NO_SYMLINKS
                       : 0;
}

/* -ENOENT for the caller to pass over when the step wants an existing target. */
static int open_target(Child *child, const LaunchStep *step, bool directory) {
        const char *target = launch_plan_string(child->plan, step->target);
        unsigned flags = target_flags(child, step) | (directory ? 0 : PATH_FILE);

        return step->flags & LAUNCH_STEP_FLAG_IF_TARGET ? path_open(child->root, target, O_PATH, flags)
                                                        : path_make(child->root, target, flags);
}

static int attach(Child *child, const LaunchStep *step, int mount, bool directory) {
        _cleanup_close_ int place = -EBADF;
        int r;

        place = open_target(child, step, directory);
        if (absent(place) && step->flags & LAUNCH_STEP_FLAG_IF_TARGET)
                return 0;
        r = place < 0 ? place : sys_move_mount(mount, place);
        if (r >= 0 && step->propagation && step->propagation != MS_PRIVATE) {
                const struct mount_attr attr = { .propagation = step->propagation };
                bool recursive = step->flags & LAUNCH_STEP_FLAG_RECURSIVE_PROPAGATION;

                r = sys_mount_setattr(mount, recursive ? AT_RECURSIVE : 0, &attr);
        }
        return r < 0 ? report_detail(child->report, r, launch_plan_string(child->plan, step->target)) : 0;
}

static int mount_filesystem(Child *child, const LaunchStep *step) {
        const char *type = launch_plan_string(child->plan, step->type);
        const char *source = launch_plan_string(child->plan, step->source);
        bool user_namespace = child->plan->flags & LAUNCH_PLAN_USER_NAMESPACE;
        _cleanup_close_ int mount = -EBADF, place = -EBADF;

        /* A look first: a mount that was never attached is dear to drop. */
        if (step->flags & LAUNCH_STEP_FLAG_IF_TARGET) {
                place = open_target(child, step, true);
                if (absent(place))
                        return 0;
        }
        mount = filesystem_new(type, source ? source : type, launch_plan_string(child->plan, step->data),
                               step->sb_read_only, step->attr_set);
        if (step->flags & LAUNCH_STEP_FLAG_OPTIONAL &&
            (mount == -ENODEV || (user_namespace && mount == -EPERM)))
                return 0;
        if (mount < 0)
                return report_detail(child->report, mount, launch_plan_string(child->plan, step->target));
        return attach(child, step, mount, true);
}

static int set_attributes(const Child *child, int tree, uint64_t set, uint64_t clear, unsigned flags) {
        struct mount_attr attr = { .attr_set = set, .attr_clr = clear };
        int r;

        if (!set && !clear)
                return 0;
        /* The way of keeping access times is one field, replaced as a whole. */
        if (set & MOUNT_ATTR__ATIME)
                attr.attr_clr |= MOUNT_ATTR__ATIME;
        r = sys_mount_setattr(tree, flags, &attr);
        if (r == -EPERM && child->plan->flags & LAUNCH_PLAN_USER_NAMESPACE) {
                /* What the host has restricted stays so; more restriction is always allowed. */
                attr.attr_set &= ~(uint64_t) ATTR_ATIME;
                attr.attr_clr = 0;
                r = sys_mount_setattr(tree, flags, &attr);
        }
        return r;
}

static int open_source(const Child *child, const LaunchStep *step, const char *source) {
        unsigned recursive = step->flags & LAUNCH_STEP_FLAG_RECURSIVE ? AT_RECURSIVE : 0;
        int tree;

        /* A copy that is to follow the host must not be cut off from it first. */
        if (step->propagation == MS_SLAVE || step->propagation == MS_SHARED)
                return sys_open_tree(AT_FDCWD, source, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | recursive);
        tree = filesystem_copy(AT_FDCWD, source, recursive);
        /* Mounts copied into a user namespace can't be lifted off what they cover. */
        if (tree == -EINVAL && !recursive && child->plan->flags & LAUNCH_PLAN_USER_NAMESPACE)
                tree = filesystem_copy(AT_FDCWD, source, AT_RECURSIVE);
        return tree;
}

static int mount_bind(Child *child, const LaunchStep *step) {
        const char *source = launch_plan_string(child->plan, step->source);
        _cleanup_close_ int tree = -EBADF, place = -EBADF;
        bool directory;
        int r;

        if (step->flags & LAUNCH_STEP_FLAG_IF_TARGET) {
                place = open_target(child, step, true);
                if (absent(place))
                        return 0;
        }
        /* The host is out of reach then, and the container's file of that name isn't what was meant. */
        if (step->flags & LAUNCH_STEP_FLAG_LATE)
                return report_detail(child->report, -EOPNOTSUPP,
                                     launch_plan_string(child->plan, step->target));
        tree = open_source(child, step, source);
        if (absent(tree) && step->flags & LAUNCH_STEP_FLAG_OPTIONAL)
                return 0;
        if (tree < 0)
                return report_detail(child->report, tree, source);
        r = is_directory(tree, &directory);
        if (r < 0)
                return report_detail(child->report, r, source);
        r = set_attributes(child, tree, step->attr_set_recursive, step->attr_clear_recursive, AT_RECURSIVE);
        if (r >= 0)
                r = set_attributes(child, tree, step->attr_set, step->attr_clear, 0);
        if (r < 0)
                return report_detail(child->report, r, source);
        return attach(child, step, tree, directory);
}

static int mount_devpts(Child *child, const LaunchStep *step) {
        _cleanup_close_ int made = -EBADF;
        int mount = child->fds[LAUNCH_FD_DEVPTS], r;

        if (mount < 0) {
                mount = made = filesystem_new("devpts", "devpts",
                                              launch_plan_string(child->plan, step->data), false,
                                              step->attr_set);
                if (mount < 0)
                        return report_detail(child->report, mount,
                                             launch_plan_string(child->plan, step->target));
        }
        r = attach(child, step, mount, true);
        if (r < 0)
                return r;
        if (!(child->plan->flags & LAUNCH_PLAN_SEND_DEVPTS))
                return 0;
        report_stage(child->report, LAUNCH_STAGE_TERMINAL);
        return terminal_make(child, mount);
}

static int mount_console(Child *child, const LaunchStep *step) {
        const char *target = launch_plan_string(child->plan, step->target);
        _cleanup_close_ int tree = -EBADF;

        if (child->tty < 0)
                return report_detail(child->report, -EBADF, target);
        tree = filesystem_copy(child->tty, "", AT_EMPTY_PATH);
        if (tree < 0)
                return report_detail(child->report, tree, target);
        return attach(child, step, tree, false);
}

/* The first use attaches the empty directory itself, the others copies of it. */
static int mask_directory(Child *child, int place) {
        _cleanup_close_ int tree = -EBADF;
        int r;

        if (child->empty >= 0) {
                tree = filesystem_copy(child->empty, "", AT_EMPTY_PATH);
                return tree < 0 ? tree : sys_move_mount(tree, place);
        }
        tree = filesystem_new("tmpfs", "tmpfs", "nr_inodes=1,mode=0555", true,
                              MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
        if (tree < 0)
                return tree;
        r = sys_move_mount(tree, place);
        if (r < 0)
                return r;
        child->empty = sys_take_fd(&tree);
        return 0;
}

static int mask_file(Child *child, int place) {
        _cleanup_close_ int tree = -EBADF;
        int null;

        null = device_null(child);
        if (null < 0)
                return null;
        tree = filesystem_copy(null, "", AT_EMPTY_PATH);
        return tree < 0 ? tree : sys_move_mount(tree, place);
}

static int mount_mask(Child *child, const LaunchStep *step) {
        const char *target = launch_plan_string(child->plan, step->target);
        _cleanup_close_ int place = -EBADF;
        bool directory = false;
        int r;

        place = path_open(child->root, target, O_PATH, 0);
        if (absent(place))
                return 0;
        r = place < 0 ? place : is_directory(place, &directory);
        if (r >= 0)
                r = directory ? mask_directory(child, place) : mask_file(child, place);
        return r < 0 ? report_detail(child->report, r, target) : 0;
}

static int mount_read_only(Child *child, const LaunchStep *step) {
        const struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY };
        const char *target = launch_plan_string(child->plan, step->target);
        _cleanup_close_ int place = -EBADF, tree = -EBADF;
        int r;

        place = path_open(child->root, target, O_PATH, 0);
        if (absent(place))
                return 0;
        if (place < 0)
                return report_detail(child->report, place, target);
        tree = filesystem_copy(place, "", AT_EMPTY_PATH | AT_RECURSIVE);
        r = tree < 0 ? tree : sys_mount_setattr(tree, AT_RECURSIVE, &attr);
        if (r >= 0)
                r = sys_move_mount(tree, place);
        return r < 0 ? report_detail(child->report, r, target) : 0;
}

static int make_link(Child *child, const LaunchStep *step) {
        const char *target = launch_plan_string(child->plan, step->target), *name;
        _cleanup_close_ int parent = -EBADF;
        int r;

        parent = path_make_parent(child->root, target, &name);
        r = parent < 0 ? parent : sys_symlinkat(launch_plan_string(child->plan, step->source), parent, name);
        return r < 0 && r != -EEXIST ? report_detail(child->report, r, target) : 0;
}

static int execute(Child *child, const LaunchStep *step) {
        switch ((LaunchStepKind) step->kind) {
        case LAUNCH_STEP_FILESYSTEM:
                return mount_filesystem(child, step);
        case LAUNCH_STEP_BIND:
                return mount_bind(child, step);
        case LAUNCH_STEP_DEVPTS:
                return mount_devpts(child, step);
        case LAUNCH_STEP_DEVICE:
                report_stage(child->report, LAUNCH_STAGE_DEVICE);
                return device_make(child, step);
        case LAUNCH_STEP_SYMLINK:
                return make_link(child, step);
        case LAUNCH_STEP_CONSOLE:
                report_stage(child->report, LAUNCH_STAGE_TERMINAL);
                return mount_console(child, step);
        case LAUNCH_STEP_MASK:
                return mount_mask(child, step);
        case LAUNCH_STEP_READ_ONLY:
                return mount_read_only(child, step);
        case _LAUNCH_STEP_MAX:
                break;
        }
        return -EINVAL;
}

int mount_execute(Child *child, bool late) {
        const LaunchStep *steps = launch_plan_array(child->plan, &child->plan->steps);
        int r;

        for (uint32_t i = 0; i < child->plan->steps.n; i++) {
                if (!(steps[i].flags & LAUNCH_STEP_FLAG_LATE) != !late)
                        continue;
                report_stage(child->report, LAUNCH_STAGE_MOUNT);
                r = execute(child, steps + i);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* What a step's target has to be is known without doing the step, but for what a bind binds. */
static void prepare(Child *child, const LaunchStep *step) {
        const char *target = launch_plan_string(child->plan, step->target), *name;
        struct statx st;
        int fd = -EBADF;

        switch ((LaunchStepKind) step->kind) {
        case LAUNCH_STEP_FILESYSTEM:
        case LAUNCH_STEP_DEVPTS:
                fd = path_make(child->root, target, target_flags(child, step));
                break;
        case LAUNCH_STEP_BIND:
                if (sys_statx(AT_FDCWD, launch_plan_string(child->plan, step->source), 0, STATX_TYPE, &st) >=
                    0)
                        fd = path_make(child->root, target, S_ISDIR(st.stx_mode) ? 0 : PATH_FILE);
                break;
        case LAUNCH_STEP_CONSOLE:
                fd = path_make(child->root, target, PATH_FILE);
                break;
        case LAUNCH_STEP_DEVICE:
                if (child->plan->flags & LAUNCH_PLAN_USER_NAMESPACE)
                        fd = path_make(child->root, target, PATH_FILE);
                else
                        (void) device_make(child, step);
                break;
        case LAUNCH_STEP_SYMLINK:
                fd = path_make_parent(child->root, target, &name);
                if (fd >= 0)
                        (void) sys_symlinkat(launch_plan_string(child->plan, step->source), fd, name);
                break;
        case LAUNCH_STEP_MASK:
        case LAUNCH_STEP_READ_ONLY:
        case _LAUNCH_STEP_MAX:
                break;
        }
        if (fd >= 0)
                (void) sys_close(fd);
}

int mount_seal_root(Child *child) {
        const LaunchStep *steps = launch_plan_array(child->plan, &child->plan->steps);
        const struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY };
        int r;

        for (uint32_t i = 0; i < child->plan->steps.n; i++)
                if (!(steps[i].flags &
                      (LAUNCH_STEP_FLAG_NESTED | LAUNCH_STEP_FLAG_LATE | LAUNCH_STEP_FLAG_IF_TARGET)))
                        prepare(child, steps + i);
        report_stage(child->report, LAUNCH_STAGE_ROOTFS);
        r = sys_mount_setattr(child->root, AT_RECURSIVE, &attr);
        return r < 0 ? report_detail(child->report, r, "read-only root") : 0;
}
