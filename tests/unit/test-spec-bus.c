/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/unit/bus-message.h"

#include <string.h>
#include <sys/capability.h>

#include "interfaces/names.h"
#include "service/spec-bus.h"
#include "util/strv.h"

static sd_bus *bus;
static int peer = -EBADF;

static int set_up(void **state) {
        bus = test_bus_new(&peer);
        return 0;
}

static int tear_down(void **state) {
        bus = sd_bus_close_unref(bus);
        peer = fd_close(peer);
        return 0;
}

/* Reads the message, which holds one a{sv}, and says how it went. */
static int read_spec(sd_bus_message *message, Spec **ret, sd_bus_error *error) {
        int r;

        test_message_seal(message);
        r = spec_bus_read(message, ret, error);
        if (r >= 0)
                assert_true(sd_bus_message_at_end(message, 1) > 0);
        return r;
}

/* The dictionary given as arguments of sd_bus_message_append() makes this error, and the message has this
 * word. */
#define assert_refused(error_name, word, ...)                                     \
        do {                                                                      \
                _cleanup_bus_message_ sd_bus_message *m = test_message_new(bus);  \
                _cleanup_bus_error_ sd_bus_error error = SD_BUS_ERROR_NULL;       \
                Spec *spec = NULL;                                                \
                assert_true(sd_bus_message_append(m, "a{sv}", __VA_ARGS__) >= 0); \
                assert_true(read_spec(m, &spec, &error) < 0);                     \
                assert_null(spec);                                                \
                assert_non_null(error.name);                                      \
                assert_string_equal(error.name, error_name);                      \
                if (!strstr(error.message, word))                                 \
                        fail_msg("\"%s\" does not name %s", error.message, word); \
        } while (0)

#define ROOT_AND_COMMAND "RootDirectory", "s", "/srv", "Command", "as", 1, "true"

static void test_every_key_is_read(void **state) {
        _cleanup_bus_message_ sd_bus_message *m = test_message_new(bus);
        _cleanup_bus_error_ sd_bus_error error = SD_BUS_ERROR_NULL;
        _cleanup_spec_ Spec *spec = NULL;

        assert_true(sd_bus_message_open_container(m, 'a', "{sv}") >= 0);
        assert_true(sd_bus_message_append(m, "{sv}{sv}{sv}{sv}{sv}", "Command", "as", 2, "sleep", "60",
                                          "Environment", "as", 2, "A=1", "B=2", "WorkingDirectory", "s",
                                          "/tmp", "User", "s", "1000:7", "SupplementaryGroups", "as", 1,
                                          "tty") >= 0);
        assert_true(sd_bus_message_append(m, "{sv}{sv}{sv}{sv}{sv}", "Hostname", "s", "web", "Terminal", "b",
                                          1, "RootDirectory", "s", "/srv/web", "ReadOnly", "b", 1,
                                          "Ephemeral", "b", 1) >= 0);
        assert_true(sd_bus_message_append(m, "{sv}{sv}{sv}{sv}{sv}", "Mounts", "a(sssas)", 2, "/data", "",
                                          "/srv/data", 2, "rbind", "ro", "/tmp", "tmpfs", "", 0, "Network",
                                          "s", "host", "DropCapabilities", "as", 1, "KILL", "Capabilities",
                                          "as", 2, "KILL", "CHOWN", "AddCapabilities", "as", 1,
                                          "CAP_SYS_TIME") >= 0);
        assert_true(sd_bus_message_append(m, "{sv}{sv}{sv}{sv}{sv}", "NoNewPrivileges", "b", 1,
                                          "SeccompProfile", "s", "unconfined", "ResourceLimits", "a{s(tt)}",
                                          2, "NOFILE", (uint64_t) 10, (uint64_t) 20, "RLIMIT_CORE",
                                          (uint64_t) 0, UINT64_MAX, "OOMScoreAdjust", "i", 500, "StopSignal",
                                          "i", 2) >= 0);
        assert_true(sd_bus_message_append(m, "{sv}{sv}{sv}{sv}", "TimeoutStartUSec", "t", (uint64_t) 1,
                                          "TimeoutStopUSec", "t", (uint64_t) 0, "MemoryMax", "t",
                                          (uint64_t) 1 << 40, "TasksMax", "t", (uint64_t) 7) >= 0);
        assert_true(sd_bus_message_append(m, "{sv}{sv}{sv}", "Slice", "s", "batch.slice", "AutoRemove", "b",
                                          1, "Annotations", "a{ss}", 2, "a", "1", "b", "") >= 0);
        assert_true(sd_bus_message_close_container(m) >= 0);

        if (read_spec(m, &spec, &error) < 0)
                fail_msg("%s", error.message);
        assert_int_equal(strv_length(spec->command), 2);
        assert_string_equal(spec->command[1], "60");
        assert_string_equal(strv_env_get(spec->environment, "B"), "2");
        assert_string_equal(spec->working_directory, "/tmp");
        assert_int_equal(spec->uid, 1000);
        assert_int_equal(spec->gid, 7);
        assert_true(spec->has_gid);
        assert_true(strv_contains(spec->supplementary_groups, "tty"));
        assert_string_equal(spec->hostname, "web");
        assert_true(spec->terminal && spec->read_only && spec->ephemeral);
        assert_string_equal(spec->root_directory, "/srv/web");
        assert_int_equal(spec->n_mounts, 2);
        assert_true(spec->mounts[0].bind && spec->mounts[0].recursive);
        assert_string_equal(spec->mounts[1].type, "tmpfs");
        assert_int_equal(spec->network, SPEC_NETWORK_HOST);
        assert_true(spec->capabilities == (1ULL << CAP_CHOWN | 1ULL << CAP_SYS_TIME));
        assert_true(spec->no_new_privileges && spec->auto_remove);
        assert_int_equal(spec->seccomp, SPEC_SECCOMP_UNCONFINED);
        assert_int_equal(spec->limits_set, 1U << RLIMIT_NOFILE | 1U << RLIMIT_CORE);
        assert_int_equal(spec->limits[RLIMIT_NOFILE].rlim_max, 20);
        assert_int_equal(spec->limits[RLIMIT_CORE].rlim_max, RLIM_INFINITY);
        assert_int_equal(spec->oom_score_adjust, 500);
        assert_int_equal(spec->stop_signal, 2);
        assert_int_equal(spec->timeout_start_usec, 1);
        assert_int_equal(spec->timeout_stop_usec, 0);
        assert_int_equal(spec->resources.values[RESOURCE_MEMORY_MAX], 1ULL << 40);
        assert_int_equal(spec->resources.values[RESOURCE_TASKS_MAX], 7);
        assert_string_equal(spec->slice, "batch.slice");
        assert_int_equal(spec->n_annotations, 2);
        assert_string_equal(spec->annotations[1].key, "b");
}

static void test_the_least_has_the_defaults(void **state) {
        _cleanup_bus_message_ sd_bus_message *m = test_message_new(bus);
        _cleanup_spec_ Spec *spec = NULL;

        assert_true(sd_bus_message_append(m, "a{sv}", 2, ROOT_AND_COMMAND) >= 0);
        assert_int_equal(read_spec(m, &spec, NULL), 0);
        assert_true(spec->capabilities == spec_default_capabilities());
        assert_false(spec->terminal || spec->read_only || spec->ephemeral || spec->auto_remove);
        assert_null(spec->environment);
        assert_null(spec->slice);
        assert_false(spec->user_namespace_host);
}

static void test_unknown_key(void **state) {
        assert_refused(BERTH_ERROR_INVALID_SPEC, "Unknown key Foo", 3, ROOT_AND_COMMAND, "Foo", "s", "x");
        assert_refused(BERTH_ERROR_INVALID_SPEC, "Unknown key ", 1, "", "s", "x");
        assert_refused(BERTH_ERROR_INVALID_SPEC, "Unknown key command", 1, "command", "as", 1, "x");
        /* What a stranger writes into a key can't write a line of its own into a log. */
        assert_refused(BERTH_ERROR_INVALID_SPEC, "Unknown key a?b", 1, "a\nb", "s", "x");
}

static void test_key_given_twice(void **state) {
        assert_refused(BERTH_ERROR_INVALID_SPEC, "Hostname", 4, ROOT_AND_COMMAND, "Hostname", "s", "a",
                       "Hostname", "s", "b");
        assert_refused(BERTH_ERROR_INVALID_SPEC, "NOFILE", 1, "ResourceLimits", "a{s(tt)}", 2, "NOFILE",
                       (uint64_t) 1, (uint64_t) 2, "RLIMIT_NOFILE", (uint64_t) 1, (uint64_t) 2);
        assert_refused(BERTH_ERROR_INVALID_SPEC, "Annotations", 1, "Annotations", "a{ss}", 2, "k", "1", "k",
                       "2");
}

static void test_wrong_type_is_told(void **state) {
        assert_refused(BERTH_ERROR_INVALID_SPEC, "Command: expected as, got s", 1, "Command", "s", "true");
        assert_refused(BERTH_ERROR_INVALID_SPEC, "Terminal: expected b, got i", 1, "Terminal", "i", 1);
        assert_refused(BERTH_ERROR_INVALID_SPEC, "MemoryMax: expected t, got u", 1, "MemoryMax", "u", 1);
        assert_refused(BERTH_ERROR_INVALID_SPEC, "Mounts: expected a(sssas), got as", 1, "Mounts", "as", 0);
        assert_refused(BERTH_ERROR_INVALID_SPEC, "Hostname: expected s, got v", 1, "Hostname", "v", "s",
                       "a");
        /* Of a key that comes later, the type is checked first. */
        assert_refused(BERTH_ERROR_INVALID_SPEC, "Bundle: expected s, got as", 1, "Bundle", "as", 0);
}

static void test_bad_values_name_their_key(void **state) {
        assert_refused(BERTH_ERROR_INVALID_SPEC, "RootDirectory", 1, "Command", "as", 1, "true");
        assert_refused(BERTH_ERROR_INVALID_SPEC, "Command", 1, "RootDirectory", "s", "/");
        assert_refused(BERTH_ERROR_INVALID_SPEC, "RootDirectory", 0);
        assert_refused(BERTH_ERROR_INVALID_SPEC, "Command", 1, "Command", "as", 0);
        assert_refused(BERTH_ERROR_INVALID_SPEC, "StopSignal", 1, "StopSignal", "i", 65);
        assert_refused(BERTH_ERROR_INVALID_SPEC, "MemoryMax", 1, "MemoryMax", "t", (uint64_t) 0);
        assert_refused(BERTH_ERROR_INVALID_SPEC, "SYS_NOTHING", 1, "AddCapabilities", "as", 1,
                       "SYS_NOTHING");
        assert_refused(BERTH_ERROR_INVALID_SPEC, "size=1", 1, "Mounts", "a(sssas)", 1, "/m", "bind", "/s", 1,
                       "size=1");
        assert_refused(BERTH_ERROR_INVALID_SPEC, "cap_kill", 4, ROOT_AND_COMMAND, "AddCapabilities", "as", 1,
                       "KILL", "DropCapabilities", "as", 1, "KILL");
}

static void test_too_many_entries(void **state) {
        _cleanup_bus_message_ sd_bus_message *m = test_message_new(bus);
        _cleanup_bus_error_ sd_bus_error error = SD_BUS_ERROR_NULL;
        Spec *spec = NULL;

        assert_true(sd_bus_message_open_container(m, 'a', "{sv}") >= 0);
        assert_true(sd_bus_message_open_container(m, 'e', "sv") >= 0);
        assert_true(sd_bus_message_append(m, "s", "Command") >= 0);
        assert_true(sd_bus_message_open_container(m, 'v', "as") >= 0);
        assert_true(sd_bus_message_open_container(m, 'a', "s") >= 0);
        for (size_t i = 0; i <= SPEC_COMMAND_MAX; i++)
                assert_true(sd_bus_message_append(m, "s", "x") >= 0);
        for (size_t i = 0; i < 4; i++)
                assert_true(sd_bus_message_close_container(m) >= 0);
        assert_true(read_spec(m, &spec, &error) < 0);
        assert_string_equal(error.name, BERTH_ERROR_INVALID_SPEC);
        assert_non_null(strstr(error.message, "Command: has more than 4096"));
}

static void test_what_comes_later_is_not_supported(void **state) {
        static const char *const texts[][2] = {
                { "Bundle", "/b" },
                { "IPC", "host" },
                { "PIDNamespace", "host" },
                { "UTS", "host" },
                { "CgroupNamespace", "host" },
                { "UserNamespace", "auto" },
                { "Placement", "delegate" },
                { "SELinuxContext", "x" },
                { "AppArmorProfile", "x" },
                { "Runtime", "runc" },
                { "Network", "path:/run/netns/x" },
                { "SeccompProfile", "/etc/p" },
        };

        for (size_t i = 0; i < ELEMENTSOF(texts); i++)
                assert_refused(BERTH_ERROR_NOT_SUPPORTED, texts[i][0], 3, ROOT_AND_COMMAND, texts[i][0], "s",
                               texts[i][1]);
        assert_refused(BERTH_ERROR_NOT_SUPPORTED, "Init", 1, "Init", "b", 1);
        assert_refused(BERTH_ERROR_NOT_SUPPORTED, "Devices", 1, "Devices", "as", 0);
        assert_refused(BERTH_ERROR_NOT_SUPPORTED, "Bundle is not supported by this version", 1, "Bundle",
                       "s", "/b");
        assert_refused(BERTH_ERROR_NOT_SUPPORTED, "tmpcopyup", 1, "Mounts", "a(sssas)", 1, "/m", "tmpfs", "",
                       1, "tmpcopyup");
}

static void test_what_is_so_anyhow_may_be_asked_for(void **state) {
        _cleanup_bus_message_ sd_bus_message *m = test_message_new(bus);
        _cleanup_bus_error_ sd_bus_error error = SD_BUS_ERROR_NULL;
        _cleanup_spec_ Spec *spec = NULL;

        assert_true(sd_bus_message_append(m, "a{sv}", 11, ROOT_AND_COMMAND, "IPC", "s", "private",
                                          "PIDNamespace", "s", "private", "UTS", "s", "private",
                                          "CgroupNamespace", "s", "private", "Placement", "s", "scope",
                                          "Runtime", "s", "native", "Init", "b", 0, "UserNamespace", "s",
                                          "host", "RuntimeMaxUSec", "t", UINT64_MAX) >= 0);
        if (read_spec(m, &spec, &error) < 0)
                fail_msg("%s", error.message);
        assert_true(spec->user_namespace_host);
}

static void test_something_else_than_a_dictionary(void **state) {
        _cleanup_bus_message_ sd_bus_message *m = test_message_new(bus), *empty = test_message_new(bus);
        Spec *spec = NULL;

        assert_true(sd_bus_message_append(m, "s", "x") >= 0);
        assert_true(read_spec(m, &spec, NULL) < 0);
        assert_true(read_spec(empty, &spec, NULL) < 0);
        assert_null(spec);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_every_key_is_read),
                cmocka_unit_test(test_the_least_has_the_defaults),
                cmocka_unit_test(test_unknown_key),
                cmocka_unit_test(test_key_given_twice),
                cmocka_unit_test(test_wrong_type_is_told),
                cmocka_unit_test(test_bad_values_name_their_key),
                cmocka_unit_test(test_too_many_entries),
                cmocka_unit_test(test_what_comes_later_is_not_supported),
                cmocka_unit_test(test_what_is_so_anyhow_may_be_asked_for),
                cmocka_unit_test(test_something_else_than_a_dictionary),
        };

        return cmocka_run_group_tests(tests, set_up, tear_down);
}
