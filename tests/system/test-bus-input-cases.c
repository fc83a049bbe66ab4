/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What comes over the connection: descriptors where none belong, messages that are not what they say, and a script
 * that has nothing but busctl. The numbers are those of the list of cases from other engines' trackers. */
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "interfaces/names.h"
#include "tests/system/direct-call.h"
#include "util/fd.h"

#define MS 15000U

/* ---- descriptors in refused messages ---------------------------------------------------------------------------- */

typedef struct Target {
        const char *path, *interface, *member, *signature; /* of what comes before the descriptors */
} Target;

static const Target targets[] = {
        { BERTH_PATH, BERTH_INTERFACE_MANAGER, "NoSuchMethod", "" },
        { BERTH_PATH, "org.berth1.NoSuchInterface", "RunContainer", "" },
        { "/no/such/object", BERTH_INTERFACE_MANAGER, "RunContainer", "" },
        { BERTH_PATH, BERTH_INTERFACE_MANAGER, "RunContainer", "" },
        { BERTH_PATH, BERTH_INTERFACE_MANAGER, "RunContainer", "s" },
        { BERTH_PATH, BERTH_INTERFACE_MANAGER, "CreateContainer", "s" },
        { BERTH_PATH, BERTH_INTERFACE_MANAGER, "GetContainer", "s" },
        { BERTH_PATH, BERTH_INTERFACE_MANAGER, "ListContainers", "" },
        { BERTH_PATH, "org.freedesktop.DBus.Properties", "Get", "ss" },
        { BERTH_PATH, "org.freedesktop.DBus.Properties", "Set", "ss" },
        { BERTH_PATH, "org.freedesktop.DBus.Properties", "GetAll", "s" },
        { BERTH_PATH, "org.freedesktop.DBus.Introspectable", "Introspect", "" },
        { BERTH_PATH, "org.freedesktop.DBus.ObjectManager", "GetManagedObjects", "" },
        { BERTH_PATH, "org.freedesktop.DBus.Peer", "NoSuchMethod", "" },
        { "/org/berth1/container/held", BERTH_INTERFACE_CONTAINER, "Start", "" },
        { "/org/berth1/container/held", BERTH_INTERFACE_CONTAINER, "Signal", "i" },
        { "/org/berth1/container/held", BERTH_INTERFACE_CONTAINER, "NoSuchMethod", "" },
        { "/org/berth1/container/none", BERTH_INTERFACE_CONTAINER, "Wait", "" },
};

/* A call with this many descriptors behind its arguments. */
static sd_bus_message *new_call(sd_bus *bus, const Target *target, unsigned n_fds, int fd) {
        sd_bus_message *m;

        assert_true(sd_bus_message_new_method_call(bus, &m, BERTH_BUS_NAME, target->path, target->interface,
                                                   target->member) >= 0);
        for (const char *p = target->signature; *p; p++)
                assert_true((*p == 's' ? sd_bus_message_append(m, "s", "held")
                                       : sd_bus_message_append(m, "i", 15)) >= 0);
        for (unsigned i = 0; i < n_fds; i++)
                assert_true(sd_bus_message_append(m, "h", fd) >= 0);
        return m;
}

static void test_case_51_descriptors_of_refused_messages_are_closed(void **state) {
        const Call held = { .command = WORDS("sleep", "1000") };
        _cleanup_fd_ int null = -EBADF;
        Direct *d = *state;
        size_t n_fds;

        null = open("/dev/null", O_RDWR | O_CLOEXEC);
        assert_true(null >= 0);
        (void) must_run(d, d->bus, "held", &held, NULL);
        n_fds = direct_count_fds(d);
        for (unsigned i = 0; i < 2000; i++) {
                const Target *target = &targets[i % ELEMENTSOF(targets)];
                _cleanup_bus_message_ sd_bus_message *m = NULL;
                _cleanup_bus_error_ sd_bus_error error = SD_BUS_ERROR_NULL;

                m = new_call(d->bus, target, 1 + i % 16, null);
                if (sd_bus_call(d->bus, m, 0, &error, NULL) >= 0)
                        fail_msg("%s with descriptors succeeded", target->member);
                assert_non_null(error.name);
                if (strcmp(error.name, SD_BUS_ERROR_NO_REPLY) == 0)
                        fail_msg("%s with descriptors has no reply", target->member);
                if (i % 200 == 199)
                        direct_expect_fds(d, n_fds);
        }
        direct_expect_fds(d, n_fds);
        assert_int_equal(count_containers(d->bus), 1);
}

/* Options that are refused, with descriptors in them that were right. */
static void test_case_51_descriptors_of_refused_options_are_closed(void **state) {
        static const struct {
                const char *key, *type;
        } bad[] = {
                { "StandardInput", "s" }, { "NoSuchOption", "h" }, { "Rows", "h" }, { "OnDisconnect", "h" }
        };
        _cleanup_fd_ int null = -EBADF;
        Direct *d = *state;
        size_t n_fds;

        null = open("/dev/null", O_RDWR | O_CLOEXEC);
        assert_true(null >= 0);
        n_fds = direct_count_fds(d);
        for (unsigned i = 0; i < 200; i++) {
                _cleanup_bus_message_ sd_bus_message *m = NULL;
                _cleanup_bus_error_ sd_bus_error error = SD_BUS_ERROR_NULL;
                const char *key = bad[i % ELEMENTSOF(bad)].key;

                assert_true(sd_bus_message_new_method_call(d->bus, &m, BERTH_BUS_NAME, BERTH_PATH,
                                                           BERTH_INTERFACE_MANAGER, "RunContainer") >= 0);
                assert_true(sd_bus_message_append(m, "sa{sv}", "refused", 2, "RootDirectory", "s", d->root,
                                                  "Command", "as", 1, "true") >= 0);
                if (*bad[i % ELEMENTSOF(bad)].type == 's')
                        assert_true(sd_bus_message_append(m, "a{sv}", 3, "StandardOutput", "h", null,
                                                          "StandardError", "h", null, key, "s",
                                                          "nonsense") >= 0);
                else
                        assert_true(sd_bus_message_append(m, "a{sv}", 3, "StandardOutput", "h", null,
                                                          "StandardError", "h", null, key, "h", null) >= 0);
                assert_true(sd_bus_call(d->bus, m, 0, &error, NULL) < 0);
                assert_string_equal(error.name, BERTH_ERROR_INVALID_ARGS);
                if (!strstr(error.message, key))
                        fail_msg("%s is not named: %s", key, error.message);
        }
        direct_expect_fds(d, n_fds);
        assert_int_equal(count_containers(d->bus), 0);
}

/* ---- messages that sd-bus would not send ------------------------------------------------------------------------ */

typedef struct Raw {
        unsigned char data[4096];
        size_t n;
} Raw;

static void pad(Raw *raw, size_t to) {
        while (raw->n % to != 0)
                raw->data[raw->n++] = 0;
}

static void put_u(Raw *raw, uint32_t value) {
        pad(raw, 4);
        memcpy(raw->data + raw->n, &value, 4);
        raw->n += 4;
}

static void put_s(Raw *raw, const char *value) {
        put_u(raw, (uint32_t) strlen(value));
        memcpy(raw->data + raw->n, value, strlen(value) + 1);
        raw->n += strlen(value) + 1;
}

static void put_g(Raw *raw, const char *value) {
        raw->data[raw->n++] = (unsigned char) strlen(value);
        memcpy(raw->data + raw->n, value, strlen(value) + 1);
        raw->n += strlen(value) + 1;
}

static void put_field(Raw *raw, unsigned char field, const char *type, const char *value, uint32_t number) {
        pad(raw, 8);
        raw->data[raw->n++] = field;
        put_g(raw, type);
        if (*type == 'g')
                put_g(raw, value);
        else if (*type == 'u')
                put_u(raw, number);
        else
                put_s(raw, value);
}

/* Length of an array, and what fills it in afterwards. */
static size_t open_array(Raw *raw, size_t align) {
        size_t at;

        put_u(raw, 0);
        at = raw->n - 4;
        pad(raw, align);
        return at;
}

static void close_array(Raw *raw, size_t at, size_t align) {
        size_t begin = (at + 4 + align - 1) / align * align;
        uint32_t length = (uint32_t) (raw->n - begin);

        memcpy(raw->data + at, &length, 4);
}

/* RunContainer, StandardInput the descriptor with this index of this many that the header speaks of. */
static void put_run(Raw *raw, const Direct *d, uint32_t index, uint32_t declared) {
        Raw body = {};
        size_t at, strings;
        uint32_t length;

        put_s(&body, "raw");
        at = open_array(&body, 8);
        pad(&body, 8);
        put_s(&body, "RootDirectory");
        put_g(&body, "s");
        put_s(&body, d->root);
        pad(&body, 8);
        put_s(&body, "Command");
        put_g(&body, "as");
        strings = open_array(&body, 4);
        put_s(&body, "true");
        close_array(&body, strings, 4);
        close_array(&body, at, 8);
        at = open_array(&body, 8);
        put_s(&body, "StandardInput");
        put_g(&body, "h");
        put_u(&body, index);
        close_array(&body, at, 8);

        length = (uint32_t) body.n;
        *raw = (Raw) {};
        memcpy(raw->data, (const unsigned char[]) { 'l', 1, 0, 1 }, 4);
        raw->n = 4;
        put_u(raw, length);
        put_u(raw, 77); /* serial */
        at = open_array(raw, 8);
        put_field(raw, 1, "o", BERTH_PATH, 0);
        put_field(raw, 2, "s", BERTH_INTERFACE_MANAGER, 0);
        put_field(raw, 3, "s", "RunContainer", 0);
        put_field(raw, 6, "s", BERTH_BUS_NAME, 0);
        put_field(raw, 8, "g", "sa{sv}a{sv}", 0);
        if (declared > 0)
                put_field(raw, 9, "u", NULL, declared);
        close_array(raw, at, 8);
        pad(raw, 8);
        memcpy(raw->data + raw->n, body.data, body.n);
        raw->n += body.n;
}

static void send_raw(int socket, const Raw *raw, const int *fds, size_t n_fds) {
        union {
                struct cmsghdr header;
                char data[CMSG_SPACE(sizeof(int) * 16)];
        } control = {};
        struct iovec iov = { (void *) (uintptr_t) raw->data, raw->n };
        struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };

        if (n_fds > 0) {
                message.msg_control = control.data;
                message.msg_controllen = CMSG_SPACE(sizeof(int) * n_fds);
                control.header = (struct cmsghdr) {
                        .cmsg_level = SOL_SOCKET,
                        .cmsg_type = SCM_RIGHTS,
                        .cmsg_len = CMSG_LEN(sizeof(int) * n_fds),
                };
                memcpy(CMSG_DATA(&control.header), fds, sizeof(int) * n_fds);
        }
        assert_int_equal(sendmsg(socket, &message, MSG_NOSIGNAL), raw->n);
}

/* Reads until this text has come; false when the other end closes. */
static bool receive_raw(int socket, const char *wanted) {
        char data[8192];
        size_t n = 0;

        for (;;) {
                struct pollfd p = { .fd = socket, .events = POLLIN };
                ssize_t k;

                if (poll(&p, 1, MS) != 1)
                        fail_msg("neither %s nor an end", wanted);
                k = read(socket, data + n, sizeof(data) - n);
                if (k <= 0)
                        return false;
                n += (size_t) k;
                if (memmem(data, n, wanted, strlen(wanted)))
                        return true;
                assert_true(n < sizeof(data));
        }
}

static void test_case_51_a_handle_out_of_range_is_an_error(void **state) {
        static const uint32_t indices[] = { 1, 7, 255, 0x7fffffff, 0xffffffff };
        _cleanup_fd_ int null = -EBADF;
        Direct *d = *state;
        size_t n_fds;

        null = open("/dev/null", O_RDWR | O_CLOEXEC);
        assert_true(null >= 0);
        n_fds = direct_count_fds(d);
        for (unsigned i = 0; i < 50; i++) {
                _cleanup_fd_ int socket = -EBADF;
                Raw raw;

                socket = direct_connect_raw(d);
                put_run(&raw, d, indices[i % ELEMENTSOF(indices)], 1);
                send_raw(socket, &raw, &null, 1);
                assert_true(receive_raw(socket, BERTH_ERROR_INVALID_ARGS));
                /* None declared, none sent. */
                put_run(&raw, d, 0, 0);
                send_raw(socket, &raw, NULL, 0);
                assert_true(receive_raw(socket, BERTH_ERROR_INVALID_ARGS));
        }
        direct_expect_fds(d, n_fds);
        assert_int_equal(count_containers(d->bus), 0);
}

/* For the one test below, of what sd-bus itself leaks. */
static int setup_without_leak_check(void **state) {
        const char *options = getenv("ASAN_OPTIONS");
        _cleanup_free_ char *before = NULL;
        int r;

        before = strdup(options ?: "");
        assert_non_null(before);
        assert_int_equal(setenv("ASAN_OPTIONS", text("%s:detect_leaks=0", before), 1), 0);
        r = direct_setup_listen(state);
        assert_int_equal(setenv("ASAN_OPTIONS", before, 1), 0);
        return r;
}

static void test_case_51_a_wrong_number_of_descriptors_hurts_nobody_else(void **state) {
        Direct *d = *state;
        int nulls[3];

        for (size_t i = 0; i < ELEMENTSOF(nulls); i++)
                nulls[i] = open("/dev/null", O_RDWR | O_CLOEXEC);
        for (unsigned i = 0; i < 20; i++) {
                _cleanup_fd_ int socket = -EBADF;
                Raw raw;

                socket = direct_connect_raw(d);
                /* More are said than sent. sd-bus drops such a message and forgets its descriptors without closing
                 * them, so they are not counted here; only root and the service's own user get this far, since a
                 * bus lets no such message pass. */
                put_run(&raw, d, 0, 3);
                send_raw(socket, &raw, nulls, 1);
                (void) shutdown(socket, SHUT_WR);
                assert_false(receive_raw(socket, "no such text"));
        }
        assert_int_equal(count_containers(d->bus), 0);
        for (size_t i = 0; i < ELEMENTSOF(nulls); i++)
                (void) close(nulls[i]);
}

static void test_hello_is_answered_before_any_signal(void **state) {
        const Call call = { .command = WORDS("true"), .auto_remove = true };
        _cleanup_fd_ int socket = -EBADF;
        Direct *d = *state;
        unsigned char data[4];
        struct pollfd p;
        Raw raw = {};
        size_t at;

        socket = direct_connect_raw(d);
        /* These tell everybody of what happens. */
        for (unsigned i = 0; i < 3; i++)
                (void) must_wait(d->bus, must_run(d, d->bus, "signals", &call, NULL));
        memcpy(raw.data, (const unsigned char[]) { 'l', 1, 0, 1 }, 4);
        raw.n = 4;
        put_u(&raw, 0);
        put_u(&raw, 1);
        at = open_array(&raw, 8);
        put_field(&raw, 1, "o", "/org/freedesktop/DBus", 0);
        put_field(&raw, 2, "s", "org.freedesktop.DBus", 0);
        put_field(&raw, 3, "s", "Hello", 0);
        put_field(&raw, 6, "s", "org.freedesktop.DBus", 0);
        close_array(&raw, at, 8);
        pad(&raw, 8);
        send_raw(socket, &raw, NULL, 0);
        p = (struct pollfd) { .fd = socket, .events = POLLIN };
        assert_int_equal(poll(&p, 1, MS), 1);
        assert_int_equal(read(socket, data, sizeof(data)), sizeof(data));
        assert_int_equal(data[1], SD_BUS_MESSAGE_METHOD_RETURN);
        /* From here on it is told. */
        (void) must_wait(d->bus, must_run(d, d->bus, "signals", &call, NULL));
        assert_true(receive_raw(socket, "ContainerRemoved"));
}

static void test_garbage_ends_only_that_connection(void **state) {
        Direct *d = *state;
        size_t n_fds;

        n_fds = direct_count_fds(d);
        srand(51);
        for (unsigned i = 0; i < 50; i++) {
                _cleanup_fd_ int socket = -EBADF;
                Raw raw;

                socket = direct_connect_raw(d);
                put_run(&raw, d, 0, 0);
                /* One byte of the message is another. */
                raw.data[(unsigned) rand() % raw.n] ^= (unsigned char) (1 + rand() % 255);
                send_raw(socket, &raw, NULL, 0);
                (void) shutdown(socket, SHUT_WR);
                (void) receive_raw(socket, "no such text");
        }
        for (unsigned i = 0; count_containers(d->bus) > 0; i++) {
                _cleanup_bus_message_ sd_bus_message *reply = NULL;
                const char *path;

                /* Some of these are good messages, even with that byte. */
                assert_true(i < 100);
                assert_true(sd_bus_call_method(d->bus, BERTH_BUS_NAME, BERTH_PATH, BERTH_INTERFACE_MANAGER,
                                               "ListContainers", NULL, &reply, "") >= 0);
                assert_true(sd_bus_message_enter_container(reply, 'a', "(sssuo)") >= 0);
                assert_true(sd_bus_message_read(reply, "(sssuo)", NULL, NULL, NULL, NULL, &path) > 0);
                must_remove(d->bus, path);
        }
        direct_expect_fds(d, n_fds);
}

/* ---- annotations, slices, names --------------------------------------------------------------------------------- */

static void test_case_73_annotations_are_only_annotations(void **state) {
        const Call call = {
                .command = WORDS("sleep", "1000"),
                .annotations = WORDS("org.systemd.property.ExecStopPost", "['/bin/touch', '/tmp/pwned']",
                                     "org.systemd.property.TimeoutStopUSec", "uint64 1"),
        };
        _cleanup_bus_message_ sd_bus_message *reply = NULL;
        Direct *d = *state;
        const char *path, *key, *value;

        path = must_run(d, d->bus, "annotated", &call, NULL);
        assert_true(sd_bus_get_property(d->bus, BERTH_BUS_NAME, path, BERTH_INTERFACE_CONTAINER,
                                        "Annotations", NULL, &reply, "a{ss}") >= 0);
        assert_true(sd_bus_message_enter_container(reply, 'a', "{ss}") > 0);
        for (unsigned i = 0; i < 2; i++) {
                assert_true(sd_bus_message_read(reply, "{ss}", &key, &value) > 0);
                assert_string_equal(key, call.annotations[2 * i]);
                assert_string_equal(value, call.annotations[2 * i + 1]);
        }
        assert_true(sd_bus_message_at_end(reply, false) > 0);
        must_remove(d->bus, path);
}

static void test_case_73_a_slice_cannot_name_another_unit(void **state) {
        static const char *const bad[] = {
                "../../init.scope",
                "system.slice:berth:../../x",
                "system.slice\nx",
                "a/b.slice",
                "init.scope",
                "-.scope",
                "",
                ".slice",
        };
        char long_name[300 + sizeof(".slice")];
        Call call = { .command = WORDS("true") };
        Direct *d = *state;

        for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
                const char *message;

                call.slice = bad[i];
                message = must_fail(d, d->bus, "slice", &call, BERTH_ERROR_INVALID_SPEC);
                if (!strstr(message, "Slice"))
                        fail_msg("Slice is not named: %s", message);
        }
        memset(long_name, 'a', 300);
        strcpy(long_name + 300, ".slice");
        call.slice = long_name;
        (void) must_fail(d, d->bus, "slice", &call, BERTH_ERROR_INVALID_SPEC);
        /* A good one needs systemd. */
        call.slice = "berth-test.slice";
        assert_non_null(strstr(must_fail(d, d->bus, "slice", &call, BERTH_ERROR_NOT_SUPPORTED), "Slice"));
}

static void test_names_are_checked(void **state) {
        static const char *const bad[] = { "../x", "a/b", "-a", ".a", "a b", "a\nb", "ä", "a@b" };
        const Call call = { .command = WORDS("true") };
        char long_name[129 + 1];
        Direct *d = *state;

        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                (void) must_fail(d, d->bus, bad[i], &call, BERTH_ERROR_INVALID_NAME);
        memset(long_name, 'a', 129);
        long_name[129] = 0;
        (void) must_fail(d, d->bus, long_name, &call, BERTH_ERROR_INVALID_NAME);
        long_name[128] = 0;
        (void) must_wait(d->bus, must_run(d, d->bus, long_name, &call, NULL));
}

/* ---- busctl ----------------------------------------------------------------------------------------------------- */

static char *busctl(const Direct *d, int *ret_status, const char *arguments) {
        char *output;

        *ret_status = run_command(
                SH(text("exec busctl --address=unix:path=%s --timeout=20 %s", d->socket, arguments)),
                &output);
        return output;
}

static void expect_busctl(const Direct *d, const char *arguments, const char *expected) {
        _cleanup_free_ char *output = NULL;
        int status;

        output = busctl(d, &status, arguments);
        if (status != 0 || !strstr(output, expected))
                fail_msg("busctl %s: status %d, no '%s' in: %s", arguments, status, expected, output);
}

#define MANAGER "org.berth1 /org/berth1 org.berth1.Manager "
#define CONTAINER "org.berth1 /org/berth1/container/demo org.berth1.Container "

static void test_case_74_everything_works_from_busctl_alone(void **state) {
        Direct *d = *state;
        _cleanup_free_ char *manager = NULL, *container = NULL, *output = NULL;
        static const char *const members[] = {
                ".Start",      ".Stop",     ".Wait",   ".Resize",   ".Signal",
                ".Remove",     ".State",    ".Result", ".ExitCode", ".PID",
                ".Command",    ".Terminal", ".Rows",   ".Exited",   ".FailedStage",
                ".ExitStatus", ".Started",  ".Unit",   ".Owner",    ".ControlGroup",
        };
        int status;

        expect_busctl(d,
                      text("call " MANAGER "RunContainer 'sa{sv}a{sv}' demo 2 RootDirectory s %s "
                           "Command as 2 sleep 1000 0",
                           d->root),
                      "oa{sh} \"/org/berth1/container/demo\" 0");
        expect_busctl(d, "get-property " CONTAINER "State", "s \"running\"");
        expect_busctl(d, "get-property " CONTAINER "Command", "as 2 \"sleep\" \"1000\"");
        expect_busctl(d, "call " MANAGER "ListContainers", "\"demo\" \"running\"");
        expect_busctl(d, "call " MANAGER "GetContainer s demo", "o \"/org/berth1/container/demo\"");
        expect_busctl(d, "get-property " MANAGER "Version Features", "s \"");
        expect_busctl(d, "tree org.berth1", "/org/berth1/container/demo");
        expect_busctl(d, "call org.berth1 /org/berth1 org.freedesktop.DBus.ObjectManager GetManagedObjects",
                      "\"Name\" s \"demo\"");
        manager = busctl(d, &status, "introspect org.berth1 /org/berth1");
        assert_int_equal(status, 0);
        assert_non_null(strstr(manager, ".RunContainer"));
        assert_non_null(strstr(manager, "sa{sv}a{sv}"));
        assert_non_null(strstr(manager, ".ContainerRemoved"));
        assert_non_null(strstr(manager, "org.freedesktop.DBus.ObjectManager"));
        container = busctl(d, &status, "introspect org.berth1 /org/berth1/container/demo");
        assert_int_equal(status, 0);
        for (size_t i = 0; i < ELEMENTSOF(members); i++)
                if (!strstr(container, members[i]))
                        fail_msg("%s is not in: %s", members[i], container);
        expect_busctl(d, "call " CONTAINER "Signal i 9", "");
        expect_busctl(d, "call " CONTAINER "Wait", "iis 2 9 \"signal\"");
        expect_busctl(d, "get-property " CONTAINER "ExitCode ExitStatus", "i 2\ni 9");
        expect_busctl(d, "call " CONTAINER "Start 'a{sv}' 2 StandardOutput s null OnDisconnect s keep",
                      "a{sh} 0");
        expect_busctl(d, "call " CONTAINER "Stop t 0", "");
        expect_busctl(d, "get-property " CONTAINER "State Result", "s \"exited\"\ns \"timeout\"");
        expect_busctl(d, "call " CONTAINER "Remove b false", "");
        output = busctl(d, &status, "get-property " CONTAINER "State");
        assert_int_not_equal(status, 0);
        expect_busctl(d,
                      text("call " MANAGER
                           "CreateContainer 'sa{sv}' demo 2 RootDirectory s %s Command as 1 true",
                           d->root),
                      "o \"/org/berth1/container/demo\"");
        expect_busctl(d, "call " CONTAINER "Start 'a{sv}' 0", "a{sh} 0");
        expect_busctl(d, "call " CONTAINER "Wait", "iis 1 0 \"success\"");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                direct_test(test_case_51_descriptors_of_refused_messages_are_closed),
                direct_test(test_case_51_descriptors_of_refused_options_are_closed),
                direct_listen_test(test_case_51_a_handle_out_of_range_is_an_error),
                cmocka_unit_test_setup_teardown(test_case_51_a_wrong_number_of_descriptors_hurts_nobody_else,
                                                setup_without_leak_check, direct_teardown),
                direct_listen_test(test_hello_is_answered_before_any_signal),
                direct_listen_test(test_garbage_ends_only_that_connection),
                direct_test(test_case_73_annotations_are_only_annotations),
                direct_test(test_case_73_a_slice_cannot_name_another_unit),
                direct_test(test_names_are_checked),
                direct_listen_test(test_case_74_everything_works_from_busctl_alone),
        };

        return cmocka_run_group_tests(tests, direct_group_setup, NULL);
}
