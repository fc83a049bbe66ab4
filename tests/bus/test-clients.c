/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Clients on a bus: who they are is asked of the bus, calls keep their order meanwhile, and what they started goes as
 * they said when they go. */
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <setjmp.h>

#include <cmocka.h>

#include "interfaces/names.h"
#include "tests/bus/fixture.h"
#include "util/cleanup.h"

#define STRANGER 65534 /* dbus-daemon takes only users that are in passwd */
#define N_ROUNDS 10

/* The first calls of a client that nobody has seen, all in one go. */
static void test_pipelined_calls_keep_their_order(void **state) {
        const TestSpec spec = { .name = "a", .script = "sleep 1000", .terminal = true };
        static const char *const wanted[] = {
                NULL,                          /* CreateContainer */
                BERTH_ERROR_NAME_IN_USE,       /* CreateContainer */
                NULL,                          /* Resize */
                BERTH_ERROR_NOT_RUNNING,       /* Signal */
                NULL,                          /* Remove */
                BERTH_ERROR_NO_SUCH_CONTAINER, /* GetContainer */
        };
        Call *calls[N_ROUNDS * ELEMENTSOF(wanted)];
        Fixture *f = *state;
        sd_bus *client = client_connect(f);
        size_t n = 0;

        for (unsigned i = 0; i < N_ROUNDS; i++) {
                calls[n++] = call_create(f, client, &spec);
                calls[n++] = call_create(f, client, &spec);
                calls[n++] = call_begin(f, client, "a", "Resize", "qq", 10, 20);
                calls[n++] = call_begin(f, client, "a", "Signal", "i", SIGTERM);
                calls[n++] = call_begin(f, client, "a", "Remove", "b", 0);
                calls[n++] = call_begin(f, client, NULL, "GetContainer", "s", "a");
        }
        for (size_t i = 0; i < n; i++) {
                const char *error = call_wait(calls[i]), *want = wanted[i % ELEMENTSOF(wanted)];

                if (!error != !want || (error && strcmp(error, want) != 0))
                        fail_msg("call %zu: %s instead of %s", i, error ?: "success", want ?: "success");
                assert_int_equal(calls[i]->number, i + 1);
                calls[i] = call_free(calls[i]);
        }
        (void) client_close(client);
}

/* A start and what follows it, sent before anything was answered. */
static void test_pipelined_start(void **state) {
        const TestSpec spec = { .name = "a", .script = "stty size; exit 4", .terminal = true };
        Fixture *f = *state;
        sd_bus *client = client_connect(f);
        char buffer[64] = "";
        Call *calls[5];
        int master;

        calls[0] = call_create(f, client, &spec);
        calls[1] = call_begin(f, client, "a", "Resize", "qq", 43, 132);
        calls[2] = call_start(f, client, &spec);
        calls[3] = call_start(f, client, &spec);
        calls[4] = call_begin(f, client, "a", "Wait", "");
        call_succeed(calls[0]);
        call_succeed(calls[1]);
        call_fail(calls[3], BERTH_ERROR_ALREADY_RUNNING, "starting");
        assert_null(call_wait(calls[2]));
        assert_true(sd_bus_message_read(calls[2]->reply, "a{sh}", 1, NULL, &master) > 0);
        fixture_until(f, readable(master));
        assert_true(read(master, buffer, sizeof(buffer) - 1) > 0);
        assert_string_equal(buffer, "43 132\r\n");
        call_succeed(calls[4]);
        (void) call_free(calls[2]);
        call_succeed(call_begin(f, f->client, "a", "Remove", "b", 0));
        (void) client_close(client);
}

static bool gone_from_bus(Fixture *f, const char *name) {
        _cleanup_bus_message_ sd_bus_message *reply = NULL;
        int owned = 1;

        assert_true(sd_bus_call_method(f->client, "org.freedesktop.DBus", "/org/freedesktop/DBus",
                                       "org.freedesktop.DBus", "NameHasOwner", NULL, &reply, "s",
                                       name) >= 0);
        assert_true(sd_bus_message_read(reply, "b", &owned) > 0);
        return !owned;
}

/* A client that has left before the bus could say who it was starts nothing. */
static void test_gone_before_it_was_known(void **state) {
        _cleanup_free_ char *name = NULL;
        Fixture *f = *state;
        const char *unique;
        sd_bus *client;
        Call *call;

        client = client_connect(f);
        assert_true(sd_bus_get_unique_name(client, &unique) >= 0);
        name = strdup(unique);
        assert_int_equal(kill(f->service.pid, SIGSTOP), 0);
        call = call_create(f, client, &(TestSpec) { .name = "a", .script = "exit 0" });
        assert_true(sd_bus_flush(client) >= 0);
        (void) call_free(call);
        (void) client_close(client);
        fixture_until(f, gone_from_bus(f, name));
        assert_int_equal(kill(f->service.pid, SIGCONT), 0);
        assert_false(container_exists(f, "a"));
        assert_null(f->signals);
}

/* A real process, killed while its container starts. */
static void test_killed_during_start(void **state) {
        Fixture *f = *state;
        _cleanup_fd_ int pidfd = -EBADF;
        static Program busctl;

        f->systemd->hold_jobs = true;
        program_start(f, &busctl,
                      (const char *[]) { "busctl", "call", BERTH_BUS_NAME, BERTH_PATH,
                                         BERTH_INTERFACE_MANAGER, "RunContainer", "sa{sv}a{sv}", "a", "2",
                                         "RootDirectory", "s", f->root, "Command", "as", "2", "sleep",
                                         "1000", "0", NULL });
        fixture_until(f, fake_systemd_unit(f->systemd, "berth-a.scope"));
        pidfd = fd_dup(fake_systemd_unit(f->systemd, "berth-a.scope")->pidfd);
        assert_int_equal(kill(busctl.pid, SIGKILL), 0);
        fixture_until(f, readable(pidfd));
        fixture_until(f, !container_exists(f, "a"));
        fixture_until(f, busctl.ended);
        program_done(&busctl);
        assert_null(strstr(f->signals, "Started"));
}

/* Whoever started it goes; with `kill` it is stopped, without it goes on. */
static void test_on_disconnect(void **state) {
        static const char script[] = AT_TERM("exit 6");
        Fixture *f = *state;
        sd_bus *client = client_connect(f);

        call_succeed(call_run(f, client,
                              &(TestSpec) { .name = "kill", .script = script, .on_disconnect = "kill" }));
        container_ready(f);
        call_succeed(call_run(f, client, &(TestSpec) { .name = "keep", .script = script }));
        (void) client_close(client);
        container_wait(f, "kill", CLD_EXITED, 6, "exit-code");
        {
                _cleanup_free_ char *now = container_property(f, "keep", "State");

                assert_string_equal(now, "running");
        }
        call_succeed(call_begin(f, f->client, "kill", "Remove", "b", 0));
        call_succeed(call_begin(f, f->client, "keep", "Remove", "b", 1));
}

/* A client's waiting calls go with it, and nothing else does. */
static void test_gone_while_waiting(void **state) {
        Fixture *f = *state;
        sd_bus *client = client_connect(f);
        Call *wait, *other;

        call_succeed(call_run(f, f->client, &(TestSpec) { .name = "a", .script = AT_TERM("exit 2") }));
        container_ready(f);
        wait = call_begin(f, client, "a", "Wait", "");
        other = call_begin(f, f->client, "a", "Wait", "");
        call_succeed(call_begin(f, client, NULL, "GetContainer", "s", "a"));
        (void) call_free(wait);
        (void) client_close(client);
        call_succeed(call_begin(f, f->client, "a", "Stop", "t", UINT64_MAX));
        call_succeed(other);
        call_succeed(call_begin(f, f->client, "a", "Remove", "b", 0));
}

/* ---- others --------------------------------------------------------------------------------------------------- */

/* 0: AccessDenied; else the number of the attempt that was not, from 1. */
static int try_all(sd_bus *bus, void *userdata) {
        static const char container[] = BERTH_CONTAINER_PREFIX "/a";
        const struct {
                const char *path, *interface, *member, *types;
        } attempts[] = {
                { BERTH_PATH, BERTH_INTERFACE_MANAGER, "ListContainers", "" },
                { BERTH_PATH, BERTH_INTERFACE_MANAGER, "GetContainer", "s" },
                { container, BERTH_INTERFACE_CONTAINER, "Start", "a" },
                { container, BERTH_INTERFACE_CONTAINER, "Stop", "t" },
                { container, BERTH_INTERFACE_CONTAINER, "Wait", "" },
                { container, BERTH_INTERFACE_CONTAINER, "Remove", "b" },
                { container, BERTH_INTERFACE_CONTAINER, "Signal", "i" },
                { container, BERTH_INTERFACE_CONTAINER, "Resize", "qq" },
        };

        for (size_t i = 0; i < ELEMENTSOF(attempts); i++) {
                _cleanup_bus_error_ sd_bus_error error = SD_BUS_ERROR_NULL;
                _cleanup_bus_message_ sd_bus_message *m = NULL;
                int r;

                if (sd_bus_message_new_method_call(bus, &m, BERTH_BUS_NAME, attempts[i].path,
                                                   attempts[i].interface, attempts[i].member) < 0)
                        return 100;
                switch (attempts[i].types[0]) {
                case 's':
                        r = sd_bus_message_append(m, "s", "a");
                        break;
                case 'a':
                        r = sd_bus_message_append(m, "a{sv}", 0);
                        break;
                case 't':
                        r = sd_bus_message_append(m, "t", (uint64_t) 0);
                        break;
                case 'b':
                case 'i':
                        r = sd_bus_message_append(m, attempts[i].types, 9);
                        break;
                case 'q':
                        r = sd_bus_message_append(m, "qq", 1, 1);
                        break;
                default:
                        r = 0;
                }
                if (r < 0)
                        return 100;
                if (sd_bus_call(bus, m, 0, &error, NULL) >= 0 ||
                    !sd_bus_error_has_name(&error, BERTH_ERROR_ACCESS_DENIED))
                        return (int) i + 1;
        }
        return 0;
}

static int try_run(sd_bus *bus, void *userdata) {
        _cleanup_bus_error_ sd_bus_error error = SD_BUS_ERROR_NULL;
        Fixture *f = userdata;

        if (sd_bus_call_method(bus, BERTH_BUS_NAME, BERTH_PATH, BERTH_INTERFACE_MANAGER, "RunContainer",
                               &error, NULL, "sa{sv}a{sv}", "b", 2, "RootDirectory", "s", f->root, "Command",
                               "as", 1, "/bin/true", 0) >= 0)
                return 1;
        return sd_bus_error_has_name(&error, BERTH_ERROR_ACCESS_DENIED) ? 0 : 2;
}

static void test_another_user_is_refused(void **state) {
        _cleanup_free_ char *now = NULL;
        Fixture *f = *state;

        call_succeed(call_run(f, f->client, &(TestSpec) { .name = "a", .script = "sleep 1000" }));
        assert_int_equal(client_as_user(f, STRANGER, try_all, f), 0);
        assert_int_equal(client_as_user(f, STRANGER, try_run, f), 0);
        now = container_property(f, "a", "State");
        assert_string_equal(now, "running");
        assert_false(container_exists(f, "b"));
        call_succeed(call_begin(f, f->client, "a", "Remove", "b", 1));
}

/* ---- signals that somebody else made up ------------------------------------------------------------------------- */

static int send_forged(sd_bus *bus, const char *destination, const char *path, const char *interface,
                       const char *member, const char *a, const char *b, const char *c) {
        _cleanup_bus_message_ sd_bus_message *m = NULL;

        if (sd_bus_message_new_signal(bus, &m, path, interface, member) < 0 ||
            sd_bus_message_set_destination(m, destination) < 0)
                return -1;
        if (strcmp(member, "JobRemoved") == 0 && sd_bus_message_append(m, "u", 1) < 0)
                return -1;
        if (a && sd_bus_message_append(m, strcmp(member, "JobRemoved") == 0 ? "oss" : "sss", a, b, c) < 0)
                return -1;
        return sd_bus_send(bus, m, NULL);
}

typedef struct Forgery {
        const char *service, *job, *client;
} Forgery;

static int forge(sd_bus *bus, void *userdata) {
        const Forgery *forgery = userdata;

        if (send_forged(bus, forgery->service, "/org/freedesktop/systemd1",
                        "org.freedesktop.systemd1.Manager", "JobRemoved", forgery->job, "berth-a.scope",
                        "done") < 0 ||
            send_forged(bus, forgery->service, "/org/freedesktop/systemd1/unit/berth_2drunning_2escope",
                        "org.freedesktop.systemd1.Scope", "RequestStop", NULL, NULL, NULL) < 0 ||
            send_forged(bus, forgery->service, "/org/freedesktop/DBus", "org.freedesktop.DBus",
                        "NameOwnerChanged", forgery->client, forgery->client, "") < 0)
                return 1;
        return 0;
}

/* Everybody can send a signal straight to the service: neither does a job end by it, nor a container, nor a client. */
static void test_forged_signals(void **state) {
        _cleanup_fd_ int output = -EBADF, writer = -EBADF;
        Fixture *f = *state;
        const char *client;
        Forgery forgery;
        FakeUnit *unit;
        Call *call;

        assert_true(sd_bus_get_unique_name(f->client, &client) >= 0);
        call_succeed(
                call_run(f, f->client,
                         &(TestSpec) { .name = "running", .script = "sleep 1000", .timeout_stop_usec = 1 }));
        make_pipe(&output, &writer);
        f->systemd->hold_jobs = true;
        call = call_run(f, f->client, &(TestSpec) { .name = "a", .script = "sleep 1000", .output = writer });
        writer = fd_close(writer);
        fixture_until(f, fake_systemd_unit(f->systemd, "berth-a.scope"));
        unit = fake_systemd_unit(f->systemd, "berth-a.scope");

        forgery = (Forgery) { f->systemd->service, unit->job, client };
        assert_int_equal(client_as_user(f, STRANGER, forge, &forgery), 0);
        /* They have all been read once this is answered. */
        assert_true(container_exists(f, "a"));
        {
                _cleanup_free_ char *a = container_property(f, "a", "State"),
                                    *running = container_property(f, "running", "State");

                assert_string_equal(a, "starting");
                assert_string_equal(running, "running");
        }
        assert_null(call->reply);

        fake_systemd_release(f->systemd, "done");
        call_succeed(call);
        call_succeed(call_begin(f, f->client, "a", "Remove", "b", 1));
        call_succeed(call_begin(f, f->client, "running", "Remove", "b", 1));
}

static int run(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
        const struct CMUnitTest tests[] = {
                TEST(test_pipelined_calls_keep_their_order),
                TEST(test_pipelined_start),
                TEST(test_gone_before_it_was_known),
                TEST(test_killed_during_start),
                TEST(test_on_disconnect),
                TEST(test_gone_while_waiting),
                TEST(test_another_user_is_refused),
                TEST(test_forged_signals),
        };

        return cmocka_run_group_tests_name("clients", tests, NULL, NULL);
}

int main(void) {
        return fixture_main(run);
}
