/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/capability.h>

#include <cmocka.h>

#include "interfaces/names.h"
#include "service/spec.h"
#include "util/strv.h"

#define LIST(...) ((char *const *) (const char *const[]) { __VA_ARGS__, NULL })

/* The call fails with InvalidSpec and a sentence with these words in it. */
#define assert_invalid(call, ...)                                                 \
        do {                                                                      \
                _cleanup_bus_error_ sd_bus_error error = SD_BUS_ERROR_NULL;       \
                assert_true((call) < 0);                                          \
                check_error(&error, BERTH_ERROR_INVALID_SPEC, LIST(__VA_ARGS__)); \
        } while (0)

#define assert_valid(call)                                                  \
        do {                                                                \
                _cleanup_bus_error_ sd_bus_error error = SD_BUS_ERROR_NULL; \
                assert_int_equal((call), 0);                                \
                assert_false(sd_bus_error_is_set(&error));                  \
        } while (0)

static void check_error(const sd_bus_error *error, const char *name, char *const *words) {
        assert_non_null(error->name);
        assert_string_equal(error->name, name);
        for (; *words; words++)
                if (!strstr(error->message, *words))
                        fail_msg("\"%s\" does not name %s", error->message, *words);
        assert_null(strchr(error->message, '\n'));
}

static void test_defaults(void **state) {
        _cleanup_spec_ Spec *spec = spec_new();

        assert_non_null(spec);
        assert_string_equal(spec->working_directory, "/");
        assert_null(spec->user);
        assert_int_equal(spec->uid, 0);
        assert_int_equal(spec->gid, 0);
        assert_false(spec->has_gid);
        assert_int_equal(spec->network, SPEC_NETWORK_PRIVATE);
        assert_int_equal(spec->seccomp, SPEC_SECCOMP_DEFAULT);
        assert_false(spec->no_new_privileges);
        assert_int_equal(spec->stop_signal, SIGTERM);
        assert_int_equal(spec->timeout_start_usec, 30000000);
        assert_int_equal(spec->timeout_stop_usec, 10000000);
        assert_int_equal(spec->runtime_max_usec, UINT64_MAX);
        for (Resource i = 0; i < _RESOURCE_MAX; i++)
                assert_true(spec->resources.values[i] == RESOURCE_NONE);
        assert_int_equal(spec->resources.given, 0);
        assert_null(spec->resources.allowed_cpus);
        assert_int_equal(spec->limits_set, 0);
        assert_false(spec->oom_score_adjust_set);
        assert_int_equal(__builtin_popcountll(spec->capabilities), 14);
        assert_null(spec_free(NULL));
}

static void test_what_is_missing_is_named(void **state) {
        _cleanup_spec_ Spec *spec = spec_new();

        assert_invalid(spec_validate(spec, &error), "RootDirectory");
        assert_valid(spec_set_root_directory(spec, "/srv/web", &error));
        assert_invalid(spec_validate(spec, &error), "Command");
        assert_valid(spec_set_command(spec, LIST("true"), &error));
        assert_valid(spec_validate(spec, &error));
}

static void test_strings_have_limits(void **state) {
        _cleanup_spec_ Spec *spec = spec_new();
        _cleanup_free_ char *longest = malloc(128 * 1024 + 1);
        char *list[SPEC_COMMAND_MAX + 2] = {};

        memset(longest, 'x', 128 * 1024);
        longest[128 * 1024] = 0;
        assert_invalid(spec_set_command(spec, LIST("a", longest), &error), "Command", "entry 2");
        longest[128 * 1024 - 1] = 0;
        assert_valid(spec_set_command(spec, LIST("a", longest), &error));

        for (size_t i = 0; i < SPEC_COMMAND_MAX; i++)
                list[i] = (char *) "a=";
        assert_valid(spec_set_environment(spec, list, &error));
        list[SPEC_COMMAND_MAX] = (char *) "a=";
        assert_invalid(spec_set_environment(spec, list, &error), "Environment", "4096");
        assert_int_equal(strv_length(spec->environment), SPEC_COMMAND_MAX);

        for (size_t i = 0; i < 17; i++)
                list[i] = longest;
        list[17] = NULL;
        assert_valid(spec_set_command(spec, list, &error));
        assert_valid(spec_set_root_directory(spec, "/", &error));
        assert_invalid(spec_validate(spec, &error), "Command", "Environment");
}

static void test_command_needs_a_program(void **state) {
        _cleanup_spec_ Spec *spec = spec_new();

        assert_invalid(spec_set_command(spec, NULL, &error), "Command");
        assert_invalid(spec_set_command(spec, LIST(NULL), &error), "Command");
        assert_invalid(spec_set_command(spec, LIST(""), &error), "Command");
        assert_valid(spec_set_command(spec, LIST("echo", ""), &error));
        assert_invalid(spec_set_command(spec, NULL, &error), "Command");
        assert_int_equal(strv_length(spec->command), 2);
}

static void test_root_directory_is_absolute_and_normal(void **state) {
        _cleanup_spec_ Spec *spec = spec_new();
        char path[5000];

        assert_invalid(spec_set_root_directory(spec, "", &error), "RootDirectory");
        assert_invalid(spec_set_root_directory(spec, "srv", &error), "RootDirectory", "srv");
        assert_invalid(spec_set_root_directory(spec, "/srv/../etc", &error), "RootDirectory");
        memset(path, '/', sizeof(path));
        path[4096] = 0;
        assert_invalid(spec_set_root_directory(spec, path, &error), "RootDirectory", "4095");
        assert_null(spec->root_directory);
        assert_valid(spec_set_root_directory(spec, "//srv/./web/", &error));
        assert_string_equal(spec->root_directory, "/srv/web");
        assert_valid(spec_set_root_directory(spec, "/", &error));
        assert_string_equal(spec->root_directory, "/");

        assert_invalid(spec_set_working_directory(spec, "home", &error), "WorkingDirectory");
        assert_invalid(spec_set_working_directory(spec, path, &error), "WorkingDirectory");
        assert_valid(spec_set_working_directory(spec, "/home/../tmp", &error));
        assert_string_equal(spec->working_directory, "/home/../tmp");
}

/* An entry may be a secret, so the message has at most what is before the "=". */
static void test_environment_errors_tell_no_value(void **state) {
        _cleanup_spec_ Spec *spec = spec_new();
        _cleanup_bus_error_ sd_bus_error e = SD_BUS_ERROR_NULL;

        assert_invalid(spec_set_environment(spec, LIST("A=b", "hunter2"), &error), "Environment", "entry 2");
        assert_true(spec_set_environment(spec, LIST("A=b", "hunter2"), &e) < 0);
        assert_null(strstr(e.message, "hunter2"));
        sd_bus_error_free(&e);
        assert_true(spec_set_environment(spec, LIST("=hunter2"), &e) < 0);
        assert_null(strstr(e.message, "hunter2"));
        assert_null(spec->environment);
        assert_valid(spec_set_environment(spec, LIST("A=", "B=x=y"), &error));
        assert_string_equal(strv_env_get(spec->environment, "B"), "x=y");
        assert_valid(spec_set_environment(spec, NULL, &error));
        assert_null(spec->environment);
}

static void test_users(void **state) {
        static const struct {
                const char *text, *user;
                uid_t uid;
                gid_t gid;
                bool has_gid;
        } good[] = {
                { "0", NULL, 0, 0, false },
                { "1000", NULL, 1000, 0, false },
                { "1000:1000", NULL, 1000, 1000, true },
                { "4294967294:4294967294", NULL, 4294967294, 4294967294, true },
                { "daemon", "daemon", 0, 0, false },
                { "daemon:7", "daemon", 0, 7, true },
                { "a.b-c_d@example$", "a.b-c_d@example$", 0, 0, false },
                { "7up", "7up", 0, 0, false },
        };
        static const char *const bad[] = { "",
                                           ":",
                                           ":5",
                                           "0:",
                                           "4294967295",
                                           "99999999999",
                                           "-1",
                                           "+1",
                                           "0:-1",
                                           "1:users",
                                           "a:b",
                                           "a b",
                                           "a/b",
                                           "a\n",
                                           "1:2:3",
                                           "0:4294967295",
                                           "18446744073709551616" };
        _cleanup_spec_ Spec *spec = spec_new();

        for (size_t i = 0; i < ELEMENTSOF(good); i++) {
                assert_valid(spec_set_user(spec, good[i].text, &error));
                if (good[i].user)
                        assert_string_equal(spec->user, good[i].user);
                else
                        assert_null(spec->user);
                assert_int_equal(spec->uid, good[i].uid);
                assert_int_equal(spec->gid, good[i].gid);
                assert_int_equal(spec->has_gid, good[i].has_gid);
        }
        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                assert_invalid(spec_set_user(spec, bad[i], &error), "User");
        assert_string_equal(spec->user, "7up");
        /* What to do is said. */
        assert_invalid(spec_set_user(spec, "daemon:users", &error), "users", "SupplementaryGroups");

        assert_valid(spec_set_groups(spec, LIST("5", "tty", "4294967294"), &error));
        assert_invalid(spec_set_groups(spec, LIST("tty", "4294967295"), &error), "SupplementaryGroups",
                       "4294967295");
        assert_invalid(spec_set_groups(spec, LIST("a:b"), &error), "SupplementaryGroups", "a:b");
        assert_invalid(spec_set_groups(spec, LIST(""), &error), "SupplementaryGroups");
        assert_int_equal(strv_length(spec->supplementary_groups), 3);
}

static void test_hostnames(void **state) {
        static const char *const good[] = {
                "a", "web-1", "Web.Example.org", "1",
                "0123456789012345678901234567890123456789012345678901234567890123"
        };
        static const char *const bad[] = {
                "",         ".",
                "a.",       ".a",
                "a..b",     "-a",
                "a-",       "a.-b",
                "a-.b",     "a_b",
                "a b",      "a/b",
                "\xc3\xbc", "01234567890123456789012345678901234567890123456789012345678901234"
        };
        _cleanup_spec_ Spec *spec = spec_new();

        for (size_t i = 0; i < ELEMENTSOF(good); i++) {
                assert_valid(spec_set_hostname(spec, good[i], &error));
                assert_string_equal(spec->hostname, good[i]);
        }
        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                assert_invalid(spec_set_hostname(spec, bad[i], &error), "Hostname");
}

static void test_words(void **state) {
        _cleanup_spec_ Spec *spec = spec_new();
        _cleanup_bus_error_ sd_bus_error e = SD_BUS_ERROR_NULL;

        for (int i = 0; i < _SPEC_NETWORK_MAX; i++)
                assert_int_equal(spec_network_from_string(spec_network_to_string(i)), i);
        for (int i = 0; i < _SPEC_SECCOMP_MAX; i++)
                assert_int_equal(spec_seccomp_from_string(spec_seccomp_to_string(i)), i);
        assert_null(spec_network_to_string(_SPEC_NETWORK_MAX));
        assert_null(spec_seccomp_to_string(_SPEC_SECCOMP_INVALID));

        assert_valid(spec_set_network(spec, "host", &error));
        assert_int_equal(spec->network, SPEC_NETWORK_HOST);
        assert_invalid(spec_set_network(spec, "bridge", &error), "Network", "bridge");
        assert_true(spec_set_network(spec, "path:/run/netns/x", &e) < 0);
        check_error(&e, BERTH_ERROR_NOT_SUPPORTED, LIST("Network=path:"));
        sd_bus_error_free(&e);
        assert_valid(spec_set_seccomp_profile(spec, "unconfined", &error));
        assert_int_equal(spec->seccomp, SPEC_SECCOMP_UNCONFINED);
        assert_invalid(spec_set_seccomp_profile(spec, "none", &error), "SeccompProfile", "none");
        assert_true(spec_set_seccomp_profile(spec, "/etc/p.json", &e) < 0);
        check_error(&e, BERTH_ERROR_NOT_SUPPORTED, LIST("SeccompProfile"));

        assert_valid(spec_set_slice(spec, "batch.slice", &error));
        assert_invalid(spec_set_slice(spec, "batch.service", &error), "Slice", "batch.service");
        assert_string_equal(spec->slice, "batch.slice");
}

static void test_numbers_have_ranges(void **state) {
        _cleanup_spec_ Spec *spec = spec_new();

        assert_valid(spec_set_stop_signal(spec, 1, &error));
        assert_valid(spec_set_stop_signal(spec, 64, &error));
        assert_invalid(spec_set_stop_signal(spec, 0, &error), "StopSignal");
        assert_invalid(spec_set_stop_signal(spec, 65, &error), "StopSignal", "65");
        assert_invalid(spec_set_stop_signal(spec, INT32_MIN, &error), "StopSignal");
        assert_int_equal(spec->stop_signal, 64);

        assert_valid(spec_set_oom_score_adjust(spec, -1000, &error));
        assert_valid(spec_set_oom_score_adjust(spec, 1000, &error));
        assert_true(spec->oom_score_adjust_set);
        assert_invalid(spec_set_oom_score_adjust(spec, -1001, &error), "OOMScoreAdjust");
        assert_invalid(spec_set_oom_score_adjust(spec, 1001, &error), "OOMScoreAdjust");

        assert_invalid(spec_set_timeout_start(spec, 0, &error), "TimeoutStartUSec");
        assert_valid(spec_set_timeout_start(spec, UINT64_MAX, &error));
        assert_invalid(spec_set_runtime_max(spec, 0, &error), "RuntimeMaxUSec");
        assert_valid(spec_set_runtime_max(spec, 1, &error));
        assert_int_equal(spec->runtime_max_usec, 1);
}

static void test_resource_limits(void **state) {
        static const char *const names[] = { "CPU",      "FSIZE",  "DATA",    "STACK", "CORE",  "RSS",
                                             "NPROC",    "NOFILE", "MEMLOCK", "AS",    "LOCKS", "SIGPENDING",
                                             "MSGQUEUE", "NICE",   "RTPRIO",  "RTTIME" };
        _cleanup_spec_ Spec *spec = spec_new();

        assert_int_equal(ELEMENTSOF(names), RLIM_NLIMITS);
        for (size_t i = 0; i < ELEMENTSOF(names); i++)
                assert_valid(spec_set_limit(spec, names[i], i, i + 1, &error));
        assert_int_equal(spec->limits_set, (1U << RLIM_NLIMITS) - 1);
        assert_valid(spec_set_limit(spec, "RLIMIT_NOFILE", 1024, UINT64_MAX, &error));
        assert_int_equal(spec->limits[RLIMIT_NOFILE].rlim_cur, 1024);
        assert_int_equal(spec->limits[RLIMIT_NOFILE].rlim_max, RLIM_INFINITY);
        assert_invalid(spec_set_limit(spec, "NOFILE", 2, 1, &error), "ResourceLimits", "NOFILE");
        assert_invalid(spec_set_limit(spec, "nofile", 1, 1, &error), "ResourceLimits", "nofile");
        assert_invalid(spec_set_limit(spec, "RLIMIT_", 1, 1, &error), "ResourceLimits");
        assert_invalid(spec_set_limit(spec, "", 1, 1, &error), "ResourceLimits");
        assert_int_equal(spec->limits[RLIMIT_NOFILE].rlim_cur, 1024);
}

static void test_annotations(void **state) {
        _cleanup_spec_ Spec *spec = spec_new();
        char key[16];

        assert_invalid(spec_add_annotation(spec, "", "x", &error), "Annotations");
        assert_valid(spec_add_annotation(spec, "org.example", "", &error));
        assert_invalid(spec_add_annotation(spec, "org.example", "y", &error), "Annotations", "org.example");
        assert_int_equal(spec->n_annotations, 1);
        assert_string_equal(spec->annotations[0].value, "");
        for (size_t i = 1; i < SPEC_ANNOTATIONS_MAX; i++) {
                (void) snprintf(key, sizeof(key), "%zu", i);
                assert_valid(spec_add_annotation(spec, key, "v", &error));
        }
        assert_invalid(spec_add_annotation(spec, "one more", "v", &error), "Annotations", "1024");
}

static void test_capability_names(void **state) {
        uint64_t set = 1, all;

        assert_valid(spec_parse_capabilities("AddCapabilities", NULL, &set, &error));
        assert_int_equal(set, 0);
        assert_valid(spec_parse_capabilities("AddCapabilities",
                                             LIST("CAP_SYS_ADMIN", "net_admin", "cap_Kill"), &set, &error));
        assert_int_equal(set, 1ULL << CAP_SYS_ADMIN | 1ULL << CAP_NET_ADMIN | 1ULL << CAP_KILL);
        assert_valid(spec_parse_capabilities("AddCapabilities", LIST("all"), &all, &error));
        assert_int_equal(all, (1ULL << cap_max_bits()) - 1);
        for (char *const *bad = LIST("", "CAP_", "21", "cap_21", "SYS_ADMIN,KILL", "SYS_ADMIN=ep",
                                     "SYS_NOTHING", "CAP_ALL", "CAP_CAP_KILL");
             *bad; bad++) {
                set = 7;
                assert_invalid(spec_parse_capabilities("DropCapabilities", LIST("KILL", *bad), &set, &error),
                               "DropCapabilities", *bad);
                assert_int_equal(set, 7);
        }
}

static void test_capabilities_are_put_together(void **state) {
        _cleanup_spec_ Spec *spec = spec_new();
        uint64_t all = (1ULL << cap_max_bits()) - 1, base = spec_default_capabilities();
        uint64_t chown = 1ULL << CAP_CHOWN, admin = 1ULL << CAP_SYS_ADMIN;

        assert_valid(spec_set_capabilities(spec, base, admin, chown, &error));
        assert_int_equal(spec->capabilities, (base | admin) & ~chown);
        assert_valid(spec_set_capabilities(spec, 0, 0, 0, &error));
        assert_int_equal(spec->capabilities, 0);
        /* Everything dropped but what is added by name, and the other way round. */
        assert_valid(spec_set_capabilities(spec, base, admin, all, &error));
        assert_int_equal(spec->capabilities, admin);
        assert_valid(spec_set_capabilities(spec, base, all, chown, &error));
        assert_int_equal(spec->capabilities, all & ~chown);
        assert_invalid(spec_set_capabilities(spec, base, all, all, &error), "ALL");
        assert_invalid(spec_set_capabilities(spec, base, admin | chown, chown, &error), "cap_chown",
                       "AddCapabilities", "DropCapabilities");
        assert_int_equal(spec->capabilities, all & ~chown);
}

static void test_container_names(void **state) {
        static const char *const good[] = { "a", "0", "web-1", "A_b.c+d", "x-----" };
        static const char *const bad[] = { "",    "-a",  ".a",       "_a",  "+a", "a/b",
                                           "a b", "a\n", "\xc3\xbc", "a:b", "a@b" };
        _cleanup_bus_error_ sd_bus_error e = SD_BUS_ERROR_NULL;
        char name[200];

        for (size_t i = 0; i < ELEMENTSOF(good); i++)
                assert_valid(spec_validate_name(good[i], &error));
        for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
                assert_true(spec_validate_name(bad[i], &e) < 0);
                assert_string_equal(e.name, BERTH_ERROR_INVALID_NAME);
                sd_bus_error_free(&e);
        }
        memset(name, 'a', sizeof(name));
        name[128] = 0;
        assert_valid(spec_validate_name(name, &error));
        name[128] = 'a';
        name[129] = 0;
        assert_true(spec_validate_name(name, &e) < 0);
        assert_string_equal(e.name, BERTH_ERROR_INVALID_NAME);
        sd_bus_error_free(&e);
        /* 12 bytes around it and four for each dash. */
        memset(name + 1, '-', 60);
        name[61] = 0;
        assert_valid(spec_validate_name(name, &error));
        strcpy(name + 61, "aaa");
        assert_true(spec_validate_name(name, &e) < 0);
        assert_string_equal(e.name, BERTH_ERROR_INVALID_NAME);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_defaults),
                cmocka_unit_test(test_what_is_missing_is_named),
                cmocka_unit_test(test_strings_have_limits),
                cmocka_unit_test(test_command_needs_a_program),
                cmocka_unit_test(test_root_directory_is_absolute_and_normal),
                cmocka_unit_test(test_environment_errors_tell_no_value),
                cmocka_unit_test(test_users),
                cmocka_unit_test(test_hostnames),
                cmocka_unit_test(test_words),
                cmocka_unit_test(test_numbers_have_ranges),
                cmocka_unit_test(test_resource_limits),
                cmocka_unit_test(test_annotations),
                cmocka_unit_test(test_capability_names),
                cmocka_unit_test(test_capabilities_are_put_together),
                cmocka_unit_test(test_container_names),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
