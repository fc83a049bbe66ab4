/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "client/exit-status.h"
#include "client/parse.h"

typedef struct Case {
        const char *text;
        int result;
        uint64_t value;
} Case;

static void check(const Case *cases, size_t n, int (*parse)(const char *, uint64_t *)) {
        for (size_t i = 0; i < n; i++) {
                uint64_t value = 4711;

                assert_int_equal(parse(cases[i].text, &value), cases[i].result);
                assert_int_equal(value, cases[i].result < 0 ? 4711 : cases[i].value);
        }
}
#define CHECK(cases, parse) check((cases), sizeof(cases) / sizeof((cases)[0]), (parse))

static void test_sizes(void **state) {
        static const Case cases[] = {
                { "0", 0, 0 },
                { "4096", 0, 4096 },
                { "64M", 0, 64U << 20 },
                { "64m", 0, 64U << 20 },
                { "1GiB", 0, 1U << 30 },
                { "2KB", 0, 2048 },
                { "7B", 0, 7 },
                { "3T", 0, 3ULL << 40 },
                { "infinity", 0, UINT64_MAX },
                { "-1", 0, UINT64_MAX },
                { "18446744073709551614", 0, UINT64_MAX - 1 },
                { "18446744073709551615", -ERANGE, 0 },
                { "18446744073709551616", -ERANGE, 0 },
                { "16777216T", -ERANGE, 0 },
                { "", -EINVAL, 0 },
                { "-2", -EINVAL, 0 },
                { "1X", -EINVAL, 0 },
                { "1M1", -EINVAL, 0 },
                { " 1", -EINVAL, 0 },
                { "M", -EINVAL, 0 },
        };

        CHECK(cases, parse_size);
}

static void test_seconds(void **state) {
        static const Case cases[] = {
                { "0", 0, 0 },        { "10", 0, 10000000 },         { "1.5", 0, 1500000 },
                { "0.000001", 0, 1 }, { "infinity", 0, UINT64_MAX }, { "0.0000001", -EINVAL, 0 },
                { "1s", -EINVAL, 0 }, { ".5", -EINVAL, 0 },          { "99999999999999", -ERANGE, 0 },
        };

        CHECK(cases, parse_seconds);
}

static void test_limits(void **state) {
        static const Case cases[] = {
                { "1024", 0, 1024 },
                { "unlimited", 0, UINT64_MAX },
                { "0x10", -EINVAL, 0 },
                { "18446744073709551615", -ERANGE, 0 },
        };

        CHECK(cases, parse_limit);
}

static void test_signals(void **state) {
        const struct {
                const char *text;
                int result, value;
        } cases[] = {
                { "TERM", 0, SIGTERM },
                { "SIGTERM", 0, SIGTERM },
                { "sigusr1", 0, SIGUSR1 },
                { "9", 0, SIGKILL },
                { "64", 0, 64 },
                { "RTMIN", 0, SIGRTMIN },
                { "RTMIN+3", 0, SIGRTMIN + 3 },
                { "SIGRTMAX-1", 0, SIGRTMAX - 1 },
                { "0", -ERANGE, 0 },
                { "65", -ERANGE, 0 },
                { "RTMIN+99", -ERANGE, 0 },
                { "NOPE", -EINVAL, 0 },
                { "", -EINVAL, 0 },
                { "9x", -EINVAL, 0 },
                { "SIG", -EINVAL, 0 },
        };

        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                int value = 4711;

                assert_int_equal(parse_signal(cases[i].text, &value), cases[i].result);
                assert_int_equal(value, cases[i].result < 0 ? 4711 : cases[i].value);
        }
}

static void test_integers(void **state) {
        int value = 4711;

        assert_int_equal(parse_int("-1000", -1000, 1000, &value), 0);
        assert_int_equal(value, -1000);
        assert_int_equal(parse_int("+7", -1000, 1000, &value), 0);
        assert_int_equal(value, 7);
        assert_int_equal(parse_int("1001", -1000, 1000, &value), -ERANGE);
        assert_int_equal(parse_int("--1", -1000, 1000, &value), -EINVAL);
        assert_int_equal(parse_int("99999999999", INT_MIN, INT_MAX, &value), -ERANGE);
        assert_int_equal(value, 7);
}

static void test_exit_statuses(void **state) {
        assert_int_equal(exit_status(CLD_EXITED, 0, "success"), 0);
        assert_int_equal(exit_status(CLD_EXITED, 42, "exit-code"), 42);
        assert_int_equal(exit_status(CLD_EXITED, 255, "exit-code"), 255);
        assert_int_equal(exit_status(CLD_KILLED, SIGKILL, "signal"), 137);
        assert_int_equal(exit_status(CLD_DUMPED, SIGSEGV, "core-dump"), 139);
        assert_int_equal(exit_status(0, 0, "lost"), 125);
        assert_null(exit_status_remark("exit-code"));
        assert_non_null(exit_status_remark("oom-kill"));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_sizes),    cmocka_unit_test(test_seconds),
                cmocka_unit_test(test_limits),   cmocka_unit_test(test_signals),
                cmocka_unit_test(test_integers), cmocka_unit_test(test_exit_statuses),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
