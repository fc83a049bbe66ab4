/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "service/launch/users.h"
#include "util/cleanup.h"
#include "util/fd.h"

static bool find(const char *data, const char *name, uint32_t uid, UsersEntry *ret) {
        return users_find(data, strlen(data), name, uid, ret);
}

static void test_passwd_lines(void **state) {
        static const char data[] = "#root:x:9:9::/:/bin/sh\n"
                                   "root:x:0:0:root:/root:/bin/sh\n"
                                   "short:x:1\n"
                                   "long:x:1:1::/:/bin/sh:more\n"
                                   ":x:5:5::/:/bin/sh\n"
                                   "negative:x:-1:0::/:\n"
                                   "none:x:4294967295:0::/:\n"
                                   "big:x:99999999999999999999:0::/:\n"
                                   "hex:x:0x10:0::/:\n"
                                   "space:x: 7:0::/:\n"
                                   "app:x:1000:1001:A, b:/home/app:\n"
                                   "app:x:7:7::/other:\n"
                                   "last:x:4294967294:3::/l:/bin/l";
        static const char *const absent[] = { "roo",  "rootx", "short", "long",  "negative",
                                              "none", "big",   "hex",   "space", "" };
        UsersEntry e;

        assert_true(find(data, "root", 0, &e));
        assert_int_equal(e.uid, 0);
        assert_int_equal(e.home_length, 5);
        assert_memory_equal(e.home, "/root", 5);
        assert_memory_equal(e.shell, "/bin/sh", 7);
        assert_true(find(data, "app", 0, &e)); /* the first of that name */
        assert_int_equal(e.uid, 1000);
        assert_int_equal(e.gid, 1001);
        assert_int_equal(e.shell_length, 0);
        assert_true(find(data, "last", 0, &e)); /* no newline at the end */
        assert_int_equal(e.uid, 4294967294U);
        assert_int_equal(e.shell_length, 6);
        assert_true(find(data, NULL, 1000, &e));
        assert_int_equal(e.name_length, 3);
        assert_false(find(data, NULL, 9, &e)); /* a comment's */
        for (size_t i = 0; i < ELEMENTSOF(absent); i++)
                assert_false(find(data, absent[i], 0, &e));
        assert_false(find("", "root", 0, &e));
        assert_false(find("\n\n", "", 0, &e));
}

static void test_a_line_with_a_nul_is_passed_over(void **state) {
        static const char data[] =
                "root\0:x:5:5::/:/bin/sh\nroot:x:6:6::/\0:/bin/sh\nroot:x:0:0::/:/bin/sh\n";
        UsersEntry e;

        assert_true(users_find(data, sizeof(data) - 1, "root", 0, &e));
        assert_int_equal(e.uid, 0);
}

static void test_group_lines(void **state) {
        static const char data[] = "root:x:0:\nbad:x:1\naudio:x:29:app,other\nvideo:x:44:,application,app\n"
                                   "again:x:29:app\nno:x:4294967295:app\n";
        uint32_t groups[4] = { 1001 }, gid;
        size_t n = 1, size = sizeof(data) - 1;

        assert_true(users_find_group(data, size, "video", &gid));
        assert_int_equal(gid, 44);
        assert_false(users_find_group(data, size, "bad", &gid));
        assert_false(users_find_group(data, size, "no", &gid));
        assert_int_equal(users_find_memberships(data, size, "app", groups, &n, 4), 0);
        assert_int_equal(n, 3);
        assert_int_equal(groups[1], 29);
        assert_int_equal(groups[2], 44);
        n = 0;
        assert_int_equal(users_find_memberships(data, size, "app", groups, &n, 1), -E2BIG);
        n = 0;
        assert_int_equal(users_find_memberships(data, size, "", groups, &n, 4), 0);
        assert_int_equal(n, 0);
}

typedef struct Root {
        char path[32];
        int fd;
} Root;

static int setup(void **state) {
        Root *root = calloc(1, sizeof(*root));

        assert_non_null(root);
        (void) snprintf(root->path, sizeof(root->path), "/tmp/berth-users-XXXXXX");
        assert_non_null(mkdtemp(root->path));
        root->fd = open(root->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        assert_true(root->fd >= 0);
        assert_int_equal(mkdirat(root->fd, "etc", 0755), 0);
        *state = root;
        return 0;
}

static int teardown(void **state) {
        Root *root = *state;

        (void) unlinkat(root->fd, "etc/passwd", 0);
        (void) unlinkat(root->fd, "etc/group", 0);
        assert_int_equal(unlinkat(root->fd, "etc", AT_REMOVEDIR), 0);
        assert_int_equal(rmdir(root->path), 0);
        (void) close(root->fd);
        free(root);
        return 0;
}

static void put(const Root *root, const char *name, const char *data, size_t size) {
        _cleanup_fd_ int fd = -EBADF;

        fd = openat(root->fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
        assert_true(fd >= 0);
        assert_int_equal(fd_write_all(fd, data, size), 0);
}

static void test_only_regular_files_of_bounded_size_are_read(void **state) {
        Root *root = *state;
        const char *data;
        size_t size;
        _cleanup_fd_ int fd = -EBADF;

        assert_int_equal(users_read(root->fd, "/etc/passwd", &data, &size), -ENOENT);
        assert_int_equal(mkfifoat(root->fd, "etc/passwd", 0600), 0);
        assert_int_equal(users_read(root->fd, "/etc/passwd", &data, &size), -EINVAL);
        assert_int_equal(unlinkat(root->fd, "etc/passwd", 0), 0);
        /* The host's file, as seen from inside, isn't there. */
        assert_int_equal(symlinkat("/etc/hostname", root->fd, "etc/passwd"), 0);
        assert_int_equal(users_read(root->fd, "/etc/passwd", &data, &size), -ENOENT);
        assert_int_equal(unlinkat(root->fd, "etc/passwd", 0), 0);
        put(root, "etc/passwd", "abc", 3);
        assert_int_equal(users_read(root->fd, "/etc/passwd", &data, &size), 0);
        assert_int_equal(size, 3);
        assert_memory_equal(data, "abc", 3);
        fd = openat(root->fd, "etc/passwd", O_WRONLY | O_CLOEXEC);
        assert_true(fd >= 0);
        assert_int_equal(ftruncate(fd, USERS_FILE_MAX + 1), 0);
        assert_int_equal(users_read(root->fd, "/etc/passwd", &data, &size), -EFBIG);
}

static void test_users_are_resolved(void **state) {
        static const char passwd[] = "root:x:0:0::/root:/bin/sh\napp:x:1000:1001::/home/app:\n";
        static const char group[] = "app:x:1001:\naudio:x:29:app\nvideo:x:44:root\n";
        Root *root = *state;
        char *groups[] = { (char *) "video", (char *) "29", (char *) "7", NULL };
        _cleanup_free_ User *user = calloc(1, sizeof(User));
        const char *detail;

        assert_non_null(user);
        put(root, "etc/passwd", passwd, sizeof(passwd) - 1);
        put(root, "etc/group", group, sizeof(group) - 1);
        assert_int_equal(
                users_resolve(root->fd, &(UsersRequest) { .name = "app", .groups = groups }, user, &detail),
                0);
        assert_int_equal(user->uid, 1000);
        assert_int_equal(user->gid, 1001);
        assert_true(user->known);
        assert_string_equal(user->home, "/home/app");
        assert_string_equal(user->shell, "/bin/sh");
        assert_int_equal(user->n_groups, 4);
        assert_int_equal(user->groups[0], 1001);
        assert_int_equal(user->groups[1], 29);
        assert_int_equal(user->groups[2], 44);
        assert_int_equal(user->groups[3], 7);

        memset(user, 0, sizeof(*user));
        assert_int_equal(users_resolve(root->fd, &(UsersRequest) { .name = "app", .has_gid = 1, .gid = 5 },
                                       user, &detail),
                         0);
        assert_int_equal(user->gid, 5);
        assert_int_equal(user->n_groups, 0);

        memset(user, 0, sizeof(*user));
        assert_int_equal(users_resolve(root->fd, &(UsersRequest) { .uid = 55 }, user, &detail), 0);
        assert_int_equal(user->uid, 55);
        assert_int_equal(user->gid, 0);
        assert_false(user->known);
        assert_string_equal(user->home, "/");

        memset(user, 0, sizeof(*user));
        assert_int_equal(users_resolve(root->fd, &(UsersRequest) { .name = "ghost" }, user, &detail),
                         -ESRCH);
        assert_string_equal(detail, "ghost");
        assert_int_equal(users_resolve(root->fd, &(UsersRequest) { .uid = UINT32_MAX }, user, &detail),
                         -EINVAL);
        groups[2] = (char *) "4294967295";
        assert_int_equal(users_resolve(root->fd, &(UsersRequest) { .groups = groups }, user, &detail),
                         -EINVAL);
        assert_string_equal(detail, "4294967295");
}

static void test_too_long_fields_matter_to_a_name_only(void **state) {
        static const struct {
                const char *before, *after, *name, *detail;
        } cases[] = {
                { "app:x:1000:1001::/", ":/bin/sh\n", "app", "/etc/passwd: home of app is too long" },
                { "app:x:1000:1001::/home/app:/", "\n", "app", "/etc/passwd: shell of app is too long" },
                { "", ":x:1000:1001::/home/app:/bin/sh\n", NULL, NULL },
        };
        Root *root = *state;
        char passwd[6000], fill[5001];
        _cleanup_free_ User *user = calloc(1, sizeof(User));
        const char *detail;

        assert_non_null(user);
        memset(fill, 'x', sizeof(fill) - 1);
        fill[sizeof(fill) - 1] = 0;
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                (void) snprintf(passwd, sizeof(passwd), "%s%s%s", cases[i].before, fill, cases[i].after);
                put(root, "etc/passwd", passwd, strlen(passwd));

                memset(user, 0, sizeof(*user));
                assert_int_equal(users_resolve(root->fd, &(UsersRequest) { .uid = 1000 }, user, &detail), 0);
                assert_int_equal(user->uid, 1000);
                assert_int_equal(user->gid, 0);
                assert_false(user->known);
                assert_string_equal(user->home, "/");
                assert_string_equal(user->name, "");

                if (cases[i].name) {
                        memset(user, 0, sizeof(*user));
                        assert_int_equal(users_resolve(root->fd, &(UsersRequest) { .name = cases[i].name },
                                                       user, &detail),
                                         -ENAMETOOLONG);
                        assert_string_equal(detail, cases[i].detail);
                }
                assert_int_equal(unlinkat(root->fd, "etc/passwd", 0), 0);
        }

        /* The longest that there is room for. */
        fill[USERS_TEXT_MAX - 2] = 0;
        (void) snprintf(passwd, sizeof(passwd), "app:x:1000:1001::/%s:/bin/sh\n", fill);
        put(root, "etc/passwd", passwd, strlen(passwd));
        memset(user, 0, sizeof(*user));
        assert_int_equal(users_resolve(root->fd, &(UsersRequest) { .uid = 1000 }, user, &detail), 0);
        assert_true(user->known);
        assert_int_equal(strlen(user->home), USERS_TEXT_MAX - 1);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_passwd_lines),
                cmocka_unit_test(test_a_line_with_a_nul_is_passed_over),
                cmocka_unit_test(test_group_lines),
                cmocka_unit_test_setup_teardown(test_only_regular_files_of_bounded_size_are_read, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(test_users_are_resolved, setup, teardown),
                cmocka_unit_test_setup_teardown(test_too_long_fields_matter_to_a_name_only, setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
