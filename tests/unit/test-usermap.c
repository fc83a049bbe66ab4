/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "service/usermap.h"

#define DEADLINE_USEC (20U * 1000U * 1000U)

typedef struct Case {
        const char *text;
        int found;
        uint32_t start, count;
} Case;

/* For user "ann", uid 1000. */
static const Case cases[] = {
        { "", 0, 0, 0 },
        { "ann:100000:65536\n", 1, 100000, 65536 },
        { "ann:100000:65536", 1, 100000, 65536 },
        { "1000:200000:1000\n", 1, 200000, 1000 },
        { "bob:1:1\nann:100000:65536\nann:300000:1\n", 1, 100000, 65536 },
        { "anna:100000:65536\n", 0, 0, 0 },
        { "an:100000:65536\n", 0, 0, 0 },
        { "10000:100000:65536\n", 0, 0, 0 },
        /* A line that is wrong is passed over, and the next one is found. */
        { "ann\nann:\nann::\nann:1\nann:1:\nann:5:6\n", 1, 5, 6 },
        { "ann:x:1\nann:1:x\nann:-1:1\nann:1:-1\nann:+1:1\nann:1 :1\nann:0x10:1\nann:5:6\n", 1, 5, 6 },
        { "ann:100000:0\nann:5:6\n", 1, 5, 6 },
        { "ann:1:2:3\nann:5:6\n", 1, 5, 6 },
        { "# ann:1:2\n\n:1:2\nann:5:6\n", 1, 5, 6 },
        /* Ids are 32 bits, the last one is none. */
        { "ann:4294967295:1\nann:5:6\n", 1, 5, 6 },
        { "ann:4294967294:65536\nann:5:6\n", 1, 5, 6 },
        { "ann:1:4294967295\nann:5:6\n", 1, 5, 6 },
        { "ann:4294967296:1\nann:99999999999999999999:1\nann:5:6\n", 1, 5, 6 },
        { "ann:4294901759:65535\n", 1, 4294901759U, 65535 },
};

static int write_file(const char *text, char path[static 64]) {
        int fd;

        fd = memfd_create("subid", MFD_CLOEXEC);
        assert_return_code(fd, errno);
        assert_int_equal(write(fd, text, strlen(text)), strlen(text));
        (void) snprintf(path, 64, "/proc/self/fd/%d", fd);
        return fd;
}

static void test_the_first_good_range_of_the_user_is_found(void **state) {
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_fd_ int fd = -EBADF;
                uint32_t start = 7, count = 8;
                char path[64];
                int r;

                fd = write_file(cases[i].text, path);
                r = user_map_read_range(path, "ann", 1000, &start, &count);
                if (r != cases[i].found || start != (r ? cases[i].start : 7) ||
                    count != (r ? cases[i].count : 8))
                        fail_msg("case %zu: %d, %u, %u", i, r, start, count);
        }
}

static void test_a_user_without_a_name_is_found_by_number(void **state) {
        _cleanup_fd_ int fd = -EBADF;
        uint32_t start, count;
        char path[64];

        fd = write_file("ann:1:2\n1000:3:4\n", path);
        assert_int_equal(user_map_read_range(path, NULL, 1000, &start, &count), 1);
        assert_int_equal(start, 3);
        assert_int_equal(count, 4);
}

static void test_no_file_is_no_range_and_what_is_no_file_an_error(void **state) {
        uint32_t start, count;

        assert_int_equal(user_map_read_range("/there/is/none", "ann", 1000, &start, &count), 0);
        assert_int_equal(user_map_read_range("/etc", "ann", 1000, &start, &count), -EINVAL);
        assert_int_equal(user_map_read_range("/dev/zero", "ann", 1000, &start, &count), -EINVAL);
}

static void test_sub_ids_are_used_only_where_both_kinds_and_the_helpers_are_there(void **state) {
        _cleanup_fd_ int with = -EBADF, without = -EBADF;
        char yes[64], no[64];
        UserMap map;

        with = write_file("ann:100000:65536\n", yes);
        without = write_file("bob:100000:65536\n", no);

        user_map_own(1000, 100, "ann", yes, yes, true, &map);
        assert_true(map.by_helper);
        assert_false(user_map_one_id(&map));
        assert_int_equal(map.n_uids, 2);
        assert_int_equal(map.n_gids, 2);
        assert_memory_equal(&map.uids[0], &((UserMapExtent) { 0, 1000, 1 }), sizeof(UserMapExtent));
        assert_memory_equal(&map.gids[0], &((UserMapExtent) { 0, 100, 1 }), sizeof(UserMapExtent));
        assert_memory_equal(&map.uids[1], &((UserMapExtent) { 1, 100000, 65536 }), sizeof(UserMapExtent));

        for (int i = 0; i < 3; i++) {
                user_map_own(1000, 100, "ann", i == 0 ? no : yes, i == 1 ? no : yes, i != 2, &map);
                assert_false(map.by_helper);
                assert_true(user_map_one_id(&map));
                assert_int_equal(map.n_uids, 1);
                assert_int_equal(map.n_gids, 1);
        }
}

typedef struct Written {
        int n, error;
        char detail[64];
} Written;

static void note(int error, const char *detail, void *userdata) {
        Written *written = userdata;

        written->n++;
        written->error = error;
        (void) snprintf(written->detail, sizeof(written->detail), "%s", detail);
}

/* There is no process 0 to write for. */
static void test_what_could_not_be_written_is_named(void **state) {
        UserMap map = { .uids = { { 0, 0, 1 } }, .gids = { { 0, 0, 1 } }, .n_uids = 1, .n_gids = 1 };
        UserMapWrite *write = (UserMapWrite *) 1;
        Written written = {};
        sd_event *event;

        assert_return_code(sd_event_new(&event), 0);
        assert_return_code(user_map_write(event, &map, 0, note, &written, &write), 0);
        assert_null(write);
        assert_int_equal(written.n, 1);
        assert_int_equal(written.error, -ENOENT);
        assert_string_equal(written.detail, geteuid() == 0 ? "gid_map" : "setgroups");
        (void) sd_event_unref(event);
}

/* A directory with the two helpers as they are wanted; its path becomes the whole PATH. */
static void install(const char *directory, const char *name, const char *script) {
        _cleanup_fd_ int fd = -EBADF;
        char path[256];

        (void) snprintf(path, sizeof(path), "%s/%s", directory, name);
        (void) unlink(path);
        fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
        assert_return_code(fd, errno);
        assert_int_equal(write(fd, script, strlen(script)), strlen(script));
}

static void run_helpers(sd_event *event, Written *written, UserMapWrite **ret) {
        UserMap map = {
                .uids = { { 0, 1000, 1 }, { 1, 100000, 65536 } },
                .gids = { { 0, 100, 1 }, { 1, 200000, 65536 } },
                .n_uids = 2,
                .n_gids = 2,
                .by_helper = true,
        };

        *written = (Written) {};
        assert_return_code(user_map_write(event, &map, 4242, note, written, ret), 0);
        assert_non_null(*ret);
}

static void expect_end(sd_event *event, const Written *written, int error, const char *detail) {
        while (written->n == 0)
                assert_true(sd_event_run(event, DEADLINE_USEC) > 0);
        assert_int_equal(written->n, 1);
        assert_int_equal(written->error, error);
        assert_string_equal(written->detail, detail);
}

static void test_the_helpers_are_given_pid_and_extents_one_after_the_other(void **state) {
        char directory[] = "/tmp/test-usermap.XXXXXX", *path, text[256] = {}, file[64];
        _cleanup_fd_ int log = -EBADF;
        UserMapWrite *write = NULL;
        Written written;
        sd_event *event;

        assert_return_code(sd_event_new(&event), 0);
        assert_non_null(mkdtemp(directory));
        path = strdup(getenv("PATH") ?: "");
        assert_non_null(path);
        assert_return_code(setenv("PATH", directory, 1), errno);
        install(directory, "newuidmap", "#!/bin/sh\necho u $* >>${0%/*}/log\n");
        install(directory, "newgidmap", "#!/bin/sh\necho g $* >>${0%/*}/log\n");
        run_helpers(event, &written, &write);
        expect_end(event, &written, 0, "newgidmap");
        (void) snprintf(file, sizeof(file), "%s/log", directory);
        log = open(file, O_RDONLY | O_CLOEXEC);
        assert_true(read(log, text, sizeof(text) - 1) > 0);
        assert_string_equal(text, "u 4242 0 1000 1 1 100000 65536\ng 4242 0 100 1 1 200000 65536\n");

        install(directory, "newgidmap", "#!/bin/sh\nexit 1\n");
        run_helpers(event, &written, &write);
        expect_end(event, &written, -EPERM, "newgidmap");
        (void) snprintf(file, sizeof(file), "%s/newgidmap", directory);
        assert_return_code(unlink(file), errno);
        run_helpers(event, &written, &write);
        expect_end(event, &written, -ENOENT, "newgidmap");
        install(directory, "newuidmap", "#!/bin/sh\nkill -KILL $$\n");
        run_helpers(event, &written, &write);
        expect_end(event, &written, -EPERM, "newuidmap");
        /* Given up in the middle: the helper goes, and nobody is told. */
        install(directory, "newuidmap", "#!/bin/sh\nexec /bin/sleep 1000\n");
        run_helpers(event, &written, &write);
        assert_null(user_map_write_free(write));
        assert_int_equal(sd_event_run(event, 0), 0);
        assert_int_equal(written.n, 0);

        (void) snprintf(file, sizeof(file), "%s/log", directory);
        (void) unlink(file);
        (void) snprintf(file, sizeof(file), "%s/newuidmap", directory);
        (void) unlink(file);
        (void) rmdir(directory);
        assert_return_code(setenv("PATH", path, 1), errno);
        free(path);
        (void) sd_event_unref(event);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_the_first_good_range_of_the_user_is_found),
                cmocka_unit_test(test_a_user_without_a_name_is_found_by_number),
                cmocka_unit_test(test_no_file_is_no_range_and_what_is_no_file_an_error),
                cmocka_unit_test(test_sub_ids_are_used_only_where_both_kinds_and_the_helpers_are_there),
                cmocka_unit_test(test_what_could_not_be_written_is_named),
                cmocka_unit_test(test_the_helpers_are_given_pid_and_extents_one_after_the_other),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
