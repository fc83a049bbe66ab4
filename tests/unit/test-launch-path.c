/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "service/launch/mountinfo.h"
#include "service/launch/path.h"
#include "util/cleanup.h"

/* A directory with a root in it; what is beside the root is outside. */
typedef struct Tree {
        char path[32];
        int root, outside;
} Tree;

static int setup(void **state) {
        Tree *t = calloc(1, sizeof(*t));
        int top;

        assert_non_null(t);
        (void) snprintf(t->path, sizeof(t->path), "/tmp/berth-path-XXXXXX");
        assert_non_null(mkdtemp(t->path));
        top = open(t->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        assert_true(top >= 0);
        assert_int_equal(mkdirat(top, "root", 0755), 0);
        assert_int_equal(mkdirat(top, "outside", 0755), 0);
        t->root = openat(top, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
        t->outside = openat(top, "outside", O_PATH | O_DIRECTORY | O_CLOEXEC);
        assert_true(t->root >= 0 && t->outside >= 0);
        (void) close(top);
        *state = t;
        return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw) {
        return remove(path);
}

static int teardown(void **state) {
        Tree *t = *state;

        assert_int_equal(nftw(t->path, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
        (void) close(t->root);
        (void) close(t->outside);
        free(t);
        return 0;
}

/* Where a descriptor is, below the tree. */
static void assert_at(const Tree *t, int fd, const char *expected) {
        char name[32], path[PATH_MAX];
        ssize_t n;

        assert_true(fd >= 0);
        (void) snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
        n = readlink(name, path, sizeof(path) - 1);
        assert_true(n > 0);
        path[n] = 0;
        assert_int_equal(strncmp(path, t->path, strlen(t->path)), 0);
        assert_string_equal(path + strlen(t->path), expected);
        (void) close(fd);
}

static void test_links_stay_inside(void **state) {
        Tree *t = *state;
        char absolute[64];

        assert_int_equal(mkdirat(t->root, "a", 0755), 0);
        assert_int_equal(symlinkat("../../../../outside", t->root, "up"), 0);
        (void) snprintf(absolute, sizeof(absolute), "%s/outside", t->path);
        assert_int_equal(symlinkat(absolute, t->root, "absolute"), 0);
        assert_int_equal(symlinkat("/a", t->root, "good"), 0);
        assert_int_equal(symlinkat("/proc/self/root", t->root, "magic"), 0);
        assert_int_equal(path_open(t->root, "/up", O_PATH, 0), -ENOENT);
        assert_int_equal(path_open(t->root, "/absolute", O_PATH, 0), -ENOENT);
        assert_at(t, path_open(t->root, "/good", O_PATH, 0), "/root/a");
        assert_at(t, path_open(t->root, "/../../a/../..", O_PATH, 0), "/root");
        assert_int_equal(path_open(t->root, "/good", O_PATH, PATH_NO_SYMLINKS), -ELOOP);
        assert_at(t, path_open(t->root, "/a", O_PATH, PATH_NO_SYMLINKS), "/root/a");

        /* Made inside, where the root's own view has them. */
        assert_at(t, path_make(t->root, "/up/x/y", 0), "/root/outside/x/y");
        assert_at(t, path_make(t->root, "/good/b", 0), "/root/a/b");
        assert_int_equal(faccessat(t->outside, "x", F_OK, 0), -1);
        assert_int_equal(path_make(t->root, "/good/c", PATH_NO_SYMLINKS), -ELOOP);
        assert_at(t, path_make(t->root, "/magic/etc", 0), "/root/proc/self/root/etc");
}

static void test_magic_links_lead_nowhere(void **state) {
        _cleanup_fd_ int host = -EBADF, self = -EBADF;

        host = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
        assert_true(host >= 0);
        assert_int_equal(path_open(host, "/proc/self/root/etc", O_PATH, 0), -ELOOP);
        assert_int_equal(path_open(host, "/proc/self/fd/0", O_PATH, 0), -ELOOP);
        self = path_open_self();
        assert_true(self >= 0);
        assert_int_equal(faccessat(self, "mountinfo", R_OK, 0), 0);
}

static void test_missing_components_are_made(void **state) {
        Tree *t = *state;
        const char *name;
        struct stat st;
        char deep[PATH_MAX];

        (void) umask(0);
        assert_at(t, path_make(t->root, "/x/y/z", PATH_FILE), "/root/x/y/z");
        assert_int_equal(fstatat(t->root, "x/y/z", &st, AT_SYMLINK_NOFOLLOW), 0);
        assert_int_equal(st.st_mode, S_IFREG | 0644);
        assert_int_equal(fstatat(t->root, "x/y", &st, AT_SYMLINK_NOFOLLOW), 0);
        assert_int_equal(st.st_mode, S_IFDIR | 0755);
        assert_at(t, path_make(t->root, "//x///d//", PATH_FILE), "/root/x/d");
        assert_at(t, path_make(t->root, "/n/../m", 0), "/root/m"); /* n is made on the way */
        assert_at(t, path_make(t->root, "/", 0), "/root");
        assert_int_equal(path_make(t->root, "/x/y/z/below", 0), -ENOTDIR);

        assert_at(t, path_make_parent(t->root, "/p/q/r", &name), "/root/p/q");
        assert_string_equal(name, "r");
        assert_int_equal(faccessat(t->root, "p/q/r", F_OK, 0), -1);
        assert_at(t, path_make_parent(t->root, "/r", &name), "/root");
        assert_int_equal(path_make_parent(t->root, "/", &name), -EINVAL);
        assert_int_equal(path_make_parent(t->root, "/p/..", &name), -EINVAL);
        assert_int_equal(path_make_parent(t->root, "/p/", &name), -EINVAL);
        memset(deep, '/', sizeof(deep));
        memcpy(deep + sizeof(deep) - 4, "abc", 4);
        assert_int_equal(path_make(t->root, deep, 0), -ENAMETOOLONG);
}

static void test_links_to_nothing(void **state) {
        Tree *t = *state;
        char chain[3] = "l0", next[3] = "l1";

        assert_int_equal(symlinkat("../run/file", t->root, "dangling"), 0);
        assert_at(t, path_make(t->root, "/dangling", PATH_FILE), "/root/run/file");
        assert_int_equal(mkdirat(t->root, "sub", 0755), 0);
        assert_int_equal(symlinkat("inner", t->root, "sub/relative"), 0);
        assert_at(t, path_make(t->root, "/sub/relative/more", 0), "/root/sub/inner/more");
        assert_int_equal(symlinkat("/loop", t->root, "loop"), 0);
        assert_int_equal(path_make(t->root, "/loop/x", 0), -ELOOP);
        for (int i = 0; i < 20; i++) {
                chain[1] = (char) ('0' + i);
                next[1] = (char) ('1' + i);
                assert_int_equal(symlinkat(next, t->root, chain), 0);
        }
        assert_int_equal(path_make(t->root, "/l0", 0), -ELOOP);
        assert_at(t, path_make(t->root, "/l9", 0), "/root/lD");
}

static void test_mountinfo_lines(void **state) {
        char text[] = "22 27 0:21 / /proc rw,relatime - proc proc rw\n"
                      "bad line\n"
                      "23 22 0:22 /a\\040b /m\\040n\\134o\\011 rw shared:1 master:2 - tmpfs a\\040b rw\n"
                      "24 22 0:22 / /nosep rw shared:1\n"
                      "25 22 0:22 / relative rw - tmpfs x rw\n"
                      "4294967296 22 0:22 / /big rw - tmpfs x rw\n"
                      "26 23 0:22 / /last rw - ext4 x rw\n"
                      "27 23 0:22 / /torn rw - ext4";
        char *at = text, *end = text + sizeof(text) - 1;
        MountEntry e;

        assert_true(mountinfo_next(&at, end, &e));
        assert_int_equal(e.id, 22);
        assert_int_equal(e.parent, 27);
        assert_string_equal(e.point, "/proc");
        assert_string_equal(e.type, "proc");
        assert_true(mountinfo_next(&at, end, &e));
        assert_int_equal(e.id, 23);
        assert_string_equal(e.point, "/m n\\o\t");
        assert_string_equal(e.type, "tmpfs");
        assert_true(mountinfo_next(&at, end, &e));
        assert_string_equal(e.point, "/last");
        assert_false(mountinfo_next(&at, end, &e));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(test_links_stay_inside),           cmocka_unit_test(test_magic_links_lead_nowhere),
                TEST(test_missing_components_are_made), TEST(test_links_to_nothing),
                cmocka_unit_test(test_mountinfo_lines),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
