/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* systemd refuses, fails, hangs or leaves in the middle of a launch: the caller hears of it, and nothing stays. */
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <setjmp.h>

#include <cmocka.h>

#include "interfaces/names.h"
#include "tests/bus/fixture.h"
#include "util/cleanup.h"

#define UNIT "berth-a.scope"

static const TestSpec asleep = { .name = "a", .script = "sleep 1000" };
static const TestSpec impatient = { .name = "a", .script = "sleep 1000", .timeout_start_usec = 200000 };

/* No object, no record; and the name can be used at once. */
static void assert_nothing_left(Fixture *f) {
        _cleanup_free_ char *left = records();

        assert_string_equal(left, "");
        assert_false(container_exists(f, "a"));
        f->systemd->job_result = "done";
        f->systemd->start_error = NULL;
        f->systemd->exists = 0;
        f->systemd->mute = f->systemd->mute_stop = f->systemd->hold_jobs = false;
        call_succeed(call_run(f, f->client, &asleep));
        call_succeed(call_begin(f, f->client, "a", "Remove", "b", 1));
}

static void test_job_fails(void **state) {
        Fixture *f = *state;

        f->systemd->job_result = "failed";
        call_fail(call_run(f, f->client, &asleep), BERTH_ERROR_LAUNCH_FAILED,
                  "container a: scope job ended with 'failed'");
        assert_null(fake_systemd_unit(f->systemd, UNIT));
        assert_nothing_left(f);
}

static void test_failed_stage(void **state) {
        _cleanup_free_ char *stage = NULL, *now = NULL, *result = NULL;
        Fixture *f = *state;

        call_succeed(call_create(f, f->client, &asleep));
        f->systemd->job_result = "timeout";
        call_fail(call_start(f, f->client, &asleep), BERTH_ERROR_LAUNCH_FAILED, "job ended with 'timeout'");
        stage = container_property(f, "a", "FailedStage");
        assert_string_equal(stage, "scope");
        now = container_property(f, "a", "State");
        assert_string_equal(now, "created");
        result = container_property(f, "a", "Unit");
        assert_string_equal(result, "");

        f->systemd->job_result = "done";
        call_succeed(call_start(f, f->client, &asleep));
        free(stage);
        stage = container_property(f, "a", "FailedStage");
        assert_string_equal(stage, "");
        call_succeed(call_begin(f, f->client, "a", "Remove", "b", 1));
}

static void test_refused(void **state) {
        Fixture *f = *state;

        f->systemd->start_error = "Slices are out today.";
        call_fail(call_run(f, f->client, &asleep), BERTH_ERROR_LAUNCH_FAILED,
                  "container a: scope Slices are out today.");
        assert_nothing_left(f);
}

static void test_unit_exists_once(void **state) {
        Fixture *f = *state;

        f->systemd->exists = 1;
        call_succeed(call_run(f, f->client, &asleep));
        assert_non_null(strstr(f->systemd->log,
                               "StartTransientUnit " UNIT "\nAbandonScope " UNIT "\nStopUnit " UNIT "\n"
                               "StartTransientUnit " UNIT "\n"));
        call_succeed(call_begin(f, f->client, "a", "Remove", "b", 1));
}

static void test_unit_exists_for_ever(void **state) {
        Fixture *f = *state;

        f->systemd->exists = 1000;
        call_fail(call_run(f, f->client, &asleep), BERTH_ERROR_LAUNCH_FAILED,
                  "Unit " UNIT " already exists.");
        assert_true(fake_systemd_count(f->systemd, "StartTransientUnit ") < 20);
        assert_nothing_left(f);
}

static void test_job_never_ends(void **state) {
        Fixture *f = *state;

        f->systemd->hold_jobs = true;
        call_fail(call_run(f, f->client, &impatient), BERTH_ERROR_TIMEOUT, "stage scope");
        fixture_until(f, fake_systemd_count(f->systemd, "StopUnit " UNIT) == 1);
        assert_nothing_left(f);
}

static void test_never_answers(void **state) {
        Fixture *f = *state;

        f->systemd->mute = true;
        call_fail(call_run(f, f->client, &impatient), BERTH_ERROR_TIMEOUT, "stage scope");
        assert_nothing_left(f);
}

/* Waits until systemd has been asked, and hangs. */
static Call *run_hanging(Fixture *f, sd_bus *client) {
        Call *call;

        f->systemd->hold_jobs = true;
        call = call_run(f, client, &asleep);
        fixture_until(f, fake_systemd_unit(f->systemd, UNIT));
        return call;
}

static void test_stopped_meanwhile(void **state) {
        Fixture *f = *state;
        Call *call = run_hanging(f, f->client), *stop;

        stop = call_begin(f, f->client, "a", "Stop", "t", UINT64_MAX);
        call_fail(call, BERTH_ERROR_CANCELLED, "container a");
        call_succeed(stop);
        assert_int_equal(fake_systemd_count(f->systemd, "StopUnit " UNIT), 1);
        assert_nothing_left(f);
}

static void test_removed_meanwhile(void **state) {
        Fixture *f = *state;
        Call *start, *removal;

        call_succeed(call_create(f, f->client, &asleep));
        f->systemd->hold_jobs = true;
        start = call_start(f, f->client, &asleep);
        fixture_until(f, fake_systemd_unit(f->systemd, UNIT));
        call_fail(call_begin(f, f->client, "a", "Remove", "b", 0), BERTH_ERROR_ALREADY_RUNNING, "starting");
        removal = call_begin(f, f->client, "a", "Remove", "b", 1);
        call_fail(start, BERTH_ERROR_CANCELLED, "container a");
        call_succeed(removal);
        assert_nothing_left(f);
}

static void test_client_leaves_meanwhile(void **state) {
        Fixture *f = *state;
        sd_bus *client = client_connect(f);
        Call *call = run_hanging(f, client);
        FakeUnit *unit = fake_systemd_unit(f->systemd, UNIT);
        _cleanup_fd_ int pidfd = fd_dup(unit->pidfd);

        (void) call_free(call);
        (void) client_close(client);
        fixture_until(f, readable(pidfd));
        fixture_until(f, !container_exists(f, "a"));
        assert_int_equal(fake_systemd_count(f->systemd, "StopUnit " UNIT), 1);
        assert_nothing_left(f);
}

/* systemd would keep an empty scope for ever when its process has ended before it was attached. */
static void test_process_dies_before_the_job_is_done(void **state) {
        Fixture *f = *state;
        Call *call = run_hanging(f, f->client);

        assert_int_equal(kill(fake_systemd_unit(f->systemd, UNIT)->pid, SIGKILL), 0);
        call_fail(call, BERTH_ERROR_LAUNCH_FAILED, "the starting process was killed");
        assert_int_equal(fake_systemd_count(f->systemd, "StopUnit " UNIT), 1);
        assert_null(fake_systemd_unit(f->systemd, UNIT));
        assert_nothing_left(f);
}

/* Nothing at all from systemd: the caller is answered all the same, and berthd goes on. */
static void test_stop_is_not_answered(void **state) {
        Fixture *f = *state;
        Call *call = run_hanging(f, f->client);

        f->systemd->mute_stop = true;
        call_succeed(call_begin(f, f->client, "a", "Stop", "t", 0));
        call_fail(call, BERTH_ERROR_CANCELLED, "container a");
        fixture_until(f, service_said(f, "systemd has not stopped " UNIT " yet"));
        fake_systemd_release(f->systemd, "done");
        f->systemd->mute_stop = false;
        assert_nothing_left(f);
}

static void test_systemd_disappears(void **state) {
        Fixture *f = *state;
        Call *call;

        f->systemd->hold_jobs = true;
        call = call_run(f, f->client, &impatient);
        fixture_until(f, fake_systemd_unit(f->systemd, UNIT));
        f->systemd = fake_systemd_free(f->systemd);
        call_fail(call, BERTH_ERROR_TIMEOUT, "stage scope");
        call_fail(call_run(f, f->client, &asleep), BERTH_ERROR_LAUNCH_FAILED, "scope");
        assert_false(container_exists(f, "a"));

        /* It comes back, under another unique name. */
        f->systemd = fake_systemd_new(f->event, f->address, 252);
        assert_nothing_left(f);
}

static int run(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
        const struct CMUnitTest tests[] = {
                TEST(test_job_fails),
                TEST(test_failed_stage),
                TEST(test_refused),
                TEST(test_unit_exists_once),
                TEST(test_unit_exists_for_ever),
                TEST(test_job_never_ends),
                TEST(test_never_answers),
                TEST(test_stopped_meanwhile),
                TEST(test_removed_meanwhile),
                TEST(test_client_leaves_meanwhile),
                TEST(test_process_dies_before_the_job_is_done),
                TEST(test_stop_is_not_answered),
                TEST(test_systemd_disappears),
        };

        return cmocka_run_group_tests_name("faults", tests, NULL, NULL);
}

int main(void) {
        return fixture_main(run);
}
