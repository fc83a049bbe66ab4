/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The service is what interfaces/ says, no more and no less; and whoever follows its signals knows its properties. */
#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <setjmp.h>

#include <cmocka.h>

#include "interfaces/names.h"
#include "tests/bus/fixture.h"
#include "tests/bus/interface.h"
#include "tests/system/launch-fixture.h"
#include "util/cleanup.h"
#include "util/strv.h"

#define CONTAINER_PATH BERTH_CONTAINER_PREFIX "/a"
#define PROPERTIES_MAX 64

/* ---- the interfaces ------------------------------------------------------------------------------------------ */

static void read_contract(const char *interface, char ***ret) {
        _cleanup_free_ char *xml = NULL;
        const char *directory = getenv("BERTH_INTERFACES");

        assert_non_null(directory);
        assert_int_equal(
                fd_read_file(AT_FDCWD, text("%s/%s.xml", directory, interface), 1, 1 << 20, &xml, NULL), 0);
        interface_read(xml, "org.berth1.", ret);
}

static Call *call_object(Fixture *f, const char *path, const char *interface, const char *member) {
        sd_bus_message *m;

        assert_true(sd_bus_message_new_method_call(f->client, &m, BERTH_BUS_NAME, path, interface, member) >=
                    0);
        return call_send(f, m);
}

static void introspect(Fixture *f, const char *path, char ***ret) {
        Call *call = call_object(f, path, "org.freedesktop.DBus.Introspectable", "Introspect");
        const char *xml;

        assert_null(call_wait(call));
        assert_true(sd_bus_message_read(call->reply, "s", &xml) > 0);
        interface_read(xml, "org.berth1.", ret);
        (void) call_free(call);
}

/* How many lines of a are not in b. */
static unsigned missing(char *const *a, char *const *b, const char *what) {
        unsigned n = 0;

        for (; *a; a++) {
                if (strv_contains(b, *a))
                        continue;
                print_error("%s: %s\n", what, *a);
                n++;
        }
        return n;
}

/* What sd-bus adds to every object, and the children. */
static void drop_standard(char **lines) {
        char **to = lines;

        for (char **line = lines; *line; line++)
                if (strncmp(*line, "interface org.freedesktop.DBus.", 31) == 0 ||
                    strncmp(*line, "node ", 5) == 0)
                        free(*line);
                else
                        *to++ = *line;
        *to = NULL;
}

static void compare(Fixture *f, const char *path, const char *interface) {
        _cleanup_strv_ char **contract = NULL, **service = NULL;

        read_contract(interface, &contract);
        assert_true(strv_length(contract) > 10);
        introspect(f, path, &service);
        drop_standard(service);
        assert_int_equal(missing(contract, service, "the service has not") +
                                 missing(service, contract, "the contract has not"),
                         0);
}

static void test_manager(void **state) {
        _cleanup_strv_ char **lines = NULL;
        Fixture *f = *state;

        compare(f, BERTH_PATH, BERTH_INTERFACE_MANAGER);
        introspect(f, BERTH_PATH, &lines);
        assert_true(strv_contains(lines, "interface org.freedesktop.DBus.ObjectManager"));
        assert_true(strv_contains(lines, "interface org.freedesktop.DBus.Properties"));
        assert_true(strv_contains(lines, "interface org.freedesktop.DBus.Introspectable"));
        assert_true(strv_contains(lines, "interface org.freedesktop.DBus.Peer"));
}

static void test_container(void **state) {
        _cleanup_strv_ char **lines = NULL, **children = NULL;
        Fixture *f = *state;

        call_succeed(call_create(f, f->client, &(TestSpec) { .name = "a", .script = "exit 0" }));
        compare(f, CONTAINER_PATH, BERTH_INTERFACE_CONTAINER);
        introspect(f, CONTAINER_PATH, &lines);
        assert_true(strv_contains(lines, "interface org.freedesktop.DBus.Properties"));
        introspect(f, BERTH_CONTAINER_PREFIX, &children);
        assert_true(strv_contains(children, "node a"));
        call_succeed(call_begin(f, f->client, "a", "Remove", "b", 0));
}

/* ---- properties, by asking and by listening -------------------------------------------------------------------- */

typedef struct Property {
        char name[64], value[512];
} Property;

typedef struct Known {
        Property properties[PROPERTIES_MAX];
        size_t n;
        bool exists;
} Known;

static Property *find_property(Known *known, const char *name) {
        for (size_t i = 0; i < known->n; i++)
                if (strcmp(known->properties[i].name, name) == 0)
                        return known->properties + i;
        assert_true(known->n < PROPERTIES_MAX);
        (void) snprintf(known->properties[known->n].name, sizeof(known->properties->name), "%s", name);
        return known->properties + known->n++;
}

/* Any value of the types that the interfaces use. */
static void read_value(sd_bus_message *m, char *value, size_t size) {
        const char *contents, *s;
        size_t n = 0;
        char type;

        assert_true(sd_bus_message_peek_type(m, &type, &contents) >= 0);
        if (type == 'v' || type == 'a' || type == 'e') {
                assert_true(sd_bus_message_enter_container(m, type, contents) > 0);
                while (sd_bus_message_at_end(m, 0) == 0) {
                        read_value(m, value + n, size - n);
                        n += strlen(value + n);
                        assert_true(n + 2 < size);
                        if (type != 'v')
                                strcpy(value + n++, ",");
                }
                assert_true(sd_bus_message_exit_container(m) >= 0);
        } else if (type == 's') {
                assert_true(sd_bus_message_read_basic(m, 's', &s) > 0);
                (void) snprintf(value, size, "'%s'", s);
        } else {
                union {
                        uint64_t t;
                        uint32_t u;
                        uint16_t q;
                } v = {};

                assert_true(sd_bus_message_read_basic(m, type, &v) > 0);
                (void) snprintf(value, size, "%llu",
                                (unsigned long long) (type == 't'   ? v.t
                                                      : type == 'q' ? v.q
                                                                    : v.u));
        }
}

/* An a{sv} over what is known. */
static void read_properties(sd_bus_message *m, Known *known) {
        assert_true(sd_bus_message_enter_container(m, 'a', "{sv}") >= 0);
        while (sd_bus_message_enter_container(m, 'e', "sv") > 0) {
                char value[sizeof(((Property *) 0)->value)] = "";
                Property *property;
                const char *name;

                assert_true(sd_bus_message_read(m, "s", &name) > 0);
                property = find_property(known, name);
                read_value(m, value, sizeof(value));
                strcpy(property->value, value);
                assert_true(sd_bus_message_exit_container(m) >= 0);
        }
        assert_true(sd_bus_message_exit_container(m) >= 0);
}

static void read_interfaces(sd_bus_message *m, Known *known) {
        const char *interface;

        assert_true(sd_bus_message_enter_container(m, 'a', "{sa{sv}}") >= 0);
        while (sd_bus_message_enter_container(m, 'e', "sa{sv}") > 0) {
                assert_true(sd_bus_message_read(m, "s", &interface) > 0);
                if (strcmp(interface, BERTH_INTERFACE_CONTAINER) == 0)
                        read_properties(m, known);
                else
                        assert_true(sd_bus_message_skip(m, "a{sv}") >= 0);
                assert_true(sd_bus_message_exit_container(m) >= 0);
        }
        assert_true(sd_bus_message_exit_container(m) >= 0);
}

static int on_added(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Known *known = userdata;
        const char *path;

        assert_true(sd_bus_message_read(m, "o", &path) > 0);
        assert_string_equal(path, CONTAINER_PATH);
        read_interfaces(m, known);
        known->exists = true;
        return 0;
}

static int on_removed(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Known *known = userdata;
        const char *path;

        assert_true(sd_bus_message_read(m, "o", &path) > 0);
        assert_string_equal(path, CONTAINER_PATH);
        known->exists = false;
        return 0;
}

static int on_changed(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Known *known = userdata;
        const char *interface;

        assert_true(sd_bus_message_read(m, "s", &interface) > 0);
        assert_string_equal(interface, BERTH_INTERFACE_CONTAINER);
        read_properties(m, known);
        return 0;
}

/* What is known by listening is what GetAll says now, for every property that promises to tell. */
static void check_known(Fixture *f, Known *known) {
        _cleanup_strv_ char **contract = NULL;
        Known now = {};
        sd_bus_message *m;
        Call *call;

        assert_true(sd_bus_message_new_method_call(f->client, &m, BERTH_BUS_NAME, CONTAINER_PATH,
                                                   "org.freedesktop.DBus.Properties", "GetAll") >= 0);
        assert_true(sd_bus_message_append(m, "s", BERTH_INTERFACE_CONTAINER) >= 0);
        call = call_send(f, m);
        assert_null(call_wait(call));
        read_properties(call->reply, &now);
        (void) call_free(call);

        read_contract(BERTH_INTERFACE_CONTAINER, &contract);
        for (char **line = contract; *line; line++) {
                char name[64], emits[16];

                if (sscanf(*line, BERTH_INTERFACE_CONTAINER " property %63s %*s read %15s", name, emits) !=
                            2 ||
                    strcmp(emits, "false") == 0)
                        continue;
                if (strcmp(find_property(&now, name)->value, find_property(known, name)->value) != 0)
                        fail_msg("%s is %s and was told to be %s", name, find_property(&now, name)->value,
                                 find_property(known, name)->value);
        }
}

static void test_signals_tell_all(void **state) {
        const TestSpec spec = { .name = "a", .script = "read x </data/go; exit 3" };
        static Known known;
        Fixture *f = *state;
        int r;

        r = sd_bus_match_signal(f->client, NULL, BERTH_BUS_NAME, BERTH_PATH,
                                "org.freedesktop.DBus.ObjectManager", "InterfacesAdded", on_added, &known);
        assert_true(r >= 0);
        r = sd_bus_match_signal(f->client, NULL, BERTH_BUS_NAME, BERTH_PATH,
                                "org.freedesktop.DBus.ObjectManager", "InterfacesRemoved", on_removed,
                                &known);
        assert_true(r >= 0);
        r = sd_bus_match_signal(f->client, NULL, BERTH_BUS_NAME, CONTAINER_PATH,
                                "org.freedesktop.DBus.Properties", "PropertiesChanged", on_changed, &known);
        assert_true(r >= 0);

        call_succeed(call_create(f, f->client, &spec));
        assert_true(known.exists);
        check_known(f, &known);
        assert_string_equal(find_property(&known, "State")->value, "'created'");

        f->systemd->job_result = "failed";
        call_fail(call_start(f, f->client, &spec), BERTH_ERROR_LAUNCH_FAILED, "scope");
        assert_string_equal(find_property(&known, "FailedStage")->value, "'scope'");
        check_known(f, &known);
        f->systemd->job_result = "done";

        assert_int_equal(mkfifo(text("%s/data/go", f->root), 0600), 0);
        for (unsigned i = 0; i < 2; i++) {
                _cleanup_fd_ int go = -EBADF;

                call_succeed(call_start(f, f->client, &spec));
                assert_string_equal(find_property(&known, "State")->value, "'running'");
                assert_string_equal(find_property(&known, "ExitStatus")->value, "0");
                assert_string_equal(find_property(&known, "Unit")->value, "'berth-a.scope'");
                assert_string_equal(find_property(&known, "FailedStage")->value, "''");
                check_known(f, &known);
                go = open(text("%s/data/go", f->root), O_WRONLY | O_CLOEXEC);
                assert_true(go >= 0);
                go = fd_close(go);
                container_wait(f, "a", CLD_EXITED, 3, "exit-code");
                assert_string_equal(find_property(&known, "State")->value, "'exited'");
                assert_string_equal(find_property(&known, "ExitStatus")->value, "3");
                assert_string_equal(find_property(&known, "Unit")->value, "''");
                assert_string_equal(find_property(&known, "PID")->value, "0");
                check_known(f, &known);
        }
        call_succeed(call_begin(f, f->client, "a", "Remove", "b", 0));
        fixture_until(f, !known.exists);
}

static void test_managed_objects(void **state) {
        _cleanup_strv_ char **contract = NULL;
        static Known known;
        Fixture *f = *state;
        const char *path;
        size_t n = 0;
        Call *call;

        call_succeed(call_create(f, f->client, &(TestSpec) { .name = "a", .script = "exit 0" }));
        call = call_object(f, BERTH_PATH, "org.freedesktop.DBus.ObjectManager", "GetManagedObjects");
        assert_null(call_wait(call));
        assert_true(sd_bus_message_enter_container(call->reply, 'a', "{oa{sa{sv}}}") > 0);
        while (sd_bus_message_enter_container(call->reply, 'e', "oa{sa{sv}}") > 0) {
                assert_true(sd_bus_message_read(call->reply, "o", &path) > 0);
                assert_string_equal(path, CONTAINER_PATH);
                read_interfaces(call->reply, &known);
                assert_true(sd_bus_message_exit_container(call->reply) >= 0);
                n++;
        }
        assert_int_equal(n, 1);
        (void) call_free(call);

        read_contract(BERTH_INTERFACE_CONTAINER, &contract);
        n = 0;
        for (char **line = contract; *line; line++)
                n += strstr(*line, " property ") != NULL;
        assert_int_equal(known.n, n);
        check_known(f, &known);
        call_succeed(call_begin(f, f->client, "a", "Remove", "b", 0));
}

/* On one connection, from the making to the end. */
static void test_order_of_signals(void **state) {
        Fixture *f = *state;
        Call *run, *wait;

        run = call_run(f, f->client, &(TestSpec) { .name = "a", .script = "exit 5", .auto_remove = true });
        wait = call_begin(f, f->client, "a", "Wait", "");
        call_succeed(run);
        call_succeed(wait);
        fixture_until(f, strstr(f->signals, "ContainerRemoved"));
        assert_string_equal(f->signals, "InterfacesAdded berth1 " CONTAINER_PATH "\n"
                                        "ContainerAdded berth1 a " CONTAINER_PATH "\n"
                                        "PropertiesChanged a " BERTH_INTERFACE_CONTAINER "\n"
                                        "PropertiesChanged a " BERTH_INTERFACE_CONTAINER "\n"
                                        "Started a PID\n"
                                        "PropertiesChanged a " BERTH_INTERFACE_CONTAINER "\n"
                                        "Exited a 1 5 exit-code\n"
                                        "InterfacesRemoved berth1 " CONTAINER_PATH "\n"
                                        "ContainerRemoved berth1 a " CONTAINER_PATH "\n");
}

static int run(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
        const struct CMUnitTest tests[] = {
                TEST(test_manager),         TEST(test_container),        TEST(test_signals_tell_all),
                TEST(test_managed_objects), TEST(test_order_of_signals),
        };

        return cmocka_run_group_tests_name("conformance", tests, NULL, NULL);
}

int main(void) {
        return fixture_main(run);
}
