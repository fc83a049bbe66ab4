/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "interfaces/names.h"
#include "service/resources.h"
#include "util/cleanup.h"
#include "util/fd.h"

static const char *const files[] = { "memory.max", "memory.high", "memory.swap.max", "pids.max",
                                     "cpu.weight", "cpu.max",     "io.weight",       "cpuset.cpus" };

/* A directory with the files of a group. */
static int group_new(char path[32], size_t n_files) {
        int fd;

        (void) snprintf(path, 32, "/tmp/berth-resources-XXXXXX");
        assert_non_null(mkdtemp(path));
        fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(fd >= 0);
        for (size_t i = 0; i < n_files; i++) {
                int file = openat(fd, files[i], O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

                assert_true(file >= 0);
                (void) close(file);
        }
        return fd;
}

static void group_done(const char *path, int fd) {
        for (size_t i = 0; i < ELEMENTSOF(files); i++)
                (void) unlinkat(fd, files[i], 0);
        (void) close(fd);
        assert_int_equal(rmdir(path), 0);
}

static void expect_file(int fd, const char *file, const char *expected) {
        _cleanup_free_ char *text = NULL;

        assert_int_equal(fd_read_file(fd, file, 0, 4096, &text, NULL), 0);
        assert_string_equal(text, expected);
        assert_int_equal(unlinkat(fd, file, 0), 0);
        (void) close(openat(fd, file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
}

static void test_ranges(void **state) {
        static const struct {
                Resource resource;
                uint64_t value;
                bool good;
        } cases[] = {
                { RESOURCE_MEMORY_MAX, 0, false },    { RESOURCE_MEMORY_MAX, 1, true },
                { RESOURCE_MEMORY_HIGH, 0, false },   { RESOURCE_MEMORY_SWAP_MAX, 0, true },
                { RESOURCE_TASKS_MAX, 0, false },     { RESOURCE_TASKS_MAX, RESOURCE_NONE, true },
                { RESOURCE_CPU_WEIGHT, 0, false },    { RESOURCE_CPU_WEIGHT, 1, true },
                { RESOURCE_CPU_WEIGHT, 10000, true }, { RESOURCE_CPU_WEIGHT, 10001, false },
                { RESOURCE_IO_WEIGHT, 10001, false }, { RESOURCE_IO_WEIGHT, RESOURCE_NONE, true },
                { RESOURCE_CPU_QUOTA, 0, false },     { RESOURCE_CPU_QUOTA, 1, true },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_bus_error_ sd_bus_error error = SD_BUS_ERROR_NULL;
                Resources resources;
                int r;

                resources_init(&resources);
                r = resources_set(&resources, cases[i].resource, cases[i].value, &error);
                assert_int_equal(r >= 0, cases[i].good);
                if (cases[i].good) {
                        assert_true(resources.values[cases[i].resource] == cases[i].value);
                        assert_int_equal(resources.given, 1U << cases[i].resource);
                        continue;
                }
                assert_int_equal(resources.given, 0);
                assert_string_equal(error.name, BERTH_ERROR_INVALID_SPEC);
                assert_non_null(strstr(error.message, resource_to_string(cases[i].resource)));
        }
}

static void test_names_round_trip(void **state) {
        for (Resource i = 0; i < _RESOURCE_MAX; i++)
                assert_int_equal(resource_from_string(resource_to_string(i)), i);
        assert_int_equal(resource_from_string("Memory"), _RESOURCE_INVALID);
        assert_null(resource_to_string(_RESOURCE_MAX));
        assert_null(resource_to_string(_RESOURCE_INVALID));
}

static void test_allowed_cpus(void **state) {
        _cleanup_bus_error_ sd_bus_error error = SD_BUS_ERROR_NULL;
        Resources resources;

        resources_init(&resources);
        assert_int_equal(resources_set_allowed_cpus(&resources, "0-3,8", &error), 0);
        assert_string_equal(resources.allowed_cpus, "0-3,8");
        assert_true(resources_set_allowed_cpus(&resources, "0-", &error) < 0);
        assert_string_equal(error.name, BERTH_ERROR_INVALID_SPEC);
        assert_non_null(strstr(error.message, "AllowedCPUs"));
        assert_string_equal(resources.allowed_cpus, "0-3,8");
        assert_int_equal(resources_set_allowed_cpus(&resources, "", &error), 0);
        assert_null(resources.allowed_cpus);
        assert_true(resources.allowed_cpus_given);
        resources_done(&resources);
}

static void test_what_was_given_is_written_as_the_kernel_wants_it(void **state) {
        Resources resources;
        const char *key;
        char path[32];
        int fd = group_new(path, ELEMENTSOF(files));

        resources_init(&resources);
        assert_int_equal(resources_write(&resources, fd, &key), 0);
        for (size_t i = 0; i < ELEMENTSOF(files); i++)
                expect_file(fd, files[i], "");

        assert_int_equal(resources_set(&resources, RESOURCE_MEMORY_MAX, 4096, NULL), 0);
        assert_int_equal(resources_set(&resources, RESOURCE_MEMORY_HIGH, RESOURCE_NONE, NULL), 0);
        assert_int_equal(resources_set(&resources, RESOURCE_CPU_WEIGHT, 7, NULL), 0);
        assert_int_equal(resources_set(&resources, RESOURCE_IO_WEIGHT, 50, NULL), 0);
        assert_int_equal(resources_set(&resources, RESOURCE_CPU_QUOTA, 1500000, NULL), 0);
        assert_int_equal(resources_set_allowed_cpus(&resources, "1", NULL), 0);
        assert_int_equal(resources_write(&resources, fd, &key), 0);
        expect_file(fd, "memory.max", "4096");
        expect_file(fd, "memory.high", "max");
        expect_file(fd, "pids.max", "");
        expect_file(fd, "cpu.weight", "7");
        expect_file(fd, "io.weight", "default 50");
        expect_file(fd, "cpu.max", "150000 100000");
        expect_file(fd, "cpuset.cpus", "1");

        assert_int_equal(resources_set(&resources, RESOURCE_CPU_WEIGHT, RESOURCE_NONE, NULL), 0);
        assert_int_equal(resources_set(&resources, RESOURCE_IO_WEIGHT, RESOURCE_NONE, NULL), 0);
        assert_int_equal(resources_set(&resources, RESOURCE_CPU_QUOTA, 5000, NULL), 0);
        assert_int_equal(resources_write(&resources, fd, &key), 0);
        expect_file(fd, "cpu.weight", "100");
        expect_file(fd, "io.weight", "default 100");
        expect_file(fd, "cpu.max", "5000 1000000");
        assert_int_equal(resources_set(&resources, RESOURCE_CPU_QUOTA, 1, NULL), 0);
        assert_int_equal(resources_write(&resources, fd, &key), 0);
        expect_file(fd, "cpu.max", "1000 1000000");
        assert_int_equal(resources_set(&resources, RESOURCE_CPU_QUOTA, RESOURCE_NONE, NULL), 0);
        assert_int_equal(resources_write(&resources, fd, &key), 0);
        expect_file(fd, "cpu.max", "max");
        resources_done(&resources);
        group_done(path, fd);
}

static void test_a_missing_file_matters_to_a_limit_only(void **state) {
        const char *key = NULL;
        Resources resources;
        char path[32];
        int fd = group_new(path, 0);

        resources_init(&resources);
        assert_int_equal(resources_set(&resources, RESOURCE_TASKS_MAX, RESOURCE_NONE, NULL), 0);
        assert_int_equal(resources_set_allowed_cpus(&resources, "", NULL), 0);
        assert_int_equal(resources_write(&resources, fd, &key), 0);
        assert_int_equal(resources_set(&resources, RESOURCE_TASKS_MAX, 5, NULL), 0);
        assert_int_equal(resources_write(&resources, fd, &key), -ENOENT);
        assert_string_equal(key, "TasksMax");
        resources_done(&resources);
        group_done(path, fd);
}

static void test_merge_takes_what_was_given(void **state) {
        Resources to, from;

        resources_init(&to);
        resources_init(&from);
        assert_int_equal(resources_set(&to, RESOURCE_MEMORY_MAX, 1, NULL), 0);
        assert_int_equal(resources_set(&to, RESOURCE_TASKS_MAX, 2, NULL), 0);
        assert_int_equal(resources_set_allowed_cpus(&to, "1", NULL), 0);
        assert_int_equal(resources_set(&from, RESOURCE_MEMORY_MAX, RESOURCE_NONE, NULL), 0);
        assert_int_equal(resources_set(&from, RESOURCE_CPU_WEIGHT, 3, NULL), 0);
        assert_int_equal(resources_merge(&to, &from), 0);
        assert_true(to.values[RESOURCE_MEMORY_MAX] == RESOURCE_NONE);
        assert_int_equal(to.values[RESOURCE_TASKS_MAX], 2);
        assert_int_equal(to.values[RESOURCE_CPU_WEIGHT], 3);
        assert_string_equal(to.allowed_cpus, "1");
        assert_int_equal(resources_set_allowed_cpus(&from, "2-3", NULL), 0);
        assert_int_equal(resources_merge(&to, &from), 0);
        assert_string_equal(to.allowed_cpus, "2-3");
        resources_done(&from);
        resources_done(&to);
}

static bool has_memory_of_version_1(const void *userdata, const char *controller, bool unified) {
        return strcmp(controller, "memory") == 0 && !unified;
}

static void test_a_limit_without_its_controller_is_named(void **state) {
        static const struct {
                Resource resource;
                bool good;
        } cases[] = {
                { RESOURCE_MEMORY_MAX, true },       { RESOURCE_MEMORY_HIGH, false },
                { RESOURCE_MEMORY_SWAP_MAX, false }, { RESOURCE_TASKS_MAX, false },
                { RESOURCE_CPU_QUOTA, false },       { RESOURCE_IO_WEIGHT, false },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_bus_error_ sd_bus_error error = SD_BUS_ERROR_NULL;
                Resources resources;
                int r;

                resources_init(&resources);
                assert_int_equal(resources_set(&resources, cases[i].resource, RESOURCE_NONE, NULL), 0);
                assert_int_equal(resources_check(&resources, has_memory_of_version_1, NULL, &error), 0);
                assert_int_equal(resources_set(&resources, cases[i].resource, 5, NULL), 0);
                r = resources_check(&resources, has_memory_of_version_1, NULL, &error);
                assert_int_equal(r >= 0, cases[i].good);
                if (cases[i].good)
                        continue;
                assert_string_equal(error.name, BERTH_ERROR_NOT_SUPPORTED);
                assert_non_null(strstr(error.message, resource_to_string(cases[i].resource)));
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_ranges),
                cmocka_unit_test(test_names_round_trip),
                cmocka_unit_test(test_allowed_cpus),
                cmocka_unit_test(test_what_was_given_is_written_as_the_kernel_wants_it),
                cmocka_unit_test(test_a_missing_file_matters_to_a_limit_only),
                cmocka_unit_test(test_merge_takes_what_was_given),
                cmocka_unit_test(test_a_limit_without_its_controller_is_named),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
