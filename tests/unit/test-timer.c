/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "util/timer.h"

static int on_time(sd_event_source *source, uint64_t usec, void *userdata) {
        ++*(int *) userdata;
        return 0;
}

static void test_a_time_out_comes_once(void **state) {
        sd_event *event;
        sd_event_source *source = NULL;
        int calls = 0;

        assert_return_code(sd_event_new(&event), 0);
        assert_return_code(timer_start(event, 0, on_time, &calls, &source), 0);
        assert_true(sd_event_run(event, UINT64_C(10000000)) > 0);
        assert_int_equal(calls, 1);
        assert_int_equal(sd_event_run(event, 0), 0);
        assert_int_equal(calls, 1);
        sd_event_source_unref(source);
        sd_event_unref(event);
}

static void test_the_greatest_is_none(void **state) {
        sd_event *event;
        sd_event_source *source = NULL;

        assert_return_code(sd_event_new(&event), 0);
        assert_int_equal(timer_start(event, UINT64_MAX, on_time, NULL, &source), 0);
        assert_null(source);
        sd_event_unref(event);
}

static void test_what_the_clock_cannot_reach_is_waited_for_without_an_error(void **state) {
        const uint64_t far[] = { UINT64_MAX - 1, UINT64_MAX - 2, UINT64_MAX / 2 };
        sd_event *event;
        int calls = 0;

        assert_return_code(sd_event_new(&event), 0);
        for (size_t i = 0; i < 3; i++) {
                sd_event_source *source = NULL;
                uint64_t now, at;

                assert_return_code(timer_start(event, far[i], on_time, &calls, &source), 0);
                assert_non_null(source);
                assert_return_code(sd_event_now(event, CLOCK_MONOTONIC, &now), 0);
                assert_return_code(sd_event_source_get_time(source, &at), 0);
                assert_true(at > now && at < UINT64_MAX);
                assert_int_equal(sd_event_run(event, 1000), 0);
                assert_int_equal(calls, 0);
                sd_event_source_unref(source);
        }
        sd_event_unref(event);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_time_out_comes_once),
                cmocka_unit_test(test_the_greatest_is_none),
                cmocka_unit_test(test_what_the_clock_cannot_reach_is_waited_for_without_an_error),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
