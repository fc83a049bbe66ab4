/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The service comes, goes when it is idle or told to, and takes its containers with it. */
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <setjmp.h>

#include <cmocka.h>

#include "interfaces/names.h"
#include "tests/bus/fixture.h"
#include "tests/system/launch-fixture.h"
#include "util/cleanup.h"

static const TestSpec hears = { .name = "hears", .script = AT_TERM("echo x >/data/heard; exit 3") };
static const TestSpec deaf = { .name = "deaf", .script = "sleep 1000", .timeout_stop_usec = 100000 };
static const TestSpec stubborn = { .name = "stubborn",
                                   .script = "sleep 1000",
                                   .timeout_stop_usec = UINT64_MAX };

static bool heard(const Fixture *f) {
        return access(text("%s/data/heard", f->root), F_OK) == 0;
}

static bool has_owner(Fixture *f) {
        _cleanup_bus_message_ sd_bus_message *reply = NULL;
        int owned = 0;

        assert_true(sd_bus_call_method(f->client, "org.freedesktop.DBus", "/org/freedesktop/DBus",
                                       "org.freedesktop.DBus", "NameHasOwner", NULL, &reply, "s",
                                       BERTH_BUS_NAME) >= 0);
        assert_true(sd_bus_message_read(reply, "b", &owned) > 0);
        return owned;
}

static void assert_exited(Fixture *f, int status) {
        fixture_until(f, f->service.ended);
        assert_int_equal(f->service.status.si_code, CLD_EXITED);
        assert_int_equal(f->service.status.si_status, status);
}

/* ---- idleness ------------------------------------------------------------------------------------------------- */

static void test_ends_when_idle(void **state) {
        Fixture *f = *state;

        service_start(f, "--idle-timeout=1");
        assert_true(has_owner(f));
        assert_null(strstr(f->notified, "STOPPING=1"));
        assert_exited(f, 0);
        assert_false(has_owner(f));
        /* systemd is told before the name goes, and has read it. */
        fixture_until(f, strstr(f->notified, "BARRIER=1"));
        assert_string_equal(strstr(f->notified, "STOPPING=1"), "STOPPING=1\nBARRIER=1\n");
        assert_string_equal(f->service.text ?: "", "");
}

static void test_stays_with_a_container(void **state) {
        Fixture *f = *state;
        uint64_t begin, now;

        service_start(f, "--idle-timeout=1");
        call_succeed(call_create(f, f->client, &hears));
        assert_true(sd_event_now(f->event, CLOCK_MONOTONIC, &begin) >= 0);
        now = begin;
        /* Longer than the idle time: there is no other sign of a service that does nothing. */
        fixture_until(f, f->service.ended || (sd_event_now(f->event, CLOCK_MONOTONIC, &now) >= 0 &&
                                              now > begin + 1500000));
        assert_false(f->service.ended);
        assert_null(strstr(f->notified, "STOPPING=1"));
        call_succeed(call_begin(f, f->client, "hears", "Remove", "b", 0));
        assert_exited(f, 0);
}

static void test_infinite_idleness_is_none(void **state) {
        Fixture *f = *state;

        service_start(f, "--idle-timeout=infinity");
        assert_false(container_exists(f, "hears"));
        service_stop(f);
}

/* Between the word to systemd and the release of the name: all that reaches the service is answered by it. */
static void test_calls_that_race_with_the_end(void **state) {
        Fixture *f = *state;
        sd_bus *unknown = client_connect(f);
        Call *list, *get, *create, *first, *second;

        f->hold_barrier = true;
        service_start(f, "--idle-timeout=0");
        fixture_until(f, f->barrier >= 0);
        list = call_begin(f, f->client, NULL, "ListContainers", "");
        get = call_begin(f, f->client, NULL, "GetContainer", "s", "x");
        create = call_create(f, f->client, &hears);
        /* Who this is must be asked of the bus first. */
        first = call_begin(f, unknown, NULL, "ListContainers", "");
        second = call_begin(f, unknown, NULL, "GetContainer", "s", "x");
        assert_true(sd_bus_flush(f->client) >= 0);
        assert_true(sd_bus_flush(unknown) >= 0);
        /* What the bus has delivered by now, it has delivered to the name's owner. */
        assert_true(has_owner(f));
        f->barrier = fd_close(f->barrier);

        call_succeed(list);
        call_fail(get, BERTH_ERROR_NO_SUCH_CONTAINER, "x");
        call_fail(create, BERTH_ERROR_CANCELLED, "call again");
        call_succeed(first);
        call_fail(second, BERTH_ERROR_NO_SUCH_CONTAINER, "x");
        assert_exited(f, 0);
        (void) client_close(unknown);
}

/* One call after the other while the service ends: each has its answer, or the bus says that nobody is there. */
static void test_calls_until_nobody_is_there(void **state) {
        Fixture *f = *state;
        unsigned answered = 0;

        for (unsigned i = 0; i < 20; i++) {
                service_start(f, "--idle-timeout=0");
                for (bool there = true; there;) {
                        Call *call = call_begin(f, f->client, NULL, "ListContainers", "");
                        const char *error = call_wait(call);

                        answered += !error;
                        if (error) {
                                if (strcmp(error, SD_BUS_ERROR_SERVICE_UNKNOWN) != 0 &&
                                    strcmp(error, SD_BUS_ERROR_NAME_HAS_NO_OWNER) != 0)
                                        fail_msg("%s: %s", error, call_error_message(call));
                                there = false;
                        }
                        (void) call_free(call);
                }
                assert_exited(f, 0);
        }
        print_message("%u calls were answered\n", answered);
}

/* ---- being told to end ---------------------------------------------------------------------------------------- */

static void test_sigterm_stops_all(void **state) {
        Fixture *f = *state;
        Call *wait, *starting;

        call_succeed(call_run(f, f->client, &hears));
        container_ready(f);
        call_succeed(call_run(f, f->client, &deaf));
        call_succeed(call_create(f, f->client, &(TestSpec) { .name = "created", .script = "exit 0" }));
        call_succeed(call_run(f, f->client, &(TestSpec) { .name = "exited", .script = "exit 0" }));
        container_wait(f, "exited", CLD_EXITED, 0, "success");
        wait = call_begin(f, f->client, "deaf", "Wait", "");
        f->systemd->hold_jobs = true;
        starting = call_run(f, f->client, &(TestSpec) { .name = "starting", .script = "exit 0" });
        fixture_until(f, fake_systemd_unit(f->systemd, "berth-starting.scope"));

        service_stop(f);
        call_fail(starting, BERTH_ERROR_CANCELLED, "starting");
        call_succeed(wait);
        assert_true(heard(f));
        fixture_until(f, strstr(f->signals, "Exited hears 1 3 exit-code\n"));
        fixture_until(f, strstr(f->signals, "Exited deaf 2 9 timeout\n"));
        fixture_until(f, strstr(f->signals, "ContainerRemoved berth1 created "));
        fixture_until(f, strstr(f->signals, "ContainerRemoved berth1 exited "));
        fixture_until(f, strstr(f->signals, "ContainerRemoved berth1 starting "));
        fixture_until(f, strstr(f->notified, "STOPPING=1"));
        assert_int_equal(fake_systemd_count(f->systemd, "StopUnit berth-starting.scope"), 1);
        fixture_until(f, !has_owner(f));
}

static void test_second_sigterm_kills(void **state) {
        Fixture *f = *state;

        call_succeed(call_run(f, f->client, &stubborn));
        assert_int_equal(kill(f->service.pid, SIGTERM), 0);
        fixture_until(f, strstr(f->notified, "STOPPING=1"));
        call_fail(call_create(f, f->client, &hears), BERTH_ERROR_CANCELLED, "call again");
        service_stop(f);
        fixture_until(f, strstr(f->signals, "Exited stubborn 2 9 "));
}

static void test_bus_disappears(void **state) {
        Fixture *f = *state;
        Call *starting;

        call_succeed(call_run(f, f->client, &hears));
        container_ready(f);
        call_succeed(call_run(f, f->client, &deaf));
        f->systemd->hold_jobs = true;
        starting = call_run(f, f->client, &(TestSpec) { .name = "starting", .script = "exit 0" });
        fixture_until(f, fake_systemd_unit(f->systemd, "berth-starting.scope"));
        assert_int_equal(kill(f->bus.pid, SIGKILL), 0);
        assert_exited(f, 1);
        assert_true(heard(f));
        fixture_until(f, service_said(f, "The bus has gone"));
        (void) call_free(starting);
}

static void test_name_is_taken(void **state) {
        Fixture *f = *state;

        assert_true(sd_bus_request_name(f->client, BERTH_BUS_NAME, 0) >= 0);
        service_launch(f, NULL);
        assert_exited(f, 1);
        fixture_until(f, service_said(f, "Cannot have the name " BERTH_BUS_NAME));
        assert_null(strstr(f->notified ?: "", "READY=1"));
}

static void test_no_systemd(void **state) {
        Fixture *f = *state;

        f->systemd = fake_systemd_free(f->systemd);
        service_launch(f, NULL);
        assert_exited(f, 1);
        fixture_until(f, service_said(f, "Cannot talk to systemd"));
        assert_false(has_owner(f)); /* nor had it one before */
}

static int run(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
#define BARE(name) cmocka_unit_test_setup_teardown(name, fixture_setup_bare, fixture_teardown)
        const struct CMUnitTest tests[] = {
                BARE(test_ends_when_idle),
                BARE(test_stays_with_a_container),
                BARE(test_infinite_idleness_is_none),
                BARE(test_calls_that_race_with_the_end),
                BARE(test_calls_until_nobody_is_there),
                TEST(test_sigterm_stops_all),
                TEST(test_second_sigterm_kills),
                TEST(test_bus_disappears),
                BARE(test_name_is_taken),
                BARE(test_no_systemd),
        };

        return cmocka_run_group_tests_name("life", tests, NULL, NULL);
}

int main(void) {
        return fixture_main(run);
}
