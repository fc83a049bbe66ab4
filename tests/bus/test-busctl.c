/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* busctl(1) and nothing else is enough for scripts: it starts, signals, asks, waits and watches. Case 74, on a bus. */
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <setjmp.h>

#include <cmocka.h>

#include "interfaces/names.h"
#include "tests/bus/fixture.h"
#include "util/cleanup.h"

#define CONTAINER_PATH BERTH_CONTAINER_PREFIX "/demo"

#define MANAGER BERTH_BUS_NAME, BERTH_PATH, BERTH_INTERFACE_MANAGER
#define CONTAINER BERTH_BUS_NAME, CONTAINER_PATH, BERTH_INTERFACE_CONTAINER

/* Runs `busctl ARGUMENT...`, which succeeds and says exactly this. */
#define busctl(f, wanted, ...)                                                                \
        do {                                                                                  \
                int _status;                                                                  \
                _cleanup_free_ char *_said = program_run(                                     \
                        f, &_status, (const char *[]) { "busctl", "--", __VA_ARGS__, NULL }); \
                if (_status != 0)                                                             \
                        fail_msg("busctl exited with %d: %s", _status, _said);                \
                assert_string_equal(_said, wanted);                                           \
        } while (0)

static void run_demo(Fixture *f, const char *program, const char *argument) {
        busctl(f, "oa{sh} \"" CONTAINER_PATH "\" 0\n", "call", MANAGER, "RunContainer", "sa{sv}a{sv}",
               "demo", "2", "RootDirectory", "s", f->root, "Command", "as", "2", program, argument, "0");
}

static void test_74_run_signal_and_ask(void **state) {
        Fixture *f = *state;

        run_demo(f, "/bin/sleep", "1000");
        busctl(f, "s \"running\"\n", "get-property", CONTAINER, "State");
        busctl(f, "s \"berth-demo.scope\"\n", "get-property", CONTAINER, "Unit");
        busctl(f, "o \"" CONTAINER_PATH "\"\n", "call", MANAGER, "GetContainer", "s", "demo");
        busctl(f, "", "call", CONTAINER, "Signal", "i", "9");
        busctl(f, "iis 2 9 \"signal\"\n", "call", CONTAINER, "Wait");
        busctl(f, "i 2\ni 9\n", "get-property", CONTAINER, "ExitCode", "ExitStatus");
        busctl(f, "", "call", CONTAINER, "Remove", "b", "false");
        busctl(f, "a(sssuo) 0\n", "call", MANAGER, "ListContainers");
}

/* A whole life by hand: made, started, stopped, started again. */
static void test_74_create_start_stop(void **state) {
        Fixture *f = *state;

        busctl(f, "o \"" CONTAINER_PATH "\"\n", "call", MANAGER, "CreateContainer", "sa{sv}", "demo", "4",
               "RootDirectory", "s", f->root, "Command", "as", "3", "/bin/sh", "-c", AT_TERM("exit 42"),
               "Annotations", "a{ss}", "1", "key", "value", "TimeoutStopUSec", "t", "20000000");
        for (unsigned i = 0; i < 2; i++) {
                busctl(f, "a{sh} 0\n", "call", CONTAINER, "Start", "a{sv}", "0");
                container_ready(f);
                busctl(f, "", "call", CONTAINER, "Stop", "t", "18446744073709551615");
                busctl(f, "i 1\ni 42\ns \"exit-code\"\n", "get-property", CONTAINER, "ExitCode",
                       "ExitStatus", "Result");
        }
        busctl(f, "a{ss} 1 \"key\" \"value\"\n", "get-property", CONTAINER, "Annotations");
        busctl(f, "", "call", CONTAINER, "Remove", "b", "true");
}

/* busctl leaves at once, and with it the only one who held the terminal. */
static void test_74_terminal_without_a_holder(void **state) {
        Fixture *f = *state;
        _cleanup_free_ char *said = NULL;
        int status;

        said = program_run(f, &status,
                           (const char *[]) { "busctl",
                                              "call",
                                              MANAGER,
                                              "RunContainer",
                                              "sa{sv}a{sv}",
                                              "demo",
                                              "4",
                                              "RootDirectory",
                                              "s",
                                              f->root,
                                              "Command",
                                              "as",
                                              "2",
                                              "/bin/sleep",
                                              "1000",
                                              "Terminal",
                                              "b",
                                              "true",
                                              "TimeoutStopUSec",
                                              "t",
                                              "1000",
                                              "1",
                                              "OnDisconnect",
                                              "s",
                                              "kill",
                                              NULL });
        assert_int_equal(status, 0);
        assert_non_null(strstr(said, "oa{sh} \"" CONTAINER_PATH "\" 1 \"terminal\""));
        busctl(f, "iis 2 9 \"timeout\"\n", "call", CONTAINER, "Wait");
        busctl(f, "", "call", CONTAINER, "Remove", "b", "false");
}

static void test_74_errors_are_told(void **state) {
        Fixture *f = *state;
        _cleanup_free_ char *unknown = NULL, *missing = NULL;
        int status;

        unknown = program_run(f, &status,
                              (const char *[]) { "busctl", "call", MANAGER, "RunContainer", "sa{sv}a{sv}",
                                                 "demo", "1", "RootDirectroy", "s", f->root, "0", NULL });
        assert_int_equal(status, 1);
        assert_non_null(strstr(unknown, "RootDirectroy"));
        missing = program_run(f, &status,
                              (const char *[]) { "busctl", "call", MANAGER, "RunContainer", "sa{sv}a{sv}",
                                                 "demo", "2", "RootDirectory", "s", f->root, "Command", "as",
                                                 "1", "/bin/shh", "0", NULL });
        assert_int_equal(status, 1);
        assert_non_null(strstr(missing, "container demo: exec /bin/shh: No such file or directory"));
        busctl(f, "a(sssuo) 0\n", "call", MANAGER, "ListContainers");
}

static void test_74_monitor(void **state) {
        Fixture *f = *state;
        static Program monitor;

        program_start(f, &monitor,
                      (const char *[]) { "busctl", "monitor", "--json=short", BERTH_BUS_NAME, NULL });
        fixture_until(f, monitor.text && strstr(monitor.text, "Monitoring bus message stream."));
        run_demo(f, "/bin/echo", "x");
        busctl(f, "iis 1 0 \"success\"\n", "call", CONTAINER, "Wait");
        busctl(f, "", "call", CONTAINER, "Remove", "b", "false");
        fixture_until(f, strstr(monitor.text, "\"ContainerRemoved\""));
        assert_non_null(strstr(monitor.text, "\"member\":\"ContainerAdded\""));
        assert_non_null(strstr(monitor.text, "\"member\":\"Started\""));
        assert_non_null(
                strstr(monitor.text,
                       "\"member\":\"Exited\",\"payload\":{\"type\":\"iis\",\"data\":[1,0,\"success\"]}"));
        assert_non_null(strstr(monitor.text, "\"ExitStatus\":{\"type\":\"i\",\"data\":0}"));
        program_done(&monitor);
}

/* `busctl introspect` and `tree` find everything. */
static void test_74_tree(void **state) {
        _cleanup_free_ char *members = NULL, *tree = NULL;
        Fixture *f = *state;
        int status;

        run_demo(f, "/bin/sleep", "1000");
        tree = program_run(f, &status,
                           (const char *[]) { "busctl", "tree", "--list", BERTH_BUS_NAME, NULL });
        assert_int_equal(status, 0);
        assert_non_null(strstr(tree, CONTAINER_PATH "\n"));
        members = program_run(f, &status, (const char *[]) { "busctl", "introspect", CONTAINER, NULL });
        assert_int_equal(status, 0);
        assert_non_null(strstr(members, ".Wait"));
        assert_non_null(strstr(members, ".ExitStatus"));
        assert_non_null(strstr(members, "\"berth-demo.scope\""));
        busctl(f, "", "call", CONTAINER, "Remove", "b", "true");
}

static int run(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
        const struct CMUnitTest tests[] = {
                TEST(test_74_run_signal_and_ask),
                TEST(test_74_create_start_stop),
                TEST(test_74_terminal_without_a_holder),
                TEST(test_74_errors_are_told),
                TEST(test_74_monitor),
                TEST(test_74_tree),
        };

        return cmocka_run_group_tests_name("busctl", tests, NULL, NULL);
}

int main(void) {
        return fixture_main(run);
}
