/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "service/oom.h"
#include "util/cleanup.h"

#define SECOND 1000000U

static int events_new(void) {
        int fd = memfd_create("memory.events", MFD_CLOEXEC);

        assert_true(fd >= 0);
        return fd;
}

static void set_events(int fd, const char *text) {
        assert_int_equal(ftruncate(fd, 0), 0);
        assert_int_equal(pwrite(fd, text, strlen(text), 0), (ssize_t) strlen(text));
}

static void test_a_kill_explains_the_end_that_follows(void **state) {
        _cleanup_fd_ int fd = events_new();
        OomCounter counter = { .fd = fd };

        set_events(fd, "low 0\nhigh 0\nmax 12\noom 3\noom_kill 0\noom_group_kill 0\n");
        assert_int_equal(oom_counter_update(&counter, SECOND), 0);
        assert_false(oom_counter_explains(&counter, SECOND));

        /* A limit of a nested group: counted in oom_kill alone. */
        set_events(fd, "low 0\nhigh 0\nmax 12\noom 3\noom_kill 1\noom_group_kill 0\n");
        assert_int_equal(oom_counter_update(&counter, 2 * SECOND), 0);
        assert_int_equal(counter.kills, 1);
        assert_true(oom_counter_explains(&counter, 2 * SECOND));
        assert_true(oom_counter_explains(&counter, 3 * SECOND));
        assert_false(oom_counter_explains(&counter, 2 * SECOND + OOM_EXPLAINS_USEC + 1));
}

static void test_a_kill_explains_one_end_and_a_later_one_another(void **state) {
        _cleanup_fd_ int fd = events_new();
        OomCounter counter = { .fd = fd };

        set_events(fd, "oom_kill 1\n");
        assert_int_equal(oom_counter_update(&counter, SECOND), 0);
        assert_true(oom_counter_explains(&counter, SECOND));
        oom_counter_claim(&counter);
        assert_int_equal(oom_counter_update(&counter, SECOND + 1), 0);
        assert_false(oom_counter_explains(&counter, SECOND + 1));
        set_events(fd, "oom_kill 2\n");
        assert_int_equal(oom_counter_update(&counter, 2 * SECOND), 0);
        assert_true(oom_counter_explains(&counter, 2 * SECOND));
}

static void test_what_was_seen_outlives_the_file(void **state) {
        _cleanup_fd_ int fd = events_new();
        OomCounter counter = { .fd = fd };

        set_events(fd, "oom_kill 1\n");
        assert_int_equal(oom_counter_update(&counter, SECOND), 0);
        set_events(fd, "");
        assert_int_equal(oom_counter_update(&counter, SECOND + 1), -ENODATA);
        assert_true(oom_counter_explains(&counter, SECOND + 1));
}

static void test_without_a_controller_nothing_is_counted(void **state) {
        OomCounter counter = { .fd = -EBADF };

        assert_int_equal(oom_counter_update(&counter, SECOND), 0);
        assert_false(oom_counter_explains(&counter, SECOND));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_kill_explains_the_end_that_follows),
                cmocka_unit_test(test_a_kill_explains_one_end_and_a_later_one_another),
                cmocka_unit_test(test_what_was_seen_outlives_the_file),
                cmocka_unit_test(test_without_a_controller_nothing_is_counted),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
