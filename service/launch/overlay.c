/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/launch/overlay.h"

#include "service/launch/filesystem.h"
#include "service/launch/mountinfo.h"
#include "service/launch/path.h"
#include "service/launch/report.h"
#include "service/launch/sys.h"
#include "service/launch/text.h"

#define OVERLAY_MAGIC 0x794c7630
#define SUBMOUNTS_MAX 100000U
#define ATTR_READ_ONLY_BIND (MOUNT_ATTR_RDONLY)

/* struct statfs has mount flags with these bits (statfs(2), ST_*); no exported header does. */
#define STATFS_RDONLY 0x1
#define STATFS_NOSUID 0x2
#define STATFS_NODEV 0x4
#define STATFS_NOEXEC 0x8

typedef struct Submount {
        uint32_t id, parent;
        const char *point;  /* on the host */
        const char *inside; /* the same below the root */
        size_t length;      /* of point */
        bool skipped;
} Submount;

typedef struct Submounts {
        Submount *all;
        size_t n;
} Submounts;

typedef struct Stage {
        int tmpfs;       /* on top of the host's root, and the working directory */
        unsigned layers; /* made so far */
} Stage;

static bool is_pseudo(const char *type) {
        static const char types[][12] = {
                "autofs",  "binfmt_misc", "bpf",      "cgroup",   "cgroup2",    "configfs",
                "debugfs", "devpts",      "devtmpfs", "fusectl",  "hugetlbfs",  "mqueue",
                "nfsd",    "nsfs",        "proc",     "pstore",   "resctrl",    "selinuxfs",
                "smackfs", "sysfs",       "tracefs",  "efivarfs", "securityfs", "rpc_pipefs",
        };

        for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
                if (text_equal(type, types[i]))
                        return true;
        return false;
}

/* The part of point below base, with its leading slash; NULL when it isn't below. */
static const char *path_below(const char *point, const char *base) {
        size_t n = text_length(base);

        if (n == 1) /* "/" */
                return point[1] ? point : NULL;
        return text_starts(point, base) && point[n] == '/' ? point + n : NULL;
}

/* Opens what is at the mount's path, if that is the mount: it may be covered by another, or have gone. No
 * link at the end is followed, nothing is mounted for it. -ESTALE when it is something else. */
static int open_mount(const Submount *mount) {
        _cleanup_close_ int fd = -EBADF;
        struct statx st;
        int r;

        fd = sys_openat(AT_FDCWD, mount->point, O_PATH | O_NOFOLLOW | O_CLOEXEC, 0);
        if (fd < 0)
                return fd;
        r = sys_statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &st);
        if (r < 0)
                return r;
        return st.stx_mask & STATX_MNT_ID && st.stx_mnt_id == mount->id ? sys_take_fd(&fd) : -ESTALE;
}

/* Whether the place of the mount is missing; one that covers what it is on stands for itself. */
static bool parent_skipped(const Submounts *mounts, const Submount *mount) {
        for (size_t i = 0; i < mounts->n; i++)
                if (mounts->all[i].id == mount->parent)
                        return mounts->all[i].skipped && mounts->all[i].length != mount->length;
        return false;
}

static int collect(int self, const char *base, Submounts *ret) {
        char *text, *at;
        Submounts mounts = {};
        MountEntry entry;
        size_t size;
        int r;

        r = mountinfo_read(self, &text, &size);
        if (r < 0)
                return r;
        mounts.all = sys_allocate(SUBMOUNTS_MAX * sizeof(Submount));
        if (sys_is_error(mounts.all))
                return (int) (long) mounts.all;
        at = text;
        while (mountinfo_next(&at, text + size, &entry)) {
                const char *inside = path_below(entry.point, base);
                size_t length = text_length(entry.point), i;

                if (!inside)
                        continue;
                if (mounts.n == SUBMOUNTS_MAX)
                        return -EFBIG;
                /* In the order of length a mount comes after those that it is on, and mostly is already. */
                for (i = mounts.n++; i > 0 && mounts.all[i - 1].length > length; i--)
                        mounts.all[i] = mounts.all[i - 1];
                mounts.all[i] = (Submount) {
                        .id = entry.id,
                        .parent = entry.parent,
                        .point = entry.point,
                        .inside = inside,
                        .length = length,
                        .skipped = is_pseudo(entry.type) || text_equal(inside, "/run") ||
                                   text_starts(inside, "/run/"),
                };
        }
        *ret = mounts;
        return 0;
}

static uint64_t attributes_of(int fd, bool *ret_is_overlay) {
        struct statfs fs;
        uint64_t attributes = 0;

        *ret_is_overlay = false;
        if (sys_fstatfs(fd, &fs) < 0)
                return 0;
        *ret_is_overlay = fs.f_type == OVERLAY_MAGIC;
        if (fs.f_flags & STATFS_RDONLY)
                attributes |= MOUNT_ATTR_RDONLY;
        if (fs.f_flags & STATFS_NOSUID)
                attributes |= MOUNT_ATTR_NOSUID;
        if (fs.f_flags & STATFS_NODEV)
                attributes |= MOUNT_ATTR_NODEV;
        if (fs.f_flags & STATFS_NOEXEC)
                attributes |= MOUNT_ATTR_NOEXEC;
        return attributes;
}

static int make_layer(const Stage *stage, char letter, char name[static 12]) {
        name[0] = letter;
        (void) text_append_number(name + 1, name + 12, stage->layers);
        return sys_mkdirat(stage->tmpfs, name, 0700);
}

/* The layers' names are relative to the working directory, the stage: no path of the host, with whatever
 * characters it may have, gets into options, and none is shown to the container. The lower layer has to
 * be in this mount namespace on kernels before 6.15. */
static int make_overlay(Stage *stage, int lower, uint64_t attributes, bool user_namespace) {
        _cleanup_close_ int fs = -EBADF, upper = -EBADF, place = -EBADF;
        char lower_name[12], upper_name[12], work_name[12];
        struct statx st;
        int r;

        r = sys_statx(lower, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &st);
        if (r < 0)
                return r;
        stage->layers++;
        r = make_layer(stage, 'l', lower_name);
        if (r >= 0)
                r = make_layer(stage, 'u', upper_name);
        if (r >= 0)
                r = make_layer(stage, 'w', work_name);
        if (r < 0)
                return r;
        place = sys_openat(stage->tmpfs, lower_name, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
        r = place < 0 ? place : sys_move_mount(lower, place);
        if (r < 0)
                return r;
        /* The top directory is the upper layer's. Ids that a user namespace hasn't got stay unmapped
         * either way. */
        upper = sys_openat(stage->tmpfs, upper_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
        if (upper < 0)
                return upper;
        (void) sys_fchown(upper, st.stx_uid, st.stx_gid);
        r = sys_fchmod(upper, st.stx_mode & 07777);
        if (r < 0)
                return r;

        fs = sys_fsopen("overlay");
        if (fs < 0)
                return fs;
        r = sys_fsconfig(fs, FSCONFIG_SET_STRING, "source", "overlay");
        if (r >= 0)
                r = sys_fsconfig(fs, FSCONFIG_SET_STRING, "lowerdir", lower_name);
        if (r >= 0)
                r = sys_fsconfig(fs, FSCONFIG_SET_STRING, "upperdir", upper_name);
        if (r >= 0)
                r = sys_fsconfig(fs, FSCONFIG_SET_STRING, "workdir", work_name);
        if (r >= 0 && user_namespace)
                r = sys_fsconfig(fs, FSCONFIG_SET_FLAG, "userxattr", NULL);
        if (r >= 0)
                r = sys_fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL);
        return r < 0 ? r : sys_fsmount(fs, (unsigned) attributes);
}

/* The kernel stacks two overlays and no more, and says EINVAL. */
static int refuse_stack(Child *child, const char *path) {
        char text[LAUNCH_DETAIL_MAX], *end = text + sizeof(text);

        (void) text_append(text_append(text, end, "overlays stacked too deep over "), end, path);
        return report_detail(child->report, -EOPNOTSUPP, text);
}

static int bind_read_only(int host, uint64_t attributes) {
        const struct mount_attr attr = { .attr_set = attributes | ATTR_READ_ONLY_BIND };
        _cleanup_close_ int tree = -EBADF;
        int r;

        tree = filesystem_copy(host, "", AT_EMPTY_PATH);
        if (tree < 0)
                return tree;
        r = sys_mount_setattr(tree, 0, &attr);
        return r < 0 ? r : sys_take_fd(&tree);
}

/* The mount that stands for one of the host's in the root. */
static int make_submount(Child *child, Stage *stage, const Submount *mount, int host) {
        _cleanup_close_ int lower = -EBADF;
        uint64_t attributes;
        struct statx st;
        bool is_overlay;
        int r;

        r = sys_statx(host, "", AT_EMPTY_PATH, STATX_TYPE, &st);
        if (r < 0)
                return report_detail(child->report, r, mount->point);
        attributes = attributes_of(host, &is_overlay);
        if (S_ISDIR(st.stx_mode) && !(attributes & MOUNT_ATTR_RDONLY)) {
                lower = filesystem_copy(host, "", AT_EMPTY_PATH);
                r = lower < 0 ? lower : make_overlay(stage, lower, attributes, false);
                if (r == -EINVAL && is_overlay)
                        return refuse_stack(child, mount->point);
                if (r != -EINVAL)
                        return r < 0 ? report_detail(child->report, r, mount->point) : r;
        }
        r = bind_read_only(host, attributes);
        return r < 0 ? report_detail(child->report, r, mount->point) : r;
}

static int attach_submount(Child *child, Stage *stage, const Submount *mount) {
        _cleanup_close_ int host = -EBADF, made = -EBADF, place = -EBADF;
        int r;

        host = open_mount(mount);
        if (host < 0)
                return 0;
        made = make_submount(child, stage, mount, host);
        if (made < 0)
                return sys_take_fd(&made);
        place = path_open(child->root, mount->inside, O_PATH, PATH_NO_SYMLINKS);
        r = place < 0 ? place : sys_move_mount(made, place);
        return r < 0 ? report_detail(child->report, r, mount->point) : 0;
}

static int attach_submounts(Child *child, Stage *stage, Submounts *mounts) {
        int r;

        for (size_t i = 0; i < mounts->n; i++) {
                Submount *mount = mounts->all + i;

                mount->skipped = mount->skipped || parent_skipped(mounts, mount);
                if (mount->skipped)
                        continue;
                r = attach_submount(child, stage, mount);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* A tmpfs on top of the host's root, where lookups don't find it. */
static int open_stage(Stage *stage) {
        _cleanup_close_ int host = -EBADF, tmpfs = -EBADF;
        int r;

        tmpfs = filesystem_new("tmpfs", "ephemeral", "mode=0755", false, 0);
        if (tmpfs < 0)
                return tmpfs;
        host = sys_openat(AT_FDCWD, "/", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
        if (host < 0)
                return host;
        r = sys_move_mount(tmpfs, host);
        if (r < 0)
                return r;
        r = sys_fchdir(tmpfs);
        if (r < 0)
                return r;
        stage->tmpfs = sys_take_fd(&tmpfs);
        return 0;
}

static int attach_root(Child *child, Stage *stage, int host, const char *path) {
        _cleanup_close_ int lower = -EBADF, made = -EBADF, place = -EBADF;
        bool user_namespace = child->plan->flags & LAUNCH_PLAN_USER_NAMESPACE, is_overlay;
        uint64_t attributes;
        int r;

        attributes = attributes_of(host, &is_overlay) & ~(uint64_t) MOUNT_ATTR_RDONLY;
        lower = filesystem_copy(host, "", AT_EMPTY_PATH);
        if (lower < 0)
                return report_detail(child->report, lower, path);
        made = make_overlay(stage, lower, attributes, user_namespace);
        if (made == -EINVAL && is_overlay)
                return refuse_stack(child, path);
        if (made < 0)
                return report_detail(child->report, sys_take_fd(&made), path);
        r = sys_mkdirat(stage->tmpfs, "root", 0755);
        if (r < 0)
                return r;
        place = sys_openat(stage->tmpfs, "root", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
        r = place < 0 ? place : sys_move_mount(made, place);
        if (r < 0)
                return report_detail(child->report, r, path);
        child->root = sys_take_fd(&made);
        return 0;
}

/* The directory's own path, whatever links led to it. */
static int canonical_path(int self, int fd, char *ret, size_t size) {
        char name[32];
        long n;

        (void) text_append_number(text_append(name, name + sizeof(name), "fd/"), name + sizeof(name),
                                  (unsigned) fd);
        n = sys_readlinkat(self, name, ret, size);
        if (n < 0)
                return (int) n;
        if ((size_t) n >= size)
                return -ENAMETOOLONG;
        ret[n] = 0;
        return ret[0] == '/' ? 0 : -EXDEV;
}

int overlay_attach(Child *child, const char *path) {
        _cleanup_close_ int host = -EBADF, self = -EBADF;
        Stage stage = { .tmpfs = -EBADF };
        char base[PATH_MAX];
        Submounts mounts;
        int r;

        host = sys_openat(AT_FDCWD, path, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
        if (host < 0)
                return report_detail(child->report, host, path);
        self = path_open_self();
        r = self < 0 ? self : canonical_path(self, host, base, sizeof(base));
        if (r >= 0)
                r = collect(self, base, &mounts);
        if (r < 0)
                return report_detail(child->report, r, "/proc/self");
        if (child->plan->flags & LAUNCH_PLAN_USER_NAMESPACE && mounts.n > 0)
                return report_detail(child->report, -EOPNOTSUPP, mounts.all[0].point);
        r = open_stage(&stage);
        if (r < 0)
                return report_detail(child->report, r, "tmpfs");
        r = attach_root(child, &stage, host, path);
        if (r >= 0)
                r = attach_submounts(child, &stage, &mounts);
        (void) sys_close(stage.tmpfs);
        return r;
}
