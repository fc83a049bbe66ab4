/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "service/cgroup-parse.h"
#include "service/members.h"

static void test_keys_are_found_at_line_starts_only(void **state) {
        const char *text = "low 1\nhigh 2\noom 3\noom_kill 4\noom_group_kill 5\n";
        uint64_t n = 77;

        assert_int_equal(cgroup_parse_key(text, "low", &n), 0);
        assert_int_equal(n, 1);
        assert_int_equal(cgroup_parse_key(text, "oom", &n), 0);
        assert_int_equal(n, 3);
        assert_int_equal(cgroup_parse_key(text, "oom_kill", &n), 0);
        assert_int_equal(n, 4);
        assert_int_equal(cgroup_parse_key(text, "oom_group_kill", &n), 0);
        assert_int_equal(n, 5);
        n = 77;
        assert_int_equal(cgroup_parse_key(text, "kill", &n), -ENODATA);
        assert_int_equal(cgroup_parse_key("", "low", &n), -ENODATA);
        assert_int_equal(cgroup_parse_key("low x\n", "low", &n), -EBADMSG);
        assert_int_equal(cgroup_parse_key("low 1x\n", "low", &n), -EBADMSG);
        assert_int_equal(n, 77);
        assert_int_equal(cgroup_parse_key("populated 1\nfrozen 0", "frozen", &n), 0);
        assert_int_equal(n, 0);
}

static void test_numbers(void **state) {
        uint64_t n;

        assert_int_equal(cgroup_parse_number("4096\n", &n), 0);
        assert_int_equal(n, 4096);
        assert_int_equal(cgroup_parse_number("max\n", &n), 0);
        assert_true(n == UINT64_MAX);
        assert_int_equal(cgroup_parse_number("99999999999999999999999\n", &n), 0);
        assert_true(n == UINT64_MAX);
        assert_int_equal(cgroup_parse_number("\n", &n), -EBADMSG);
        assert_int_equal(cgroup_parse_number("maximum\n", &n), -EBADMSG);
        assert_int_equal(cgroup_parse_number("1 2\n", &n), -EBADMSG);
}

static void test_io_is_summed_over_devices(void **state) {
        const char *text = "8:0 rbytes=10 wbytes=20 rios=1 wios=2 dbytes=0 dios=0\n"
                           "253:1 \n"
                           "259:0 rbytes=5 wbytes=7 rios=1 wios=2 dbytes=3 dios=1\n";

        assert_int_equal(cgroup_parse_io(text, "rbytes"), 15);
        assert_int_equal(cgroup_parse_io(text, "wbytes"), 27);
        assert_int_equal(cgroup_parse_io(text, "bytes"), 0);
        assert_int_equal(cgroup_parse_io("", "rbytes"), 0);
}

static void test_pressure_is_the_total_of_the_line(void **state) {
        const char *text = "some avg10=0.00 avg60=1.50 avg300=0.00 total=1234\n"
                           "full avg10=0.00 avg60=0.00 avg300=0.00 total=56\n";
        uint64_t n;

        assert_int_equal(cgroup_parse_pressure(text, "some", &n), 0);
        assert_int_equal(n, 1234);
        assert_int_equal(cgroup_parse_pressure(text, "full", &n), 0);
        assert_int_equal(n, 56);
        assert_int_equal(cgroup_parse_pressure("some avg10=0.00\nfull total=1\n", "some", &n), -EBADMSG);
        assert_int_equal(cgroup_parse_pressure("some total=1\n", "full", &n), -ENODATA);
}

static void test_processes(void **state) {
        const char *p = "12\n0\n345\n99999999999\n6\n";

        assert_int_equal(cgroup_parse_next_pid(&p), 12);
        assert_int_equal(cgroup_parse_next_pid(&p), 345);
        assert_int_equal(cgroup_parse_next_pid(&p), 6);
        assert_int_equal(cgroup_parse_next_pid(&p), 0);
        assert_int_equal(cgroup_parse_next_pid(&p), 0);
}

static void test_lists_of_processors(void **state) {
        uint8_t mask[CPU_LIST_MAX / 8];
        size_t n;

        assert_int_equal(cpu_list_parse("0-3,8", mask, &n), 0);
        assert_int_equal(n, 2);
        assert_int_equal(mask[0], 0x0f);
        assert_int_equal(mask[1], 0x01);
        assert_int_equal(cpu_list_parse("7", mask, &n), 0);
        assert_int_equal(n, 1);
        assert_int_equal(mask[0], 0x80);
        assert_int_equal(cpu_list_parse("8191", mask, &n), 0);
        assert_int_equal(n, 1024);
        for (const char *const *bad =
                     (const char *const[]) { "", ",", "1,", "3-1", "-1", "1-", "a", "1 2", "0x1", NULL };
             *bad; bad++)
                assert_int_equal(cpu_list_parse(*bad, mask, &n), -EINVAL);
        assert_int_equal(cpu_list_parse("0-8192", mask, &n), -ERANGE);
        assert_int_equal(cpu_list_parse("99999999999999999999999", mask, &n), -ERANGE);
        assert_int_equal(n, 1024);
}

static void test_a_path_is_within_a_group_by_whole_names(void **state) {
        assert_true(cgroup_path_is_within("/a/b", "/a/b"));
        assert_true(cgroup_path_is_within("/a/b/c", "/a/b"));
        assert_false(cgroup_path_is_within("/a/bc", "/a/b"));
        assert_false(cgroup_path_is_within("/a", "/a/b"));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_keys_are_found_at_line_starts_only),
                cmocka_unit_test(test_numbers),
                cmocka_unit_test(test_io_is_summed_over_devices),
                cmocka_unit_test(test_pressure_is_the_total_of_the_line),
                cmocka_unit_test(test_processes),
                cmocka_unit_test(test_lists_of_processors),
                cmocka_unit_test(test_a_path_is_within_a_group_by_whole_names),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
