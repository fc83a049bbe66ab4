/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Capture and CaptureContainer. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "interfaces/names.h"
#include "tests/system/direct-call.h"
#include "util/fd.h"

#define MIB (1U << 20)

typedef struct Captured {
        int code, status;
        char *output[2]; /* owned, NUL-terminated */
        size_t size[2];
} Captured;

static void captured_done(Captured *c) {
        free(c->output[0]);
        free(c->output[1]);
}
#define _cleanup_captured_ _cleanup_(captured_done)

static const char *run_sleeper(const Direct *d) {
        const Call init = { .command = WORDS("sleep", "1000"), .timeout_stop_usec = 100000 };

        return must_run(d, d->bus, "sleeper", &init, NULL);
}

static sd_bus_message *capture_new(sd_bus *bus, const char *container, const char *const *command) {
        sd_bus_message *m = NULL;

        assert_true(sd_bus_message_new_method_call(bus, &m, BERTH_BUS_NAME, container,
                                                   BERTH_INTERFACE_CONTAINER, "Capture") >= 0);
        assert_true(sd_bus_message_append_strv(m, (char **) command) >= 0);
        return m;
}

static void read_captured(sd_bus_message *reply, Captured *ret) {
        assert_true(sd_bus_message_has_signature(reply, "iiayay"));
        assert_true(sd_bus_message_read(reply, "ii", &ret->code, &ret->status) >= 0);
        for (size_t i = 0; i < 2; i++) {
                const void *data;

                assert_true(sd_bus_message_read_array(reply, 'y', &data, &ret->size[i]) >= 0);
                ret->output[i] = calloc(1, ret->size[i] + 1);
                assert_non_null(ret->output[i]);
                if (ret->size[i] > 0)
                        memcpy(ret->output[i], data, ret->size[i]);
        }
}

static void must_capture(const Direct *d, sd_bus_message *m, Captured *ret) {
        _cleanup_bus_message_ sd_bus_message *reply = NULL;
        _cleanup_bus_error_ sd_bus_error error = SD_BUS_ERROR_NULL;

        if (sd_bus_call(d->bus, m, 0, &error, &reply) < 0)
                fail_msg("%s: %s", error.name, error.message);
        read_captured(reply, ret);
}

static void must_not_capture(const Direct *d, sd_bus_message *m, const char *name, const char *word) {
        _cleanup_bus_error_ sd_bus_error error = SD_BUS_ERROR_NULL;

        assert_true(sd_bus_call(d->bus, m, 0, &error, NULL) < 0);
        assert_string_equal(error.name, name);
        if (!strstr(error.message, word))
                fail_msg("\"%s\" does not name %s", error.message, word);
}

/* Capture with options given as for sd_bus_message_append(). */
#define must_capture_sh(d, container, script, ret, ...)                                                 \
        do {                                                                                            \
                _cleanup_bus_message_ sd_bus_message *m = capture_new((d)->bus, container, SH(script)); \
                assert_true(sd_bus_message_append(m, "a{sv}", __VA_ARGS__) >= 0);                       \
                must_capture(d, m, ret);                                                                \
        } while (0)

#define refuse_sh(d, container, script, name, word, ...)                                                \
        do {                                                                                            \
                _cleanup_bus_message_ sd_bus_message *m = capture_new((d)->bus, container, SH(script)); \
                assert_true(sd_bus_message_append(m, "a{sv}", __VA_ARGS__) >= 0);                       \
                must_not_capture(d, m, name, word);                                                     \
        } while (0)

static void test_both_outputs_and_the_status(void **state) {
        _cleanup_captured_ Captured got = {}, killed = {};
        Direct *d = *state;
        const char *container = run_sleeper(d);

        must_capture_sh(d, container, "printf 'a\\0b'; echo wrong >&2; exit 7", &got, 0);
        assert_int_equal(got.code, CLD_EXITED);
        assert_int_equal(got.status, 7);
        assert_int_equal(got.size[0], 3);
        assert_memory_equal(got.output[0], "a\0b", 3);
        assert_string_equal(got.output[1], "wrong\n");
        must_capture_sh(d, container, "kill -9 $$", &killed, 0);
        assert_int_equal(killed.code, CLD_KILLED);
        assert_int_equal(killed.status, SIGKILL);
        assert_int_equal(killed.size[0] + killed.size[1], 0);
}

static void test_busctl_can_capture(void **state) {
        Direct *d = *state;
        const char *const *argv = WORDS("busctl", text("--address=unix:path=%s", d->socket), "call",
                                        BERTH_BUS_NAME, run_sleeper(d), BERTH_INTERFACE_CONTAINER, "Capture",
                                        "asa{sv}", "2", "echo", "hi", "0");
        _cleanup_free_ char *output = NULL;

        assert_int_equal(run_command(argv, &output), 0);
        assert_string_equal(output, "iiayay 1 0 3 104 105 10 0\n");
}

static void append_input(sd_bus_message *m, const void *data, size_t size) {
        assert_true(sd_bus_message_open_container(m, 'a', "{sv}") >= 0);
        assert_true(sd_bus_message_open_container(m, 'e', "sv") >= 0);
        assert_true(sd_bus_message_append(m, "s", "StandardInputData") >= 0);
        assert_true(sd_bus_message_open_container(m, 'v', "ay") >= 0);
        assert_true(sd_bus_message_append_array(m, 'y', data, size) >= 0);
        for (size_t i = 0; i < 3; i++)
                assert_true(sd_bus_message_close_container(m) >= 0);
}

/* More than pipes hold, both ways, up to the very limit; and input that nobody reads. */
static void test_input_comes_back_whole(void **state) {
        static const char *const programs[][2] = { { "cat", NULL }, { "true", NULL } };
        static const size_t sizes[] = { 0, 1, 4096, 65537, MIB };
        Direct *d = *state;
        const char *container = run_sleeper(d);
        char *data = malloc(MIB);

        assert_non_null(data);
        for (size_t i = 0; i < MIB; i++)
                data[i] = (char) (i * 7 % 251);
        for (size_t p = 0; p < 2; p++)
                for (size_t i = 0; i < ELEMENTSOF(sizes); i++) {
                        _cleanup_bus_message_ sd_bus_message *m = capture_new(d->bus, container,
                                                                              programs[p]);
                        _cleanup_captured_ Captured got = {};

                        append_input(m, data, sizes[i]);
                        must_capture(d, m, &got);
                        assert_int_equal(got.code, CLD_EXITED);
                        assert_int_equal(got.status, 0);
                        assert_int_equal(got.size[0], p == 0 ? sizes[i] : 0);
                        assert_memory_equal(got.output[0], data, got.size[0]);
                }
        free(data);
}

static void test_too_much_is_killed(void **state) {
        Direct *d = *state;
        const char *container = run_sleeper(d);
        _cleanup_captured_ Captured got = {};

        refuse_sh(d, container, "yes", BERTH_ERROR_OUTPUT_TOO_LARGE, "1048576", 0);
        refuse_sh(d, container, "yes >&2", BERTH_ERROR_OUTPUT_TOO_LARGE, "1048576", 0);
        refuse_sh(d, container, "head -c 1048577 /dev/zero", BERTH_ERROR_OUTPUT_TOO_LARGE, "1048576", 0);
        must_capture_sh(d, container, "head -c 1048576 /dev/zero; head -c 1048576 /dev/zero >&2", &got, 0);
        assert_int_equal(got.size[0], MIB);
        assert_int_equal(got.size[1], MIB);
}

static void test_a_background_job_delays_no_answer(void **state) {
        Direct *d = *state;
        const char *container = run_sleeper(d);
        uint64_t begin = now_usec();
        _cleanup_captured_ Captured got = {};

        must_capture_sh(d, container, "sleep 1000 & echo here", &got, 0);
        assert_string_equal(got.output[0], "here\n");
        assert_true(now_usec() - begin < 5000000);
}

static void test_timeout(void **state) {
        Direct *d = *state;
        const char *container = run_sleeper(d);
        uint64_t begin = now_usec();

        refuse_sh(d, container, "trap '' TERM; while :; do sleep 100; done", BERTH_ERROR_TIMEOUT,
                  "TimeoutUSec", 1, "TimeoutUSec", "t", UINT64_C(100000));
        refuse_sh(d, container, "exec sleep 100", BERTH_ERROR_TIMEOUT, "TimeoutUSec", 1, "TimeoutUSec", "t",
                  UINT64_C(0));
        assert_true(now_usec() - begin < 8000000);
}

static void test_refusals(void **state) {
        Direct *d = *state;
        const char *container = run_sleeper(d);
        _cleanup_bus_message_ sd_bus_message *missing = capture_new(d->bus, container, WORDS("/no/such")),
                                             *empty = capture_new(d->bus, container,
                                                                  (const char *[]) { NULL });

        assert_true(sd_bus_message_append(missing, "a{sv}", 0) >= 0);
        must_not_capture(d, missing, BERTH_ERROR_COMMAND_NOT_FOUND, "/no/such");
        assert_true(sd_bus_message_append(empty, "a{sv}", 0) >= 0);
        must_not_capture(d, empty, BERTH_ERROR_INVALID_SPEC, "Command");
        refuse_sh(d, container, "true", BERTH_ERROR_INVALID_ARGS, "Terminal", 1, "Terminal", "b", 1);
        refuse_sh(d, container, "true", BERTH_ERROR_INVALID_ARGS, "StandardOutput", 1, "StandardOutput", "s",
                  "null");
        refuse_sh(d, container, "true", BERTH_ERROR_INVALID_ARGS, "OnDisconnect", 1, "OnDisconnect", "s",
                  "keep");
        refuse_sh(d, container, "true", BERTH_ERROR_INVALID_ARGS, "Command", 1, "Command", "as", 1, "x");
        refuse_sh(d, container, "true", BERTH_ERROR_INVALID_SPEC, "Unknown key Foo", 1, "Foo", "s", "x");
}

static sd_bus_message *capture_container_new(const Direct *d, const char *name, const char *script) {
        sd_bus_message *m = NULL;

        assert_true(sd_bus_message_new_method_call(d->bus, &m, BERTH_BUS_NAME, BERTH_PATH,
                                                   BERTH_INTERFACE_MANAGER, "CaptureContainer") >= 0);
        assert_true(sd_bus_message_append(m, "sa{sv}", name, 2, "RootDirectory", "s", d->root, "Command",
                                          "as", 3, "sh", "-c", script) >= 0);
        return m;
}

static void test_a_container_in_one_call(void **state) {
        Direct *d = *state;

        for (unsigned i = 0; i < 20; i++) {
                _cleanup_bus_message_ sd_bus_message *m = capture_container_new(d, i % 2 ? "" : "one",
                                                                                "cat; echo $$; exit 3");
                _cleanup_captured_ Captured got = {};

                append_input(m, "in\n", 3);
                must_capture(d, m, &got);
                assert_int_equal(got.status, 3);
                assert_string_equal(got.output[0], "in\n1\n");
                assert_int_equal(count_containers(d->bus), 0);
        }
}

static void test_containers_that_fail_stay_no_longer(void **state) {
        Direct *d = *state;
        _cleanup_bus_message_ sd_bus_message *much = capture_container_new(d, "x", "yes"),
                                             *slow = capture_container_new(d, "x", "sleep 1000"),
                                             *none = capture_container_new(d, "x", "true"),
                                             *now = capture_container_new(d, "x", "true");

        assert_true(sd_bus_message_append(much, "a{sv}", 0) >= 0);
        must_not_capture(d, much, BERTH_ERROR_OUTPUT_TOO_LARGE, "x");
        assert_true(sd_bus_message_append(slow, "a{sv}", 1, "TimeoutUSec", "t", UINT64_C(200000)) >= 0);
        must_not_capture(d, slow, BERTH_ERROR_TIMEOUT, "TimeoutUSec");
        assert_true(sd_bus_message_append(none, "a{sv}", 1, "StandardInput", "s", "null") >= 0);
        must_not_capture(d, none, BERTH_ERROR_INVALID_ARGS, "StandardInput");
        assert_true(sd_bus_message_append(now, "a{sv}", 1, "TimeoutUSec", "t", UINT64_C(0)) >= 0);
        must_not_capture(d, now, BERTH_ERROR_TIMEOUT, "TimeoutUSec");
        assert_int_equal(count_containers(d->bus), 0);
        direct_expect_idle(d);
}

/* The program of a client that goes away is gone too, in a container that stays and in one of its own. */
static void test_clients_that_go_away(void **state) {
        Direct *d = *state;
        const char *container = run_sleeper(d);
        size_t children = direct_count_children(d), n_fds = direct_count_fds(d);

        for (unsigned i = 0; i < 2; i++) {
                _cleanup_bus_message_ sd_bus_message *m = NULL;
                sd_bus *own = direct_connect_own(d);
                uint64_t deadline = now_usec() + 10000000;

                if (i == 0)
                        m = capture_new(own, container, WORDS("sleep", "1000"));
                else {
                        assert_true(sd_bus_message_new_method_call(own, &m, BERTH_BUS_NAME, BERTH_PATH,
                                                                   BERTH_INTERFACE_MANAGER,
                                                                   "CaptureContainer") >= 0);
                        assert_true(sd_bus_message_append(m, "sa{sv}", "own", 2, "RootDirectory", "s",
                                                          d->root, "Command", "as", 2, "sleep",
                                                          "1000") >= 0);
                }
                assert_true(sd_bus_message_append(m, "a{sv}", 0) >= 0);
                assert_true(sd_bus_send(own, m, NULL) >= 0);
                assert_true(sd_bus_flush(own) >= 0);
                while (direct_count_children(d) <= children && now_usec() < deadline)
                        (void) count_containers(d->bus);
                assert_true(direct_count_children(d) > children);
                sd_bus_close_unref(own);
                deadline = now_usec() + 10000000;
                while ((direct_count_children(d) > children || count_containers(d->bus) > 1) &&
                       now_usec() < deadline)
                        ;
                assert_int_equal(direct_count_children(d), children);
                assert_int_equal(count_containers(d->bus), 1);
        }
        direct_expect_fds(d, n_fds);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                direct_test(test_both_outputs_and_the_status),
                direct_listen_test(test_busctl_can_capture),
                direct_test(test_input_comes_back_whole),
                direct_test(test_too_much_is_killed),
                direct_test(test_a_background_job_delays_no_answer),
                direct_test(test_timeout),
                direct_test(test_refusals),
                direct_test(test_a_container_in_one_call),
                direct_test(test_containers_that_fail_stay_no_longer),
                direct_listen_test(test_clients_that_go_away),
        };

        return cmocka_run_group_tests(tests, direct_group_setup, NULL);
}
