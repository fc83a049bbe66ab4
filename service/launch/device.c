/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/launch/device.h"

#include "service/launch/filesystem.h"
#include "service/launch/path.h"
#include "service/launch/plan.h"
#include "service/launch/report.h"
#include "service/launch/sys.h"

/* As the kernel takes a device number in mknod(2). */
static unsigned encode(uint32_t major, uint32_t minor) {
        return (minor & 0xff) | (major << 8) | ((minor & ~0xffU) << 12);
}

static int check(int fd, unsigned type, uint32_t major, uint32_t minor) {
        struct statx st;
        int r;

        r = sys_statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &st);
        if (r < 0)
                return r;
        if ((st.stx_mode & S_IFMT) != type || st.stx_rdev_major != major || st.stx_rdev_minor != minor)
                return -ENODEV;
        return 0;
}

/* Where nodes can't be made, the host's own is put there. */
static int bind(Child *child, const LaunchStep *step, unsigned type) {
        const char *target = launch_plan_string(child->plan, step->target);
        const char *source = launch_plan_string(child->plan, step->source ? step->source : step->target);
        _cleanup_close_ int tree = -EBADF, place = -EBADF;
        int r;

        tree = filesystem_copy(AT_FDCWD, source, 0);
        if (tree == -ENOENT && step->flags & LAUNCH_STEP_FLAG_OPTIONAL)
                return 0;
        if (tree < 0)
                return report_detail(child->report, tree, source);
        r = check(tree, type, step->major, step->minor);
        if (r < 0)
                return report_detail(child->report, r, source);
        place = path_make(child->root, target, PATH_FILE);
        if (place < 0)
                return report_detail(child->report, place, target);
        r = sys_move_mount(tree, place);
        return r < 0 ? report_detail(child->report, r, target) : 0;
}

int device_make(Child *child, const LaunchStep *step) {
        const char *target = launch_plan_string(child->plan, step->target), *name;
        unsigned type = step->mode & S_IFMT ? step->mode & S_IFMT : S_IFCHR;
        _cleanup_close_ int parent = -EBADF, there = -EBADF;
        int r;

        if (type != S_IFCHR && type != S_IFBLK)
                return report_detail(child->report, -EINVAL, target);
        if (child->plan->flags & LAUNCH_PLAN_USER_NAMESPACE)
                return bind(child, step, type);
        parent = path_make_parent(child->root, target, &name);
        if (parent < 0)
                return report_detail(child->report, parent, target);
        r = sys_mknodat(parent, name, type | (step->mode & 07777), encode(step->major, step->minor));
        if (r == -EPERM)
                return bind(child, step, type);
        if (r == -EEXIST || r == -EROFS) {
                /* The same device will do. */
                there = sys_openat(parent, name, O_PATH | O_NOFOLLOW | O_CLOEXEC, 0);
                if (there >= 0 && check(there, type, step->major, step->minor) >= 0)
                        return 0;
        }
        return r < 0 ? report_detail(child->report, r, target) : 0;
}

int device_null(Child *child) {
        _cleanup_close_ int fd = -EBADF;
        int r;

        if (child->null >= 0)
                return child->null;
        fd = sys_openat(AT_FDCWD, "/dev/null", O_PATH | O_CLOEXEC, 0);
        if (fd < 0)
                return report_detail(child->report, fd, "/dev/null");
        r = check(fd, S_IFCHR, 1, 3);
        if (r < 0)
                return report_detail(child->report, r, "/dev/null");
        return child->null = sys_take_fd(&fd);
}

int device_open_null(Child *child) {
        _cleanup_close_ int fd = -EBADF;
        int r;

        r = device_null(child);
        if (r < 0)
                return r;
        fd = sys_openat(AT_FDCWD, "/dev/null", O_RDWR | O_NOCTTY | O_CLOEXEC, 0);
        if (fd < 0)
                return report_detail(child->report, fd, "/dev/null");
        r = check(fd, S_IFCHR, 1, 3);
        if (r < 0)
                return report_detail(child->report, r, "/dev/null");
        return sys_take_fd(&fd);
}
