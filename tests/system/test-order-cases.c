/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a client is told, in which order, and in which words: the guarantees of org.berth1(5). */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "interfaces/names.h"
#include "tests/system/direct-call.h"
#include "util/strv.h"

#define MS 15000U

/* Everything that came, in its order, as words. */
typedef struct Record {
        char **words; /* owned */
        bool ended;   /* ContainerRemoved has come */
} Record;

typedef struct Reply {
        Record *record;
        const char *word;
} Reply;

static void note(Record *record, const char *word) {
        assert_int_equal(strv_append(&record->words, word), 0);
}

/* The properties that a signal tells, those that matter for the order. */
static void note_properties(Record *record, sd_bus_message *m) {
        char word[256] = "changed";
        const char *interface, *key;

        assert_true(sd_bus_message_read(m, "s", &interface) > 0);
        assert_string_equal(interface, BERTH_INTERFACE_CONTAINER);
        assert_true(sd_bus_message_enter_container(m, 'a', "{sv}") >= 0);
        while (sd_bus_message_enter_container(m, 'e', "sv") > 0) {
                assert_true(sd_bus_message_read(m, "s", &key) > 0);
                if (strcmp(key, "State") == 0) {
                        const char *value;

                        assert_true(sd_bus_message_read(m, "v", "s", &value) > 0);
                        (void) snprintf(word + strlen(word), sizeof(word) - strlen(word), " %s", value);
                } else if (strcmp(key, "PID") == 0) {
                        uint32_t value;

                        assert_true(sd_bus_message_read(m, "v", "u", &value) > 0);
                        (void) snprintf(word + strlen(word), sizeof(word) - strlen(word), " pid=%c",
                                        value ? '+' : '0');
                } else if (strcmp(key, "ExitCode") == 0 || strcmp(key, "ExitStatus") == 0) {
                        int32_t value;

                        assert_true(sd_bus_message_read(m, "v", "i", &value) > 0);
                        (void) snprintf(word + strlen(word), sizeof(word) - strlen(word), " %s=%d", key,
                                        value);
                } else
                        assert_true(sd_bus_message_skip(m, "v") >= 0);
                assert_true(sd_bus_message_exit_container(m) >= 0);
        }
        note(record, word);
}

static int on_message(sd_bus_message *m, void *userdata, sd_bus_error *unused) {
        Record *record = userdata;
        uint8_t type;

        assert_true(sd_bus_message_get_type(m, &type) >= 0);
        if (type != SD_BUS_MESSAGE_SIGNAL)
                return 0;
        if (sd_bus_message_is_signal(m, "org.freedesktop.DBus.Properties", "PropertiesChanged"))
                note_properties(record, m);
        else
                note(record, sd_bus_message_get_member(m));
        if (sd_bus_message_is_signal(m, BERTH_INTERFACE_MANAGER, "ContainerRemoved"))
                record->ended = true;
        return 0;
}

static int on_reply(sd_bus_message *m, void *userdata, sd_bus_error *unused) {
        Reply *reply = userdata;

        note(reply->record, sd_bus_message_get_error(m) ? text("%s failed", reply->word) : reply->word);
        return 0;
}

static void record_run(const Direct *d, sd_bus *bus, const char *name, const Call *call, Reply *reply) {
        _cleanup_bus_message_ sd_bus_message *m = NULL;

        m = call_new(d, bus, "RunContainer", name, call);
        assert_true(sd_bus_call_async(bus, NULL, m, on_reply, reply, 0) >= 0);
}

static void record_call(sd_bus *bus, const char *name, const char *member, Reply *reply, const char *types,
                        ...) {
        _cleanup_bus_message_ sd_bus_message *m = NULL;
        va_list arguments;

        assert_true(sd_bus_message_new_method_call(bus, &m, BERTH_BUS_NAME, path_of(name),
                                                   BERTH_INTERFACE_CONTAINER, member) >= 0);
        va_start(arguments, types);
        assert_true(sd_bus_message_appendv(m, types, arguments) >= 0);
        va_end(arguments);
        assert_true(sd_bus_call_async(bus, NULL, m, on_reply, reply, 0) >= 0);
}

static void expect_record(sd_bus *bus, Record *record, const char *const *expected) {
        size_t n = strv_length((char *const *) expected);

        if (!bus_until(bus, &record->ended, MS))
                (void) fprintf(stderr, "ContainerRemoved did not come\n");
        /* Nothing comes after it. */
        bus_until_usec(bus, now_usec() + 20000);
        for (size_t i = 0; i < n || i < strv_length(record->words); i++) {
                const char *got = i < strv_length(record->words) ? record->words[i] : "nothing";

                if (i >= n || strcmp(got, expected[i]) != 0)
                        fail_msg("%zu: %s, and not %s", i, got, i < n ? expected[i] : "nothing");
        }
        record->words = strv_free(record->words);
        record->ended = false;
}

static void test_order_of_a_run(void **state) {
        const Call call = { .command = SH("exit 3"), .auto_remove = true };
        Direct *d = *state;
        Record record = {};
        Reply run = { &record, "Run" }, wait = { &record, "Wait" };

        assert_true(sd_bus_add_filter(d->bus, NULL, on_message, &record) >= 0);
        for (unsigned i = 0; i < 50; i++) {
                record_run(d, d->bus, "order", &call, &run);
                record_call(d->bus, "order", "Wait", &wait, "");
                expect_record(d->bus, &record,
                              WORDS("InterfacesAdded", "ContainerAdded",
                                    "changed starting ExitCode=0 ExitStatus=0", "changed running pid=+",
                                    "Started", "Run", "changed exited pid=0 ExitCode=1 ExitStatus=3",
                                    "Exited", "Wait", "InterfacesRemoved", "ContainerRemoved"));
        }
}

static void test_order_of_a_run_that_is_stopped_and_waited_for_by_many(void **state) {
        const Call call = { .command = WORDS("sleep", "1000"), .timeout_stop_usec = 1 };
        Direct *d = *state;
        Record record = {};
        Reply run = { &record, "Run" }, wait = { &record, "Wait" }, stop = { &record, "Stop" },
              remove = { &record, "Remove" };

        assert_true(sd_bus_add_filter(d->bus, NULL, on_message, &record) >= 0);
        for (unsigned i = 0; i < 20; i++) {
                bool started = false;

                record_run(d, d->bus, "stopped", &call, &run);
                while (!started) {
                        bus_until_usec(d->bus, now_usec() + 1000);
                        started = strv_contains(record.words, "Run");
                }
                record_call(d->bus, "stopped", "Wait", &wait, "");
                record_call(d->bus, "stopped", "Stop", &stop, "t", UINT64_MAX);
                record_call(d->bus, "stopped", "Wait", &wait, "");
                record_call(d->bus, "stopped", "Remove", &remove, "b", 1);
                expect_record(d->bus, &record,
                              WORDS("InterfacesAdded", "ContainerAdded",
                                    "changed starting ExitCode=0 ExitStatus=0", "changed running pid=+",
                                    "Started", "Run", "changed stopping",
                                    "changed exited pid=0 ExitCode=2 ExitStatus=9", "Exited", "Wait", "Wait",
                                    "Stop", "Remove", "InterfacesRemoved", "ContainerRemoved"));
        }
}

static void test_order_of_a_start_that_fails(void **state) {
        const Call call = { .command = WORDS("nosuchcmd") };
        Direct *d = *state;
        Record record = {};
        Reply run = { &record, "Run" }, wait = { &record, "Wait" };

        assert_true(sd_bus_add_filter(d->bus, NULL, on_message, &record) >= 0);
        for (unsigned i = 0; i < 20; i++) {
                record_run(d, d->bus, "fails", &call, &run);
                record_call(d->bus, "fails", "Wait", &wait, "");
                expect_record(d->bus, &record,
                              WORDS("InterfacesAdded", "ContainerAdded",
                                    "changed starting ExitCode=0 ExitStatus=0", "changed created",
                                    "Run failed", "Wait failed", "InterfacesRemoved", "ContainerRemoved"));
        }
}

static void test_order_of_a_start_that_is_cancelled(void **state) {
        const Call call = { .command = WORDS("sleep", "1000"), .timeout_stop_usec = 1, .auto_remove = true };
        Direct *d = *state;
        Record record = {};
        Reply run = { &record, "Run" }, stop = { &record, "Stop" }, wait = { &record, "Wait" };
        unsigned n_cancelled = 0;

        assert_true(sd_bus_add_filter(d->bus, NULL, on_message, &record) >= 0);
        for (unsigned i = 0; i < 30; i++) {
                record_run(d, d->bus, "cancelled", &call, &run);
                record_call(d->bus, "cancelled", "Stop", &stop, "t", UINT64_MAX);
                record_call(d->bus, "cancelled", "Wait", &wait, "");
                assert_true(bus_until(d->bus, &record.ended, MS));
                if (strv_contains(record.words, "Started")) {
                        /* The start was faster than the call: another order, tested above. */
                        record.words = strv_free(record.words);
                        record.ended = false;
                        continue;
                }
                n_cancelled++;
                expect_record(d->bus, &record,
                              WORDS("InterfacesAdded", "ContainerAdded",
                                    "changed starting ExitCode=0 ExitStatus=0", "changed created",
                                    "Run failed", "Stop", "Wait failed", "InterfacesRemoved",
                                    "ContainerRemoved"));
        }
        assert_true(n_cancelled > 0);
}

/* Wait's answer is the end of an AutoRemove container: the name is free with it. */
static void test_the_name_is_free_before_wait_is_answered(void **state) {
        const Call call = { .command = WORDS("true"), .auto_remove = true };
        Direct *d = *state;

        for (unsigned i = 0; i < 100; i++)
                (void) must_wait(d->bus, must_run(d, d->bus, "free", &call, NULL));
}

/* ---- the state table ------------------------------------------------------------------------------------------ */

static void expect_error(sd_bus *bus, const char *path, const char *member, const char *name,
                         const char *types, ...) {
        _cleanup_bus_message_ sd_bus_message *m = NULL;
        _cleanup_bus_error_ sd_bus_error error = SD_BUS_ERROR_NULL;
        va_list arguments;

        assert_true(sd_bus_message_new_method_call(bus, &m, BERTH_BUS_NAME, path, BERTH_INTERFACE_CONTAINER,
                                                   member) >= 0);
        va_start(arguments, types);
        assert_true(sd_bus_message_appendv(m, types, arguments) >= 0);
        va_end(arguments);
        if (sd_bus_call(bus, m, 0, &error, NULL) >= 0)
                fail_msg("%s was to fail with %s", member, name);
        assert_string_equal(error.name, name);
        assert_non_null(error.message);
        if (strncmp(error.name, "org.berth1.", 11) == 0 && !strstr(error.message, "table"))
                fail_msg("%s does not name the container: %s", member, error.message);
}

static void test_every_state_answers_as_the_table_says(void **state) {
        const Call call = { .command = WORDS("sleep", "1000"), .terminal = true, .on_disconnect = "hangup" };
        Direct *d = *state;
        const char *path;

        path = must_create(d, d->bus, "table", &call);
        expect_error(d->bus, path, "Signal", BERTH_ERROR_NOT_RUNNING, "i", SIGTERM);
        must_call(d->bus, path, "Stop", "t", UINT64_MAX);
        must_call(d->bus, path, "Resize", "qq", 30, 40);
        expect_error(d->bus, path, "Resize", BERTH_ERROR_INVALID_ARGS, "qq", 0, 40);
        expect_error(d->bus, path, "Resize", BERTH_ERROR_INVALID_ARGS, "qq", 30, 0);

        /* The master is dropped: PID 1 with default actions goes on without. */
        assert_true(sd_bus_call_method(d->bus, BERTH_BUS_NAME, path, BERTH_INTERFACE_CONTAINER, "Start",
                                       NULL, NULL, "a{sv}", 1, "OnDisconnect", "s", "hangup") >= 0);
        expect_error(d->bus, path, "Start", BERTH_ERROR_ALREADY_RUNNING, "a{sv}", 0);
        expect_error(d->bus, path, "Remove", BERTH_ERROR_ALREADY_RUNNING, "b", 0);
        must_call(d->bus, path, "Resize", "qq", 31, 41);
        must_call(d->bus, path, "Signal", "i", SIGTERM);
        must_call(d->bus, path, "Signal", "i", SIGKILL);
        (void) must_wait(d->bus, path);
        expect_error(d->bus, path, "Signal", BERTH_ERROR_NOT_RUNNING, "i", SIGTERM);
        must_call(d->bus, path, "Stop", "t", UINT64_MAX);
        must_call(d->bus, path, "Resize", "qq", 32, 42);
        (void) must_wait(d->bus, path);
        must_call(d->bus, path, "Remove", "b", 0);
        expect_error(d->bus, path, "Wait", SD_BUS_ERROR_UNKNOWN_OBJECT, "");

        path = must_create(d, d->bus, "table", &(Call) { .command = WORDS("sleep", "1000") });
        expect_error(d->bus, path, "Resize", BERTH_ERROR_NO_TERMINAL, "qq", 30, 40);
        must_remove(d->bus, path);
}

/* ---- words ---------------------------------------------------------------------------------------------------- */

static void test_messages_say_what_is_wrong_in_one_sentence(void **state) {
        static const char *const bad_option[] = { "nosuchoption", NULL };
        const CallMount mounts[] = {
                { "/x/..", "tmpfs", "tmpfs", (const char *const[]) { NULL } },
                { "/data", "bind", "relative", (const char *const[]) { NULL } },
                { "/data", "bind", "/etc", bad_option },
        };
        const int oom = 1001;
        const struct {
                Call call;
                const char *error, *says;
        } calls[] = {
                { {}, BERTH_ERROR_INVALID_SPEC, "Command" },
                { { .command = WORDS("true"), .root = "relative" },
                  BERTH_ERROR_INVALID_SPEC,
                  "RootDirectory" },
                { { .command = WORDS("true"), .environment = WORDS("NOEQUALS") },
                  BERTH_ERROR_INVALID_SPEC,
                  "Environment" },
                { { .command = WORDS("true"), .working_directory = "x" },
                  BERTH_ERROR_INVALID_SPEC,
                  "WorkingDirectory" },
                { { .command = WORDS("true"), .user = "a b" }, BERTH_ERROR_INVALID_SPEC, "User" },
                { { .command = WORDS("true"), .user = "4294967295" }, BERTH_ERROR_INVALID_SPEC, "User" },
                { { .command = WORDS("true"), .hostname = "a_b" }, BERTH_ERROR_INVALID_SPEC, "Hostname" },
                { { .command = WORDS("true"), .network = "bridge" }, BERTH_ERROR_INVALID_SPEC, "Network" },
                { { .command = WORDS("true"), .network = "path:/x" }, BERTH_ERROR_NOT_SUPPORTED, "Network" },
                { { .command = WORDS("true"), .seccomp = "/x.json" },
                  BERTH_ERROR_NOT_SUPPORTED,
                  "SeccompProfile" },
                { { .command = WORDS("true"), .add_capabilities = WORDS("CAP_NOSUCH") },
                  BERTH_ERROR_INVALID_SPEC,
                  "NOSUCH" },
                { { .command = WORDS("true"), .limit = "NOSUCH" },
                  BERTH_ERROR_INVALID_SPEC,
                  "ResourceLimits" },
                { { .command = WORDS("true"), .limit = "NOFILE", .limit_soft = 2, .limit_hard = 1 },
                  BERTH_ERROR_INVALID_SPEC,
                  "ResourceLimits" },
                { { .command = WORDS("true"), .oom_score_adjust = &oom },
                  BERTH_ERROR_INVALID_SPEC,
                  "OOMScoreAdjust" },
                { { .command = WORDS("true"), .stop_signal = 65 }, BERTH_ERROR_INVALID_SPEC, "StopSignal" },
                { { .command = WORDS("true"), .mounts = &mounts[0], .n_mounts = 1 },
                  BERTH_ERROR_INVALID_SPEC,
                  "Mounts" },
                { { .command = WORDS("true"), .mounts = &mounts[1], .n_mounts = 1 },
                  BERTH_ERROR_INVALID_SPEC,
                  "Mounts" },
                { { .command = WORDS("true"), .mounts = &mounts[2], .n_mounts = 1 },
                  BERTH_ERROR_INVALID_SPEC,
                  "nosuchoption" },
                { { .command = WORDS("true"), .on_disconnect = "nonsense" },
                  BERTH_ERROR_INVALID_ARGS,
                  "OnDisconnect" },
                { { .command = WORDS("true"), .on_disconnect = "hangup" },
                  BERTH_ERROR_INVALID_ARGS,
                  "OnDisconnect" },
                { { .command = WORDS("true"), .terminal = true, .on_disconnect = "keep" },
                  BERTH_ERROR_NOT_SUPPORTED,
                  "OnDisconnect" },
        };
        Direct *d = *state;

        for (size_t i = 0; i < ELEMENTSOF(calls); i++) {
                const char *message;

                message = must_fail(d, d->bus, text("words-%zu", i), &calls[i].call, calls[i].error);
                if (!strstr(message, calls[i].says) || strchr(message, '\n') || strlen(message) < 10)
                        fail_msg("%zu: no %s in: %s", i, calls[i].says, message);
        }
        assert_int_equal(count_containers(d->bus), 0);
}

static void expect_get_fails(Direct *d, const char *name) {
        _cleanup_bus_error_ sd_bus_error error = SD_BUS_ERROR_NULL;

        assert_true(sd_bus_call_method(d->bus, BERTH_BUS_NAME, BERTH_PATH, BERTH_INTERFACE_MANAGER,
                                       "GetContainer", &error, NULL, "s", name) < 0);
        assert_string_equal(error.name, BERTH_ERROR_NO_SUCH_CONTAINER);
        if (*name)
                assert_non_null(strstr(error.message, name));
}

static void test_an_unknown_container_is_named(void **state) {
        Direct *d = *state;

        expect_get_fails(d, "nosuchcontainer");
        expect_get_fails(d, "");
        expect_error(d->bus, "/org/berth1/container/none", "Wait", SD_BUS_ERROR_UNKNOWN_OBJECT, "");
}

static void test_names_are_generated_and_escaped(void **state) {
        static const char *const names[] = { "a.b", "a-b", "a+b", "A_b", "1" };
        const Call call = { .command = WORDS("sleep", "1000") };
        Direct *d = *state;

        for (unsigned i = 0; i < 3; i++) {
                const char *path = must_run(d, d->bus, "", &call, NULL);

                assert_true(*get_s(d->bus, path, "Name"));
        }
        for (size_t i = 0; i < ELEMENTSOF(names); i++) {
                const char *path = must_run(d, d->bus, names[i], &call, NULL);

                assert_string_equal(path, path_of(names[i]));
                assert_string_equal(get_s(d->bus, path, "Name"), names[i]);
        }
        assert_int_equal(count_containers(d->bus), 3 + ELEMENTSOF(names));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                direct_test(test_order_of_a_run),
                direct_test(test_order_of_a_run_that_is_stopped_and_waited_for_by_many),
                direct_test(test_order_of_a_start_that_fails),
                direct_test(test_order_of_a_start_that_is_cancelled),
                direct_test(test_the_name_is_free_before_wait_is_answered),
                direct_test(test_every_state_answers_as_the_table_says),
                direct_test(test_messages_say_what_is_wrong_in_one_sentence),
                direct_test(test_an_unknown_container_is_named),
                direct_test(test_names_are_generated_and_escaped),
        };

        return cmocka_run_group_tests(tests, direct_group_setup, NULL);
}
