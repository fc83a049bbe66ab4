/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/launch/root.h"

#include "service/launch/filesystem.h"
#include "service/launch/overlay.h"
#include "service/launch/plan.h"
#include "service/launch/report.h"
#include "service/launch/sys.h"

/* The host's root and the stage of an ephemeral one. */
#define ROOT_STACK_MAX 2

static int check_directory(int fd) {
        struct statx st;
        int r;

        r = sys_statx(fd, "", AT_EMPTY_PATH, STATX_TYPE, &st);
        if (r < 0)
                return r;
        return S_ISDIR(st.stx_mode) ? 0 : -ENOTDIR;
}

static int attach_copy(Child *child, const char *path) {
        _cleanup_close_ int tree = -EBADF;
        int host, r;

        /* Recursive: in a user namespace the mounts below are locked in their place. */
        tree = filesystem_copy(AT_FDCWD, path, AT_RECURSIVE);
        if (tree < 0)
                return report_detail(child->report, tree, path);
        r = check_directory(tree);
        if (r < 0)
                return report_detail(child->report, r, path);
        host = sys_openat(AT_FDCWD, "/", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
        if (host < 0)
                return host;
        /* On top of the host's root: lookups begin below what is mounted there. */
        r = sys_move_mount(tree, host);
        (void) sys_close(host);
        if (r < 0)
                return report_detail(child->report, r, path);
        child->root = sys_take_fd(&tree);
        return 0;
}

int root_attach(Child *child) {
        const char *path = launch_plan_string(child->plan, child->plan->root);
        int r;

        /* Nothing of ours reaches the host; binds that want to can still follow it (rslave). */
        r = sys_mount(NULL, "/", NULL, MS_REC | MS_SLAVE);
        if (r < 0)
                return report_detail(child->report, r, "/");
        return child->plan->flags & LAUNCH_PLAN_EPHEMERAL ? overlay_attach(child, path)
                                                          : attach_copy(child, path);
}

static int mount_id(int dir, const char *path, int flags, uint64_t *ret) {
        struct statx st;
        int r;

        r = sys_statx(dir, path, flags, STATX_MNT_ID, &st);
        if (r < 0)
                return r;
        if (!(st.stx_mask & STATX_MNT_ID))
                return -ENOSYS;
        *ret = st.stx_mnt_id;
        return 0;
}

/* Takes away what lies on the new root: the host's, and the stage of an ephemeral root that lay on that.
 * "/.." is where a program would find it, so that is asked, and nothing else counts as done. */
static int leave_host(int root) {
        uint64_t own, top;
        int r;

        r = mount_id(root, "", AT_EMPTY_PATH, &own);
        if (r < 0)
                return r;
        for (unsigned i = 0; i <= ROOT_STACK_MAX; i++) {
                r = mount_id(AT_FDCWD, "/..", 0, &top);
                if (r < 0)
                        return r;
                if (top == own)
                        return i > 0 ? 0 : -EXDEV;
                /* "." leads to the topmost. */
                r = sys_umount(".", SYS_MNT_DETACH);
                if (r < 0)
                        return r;
        }
        return -EXDEV;
}

int root_enter(Child *child) {
        char cwd[PATH_MAX];
        long n;
        int r;

        r = sys_fchdir(child->root);
        if (r < 0)
                return report_detail(child->report, r, "the new root");
        /* The host's root lands on top of the new one. */
        r = sys_pivot_root(".", ".");
        if (r < 0)
                return report_detail(child->report, r, "pivot_root");
        r = leave_host(child->root);
        if (r < 0)
                return report_detail(child->report, r, "the old root");
        /* It was the host's, and can't be bound any more. */
        sys_closep(&child->null);
        child->null = -EBADF;
        n = sys_getcwd(cwd, sizeof(cwd));
        if (n < 0)
                return (int) n;
        return cwd[0] == '/' && cwd[1] == 0 ? 0 : report_detail(child->report, -EXDEV, "the new root");
}
