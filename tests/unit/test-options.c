/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/unit/bus-message.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "interfaces/names.h"
#include "service/options.h"
#include "service/spec-bus.h"
#include "service/streams.h"

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

static int lowest_free(void) {
        int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

        assert_true(fd >= 0);
        (void) close(fd);
        return fd;
}

#define assert_refused(error_name, word, ...)                                     \
        do {                                                                      \
                _cleanup_bus_message_ sd_bus_message *m = test_message_new(bus);  \
                _cleanup_bus_error_ sd_bus_error error = SD_BUS_ERROR_NULL;       \
                StartOptions options = { .rows = 77 };                            \
                int before;                                                       \
                assert_true(sd_bus_message_append(m, "a{sv}", __VA_ARGS__) >= 0); \
                test_message_seal(m);                                             \
                before = lowest_free();                                           \
                assert_true(options_bus_read(m, &options, &error) < 0);           \
                assert_int_equal(lowest_free(), before);                          \
                assert_int_equal(options.rows, 77);                               \
                assert_non_null(error.name);                                      \
                assert_string_equal(error.name, error_name);                      \
                if (!strstr(error.message, word))                                 \
                        fail_msg("\"%s\" does not name %s", error.message, word); \
        } while (0)

static void test_words_round_trip(void **state) {
        for (OnDisconnect i = ON_DISCONNECT_DEFAULT + 1; i < _ON_DISCONNECT_MAX; i++)
                assert_int_equal(on_disconnect_from_string(on_disconnect_to_string(i)), i);
        assert_null(on_disconnect_to_string(ON_DISCONNECT_DEFAULT));
        assert_null(on_disconnect_to_string(_ON_DISCONNECT_MAX));
        assert_int_equal(on_disconnect_from_string(""), _ON_DISCONNECT_INVALID);
}

static void test_nothing_given(void **state) {
        _cleanup_bus_message_ sd_bus_message *m = test_message_new(bus);
        _cleanup_options_ StartOptions options = START_OPTIONS_INIT;

        assert_true(sd_bus_message_append(m, "a{sv}", 0) >= 0);
        test_message_seal(m);
        assert_int_equal(options_bus_read(m, &options, NULL), 0);
        assert_int_equal(options.rows, 0);
        assert_int_equal(options.on_disconnect, ON_DISCONNECT_DEFAULT);
        assert_false(options.stdio_given);
        for (size_t i = 0; i < 3; i++)
                assert_int_equal(options.stdio[i], -EBADF);
}

static void test_size_and_words(void **state) {
        _cleanup_bus_message_ sd_bus_message *m = test_message_new(bus);
        _cleanup_options_ StartOptions options = START_OPTIONS_INIT;

        assert_true(sd_bus_message_append(m, "a{sv}", 8, "Rows", "q", 43, "Columns", "q", 65535, "XPixels",
                                          "q", 1, "YPixels", "q", 2, "OnDisconnect", "s", "kill", "Lease",
                                          "b", 0, "FileDescriptors", "a(uh)", 0, "StandardInput", "s",
                                          "null") >= 0);
        test_message_seal(m);
        assert_int_equal(options_bus_read(m, &options, NULL), 0);
        assert_true(sd_bus_message_at_end(m, 1) > 0);
        assert_int_equal(options.rows, 43);
        assert_int_equal(options.columns, 65535);
        assert_int_equal(options.x_pixels, 1);
        assert_int_equal(options.y_pixels, 2);
        assert_int_equal(options.on_disconnect, ON_DISCONNECT_KILL);
        assert_true(options.stdio_given);
        assert_int_equal(options.stdio[0], -EBADF);
}

static void same_file(int a, int b) {
        struct stat x, y;

        assert_int_equal(fstat(a, &x), 0);
        assert_int_equal(fstat(b, &y), 0);
        assert_true(x.st_dev == y.st_dev && x.st_ino == y.st_ino);
}

/* The options' descriptors are their own, CLOEXEC, and outlive the message; error follows output. */
static void test_descriptors_outlive_the_message(void **state) {
        _cleanup_options_ StartOptions options = START_OPTIONS_INIT;
        _cleanup_fd_ int in = -EBADF, out = -EBADF;
        sd_bus_message *m = test_message_new(bus);
        int pair[2], before;

        assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
        in = pair[0];
        out = pair[1];
        before = lowest_free();
        assert_true(sd_bus_message_append(m, "a{sv}", 2, "StandardOutput", "h", out, "StandardInput", "h",
                                          in) >= 0);
        test_message_seal(m);
        assert_int_equal(options_bus_read(m, &options, NULL), 0);
        sd_bus_message_unref(m);
        assert_true(options.stdio_given);
        same_file(options.stdio[0], in);
        same_file(options.stdio[1], out);
        same_file(options.stdio[2], out);
        assert_int_not_equal(options.stdio[1], options.stdio[2]);
        for (size_t i = 0; i < 3; i++)
                assert_int_equal(fcntl(options.stdio[i], F_GETFD), FD_CLOEXEC);
        options_done(&options);
        assert_int_equal(lowest_free(), before);
}

static void test_error_follows_output_only_where_it_is_not_given(void **state) {
        _cleanup_bus_message_ sd_bus_message *a = test_message_new(bus), *b = test_message_new(bus);
        _cleanup_options_ StartOptions split = START_OPTIONS_INIT, only = START_OPTIONS_INIT;
        _cleanup_fd_ int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);

        assert_true(sd_bus_message_append(a, "a{sv}", 2, "StandardOutput", "h", fd, "StandardError", "s",
                                          "null") >= 0);
        test_message_seal(a);
        assert_int_equal(options_bus_read(a, &split, NULL), 0);
        assert_true(split.stdio[1] >= 0);
        assert_int_equal(split.stdio[2], -EBADF);

        assert_true(sd_bus_message_append(b, "a{sv}", 1, "StandardError", "h", fd) >= 0);
        test_message_seal(b);
        assert_int_equal(options_bus_read(b, &only, NULL), 0);
        assert_int_equal(only.stdio[1], -EBADF);
        assert_true(only.stdio[2] >= 0);
}

static void test_refusals_name_the_key_and_leak_nothing(void **state) {
        _cleanup_fd_ int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);

        assert_refused(BERTH_ERROR_INVALID_ARGS, "Unknown key Size", 1, "Size", "q", 1);
        assert_refused(BERTH_ERROR_INVALID_ARGS, "Rows: expected q, got u", 1, "Rows", "u", 1);
        assert_refused(BERTH_ERROR_INVALID_ARGS, "Rows", 2, "Rows", "q", 1, "Rows", "q", 2);
        assert_refused(BERTH_ERROR_INVALID_ARGS, "OnDisconnect", 1, "OnDisconnect", "s", "default");
        assert_refused(BERTH_ERROR_INVALID_ARGS, "StandardInput: expected s or h, got i", 2,
                       "StandardOutput", "h", fd, "StandardInput", "i", 0);
        assert_refused(BERTH_ERROR_INVALID_ARGS, "StandardInput", 2, "StandardOutput", "h", fd,
                       "StandardInput", "s", "tty");
        assert_refused(BERTH_ERROR_INVALID_ARGS, "StandardInput", 1, "StandardInput", "s", "journal");
        assert_refused(BERTH_ERROR_NOT_SUPPORTED, "Lease", 2, "StandardOutput", "h", fd, "Lease", "b", 1);
        assert_refused(BERTH_ERROR_INVALID_ARGS, "FileDescriptors: 2 is", 1, "FileDescriptors", "a(uh)", 2,
                       3, fd, 2, fd);
        assert_refused(BERTH_ERROR_INVALID_ARGS, "FileDescriptors: 1024 is", 1, "FileDescriptors", "a(uh)",
                       1, 1024, fd);
        assert_refused(BERTH_ERROR_INVALID_ARGS, "FileDescriptors: 5 is given twice", 1, "FileDescriptors",
                       "a(uh)", 3, 5, fd, 4, fd, 5, fd);
}

static void test_numbered_descriptors(void **state) {
        _cleanup_bus_message_ sd_bus_message *m = test_message_new(bus);
        _cleanup_options_ StartOptions options = START_OPTIONS_INIT;
        _cleanup_fd_ int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
        int before = lowest_free();

        assert_true(sd_bus_message_append(m, "a{sv}", 1, "FileDescriptors", "a(uh)", 2, 1023, fd, 3, fd) >=
                    0);
        test_message_seal(m);
        assert_int_equal(options_bus_read(m, &options, NULL), 0);
        assert_int_equal(options.n_numbered, 2);
        assert_int_equal(options.numbered[0].number, 1023);
        assert_int_equal(options.numbered[1].number, 3);
        for (size_t i = 0; i < 2; i++) {
                same_file(options.numbered[i].fd, fd);
                assert_int_not_equal(options.numbered[i].fd, fd);
                assert_int_equal(fcntl(options.numbered[i].fd, F_GETFD), FD_CLOEXEC);
        }
        m = sd_bus_message_unref(m);
        options_done(&options);
        assert_int_equal(options.n_numbered, 0);
        assert_int_equal(lowest_free(), before);
}

static int open_streams(StartOptions *options, int *ends, const char *types, ...) {
        _cleanup_bus_message_ sd_bus_message *m = test_message_new(bus);
        va_list ap;

        va_start(ap, types);
        assert_true(sd_bus_message_appendv(m, types, ap) >= 0);
        va_end(ap);
        test_message_seal(m);
        assert_int_equal(options_bus_read(m, options, NULL), 0);
        return streams_open(options, ends);
}

static void close_all(int *ends) {
        for (size_t i = 0; i < 3; i++)
                ends[i] = fd_close(ends[i]);
}

/* The pipe of output is error's too, unless error has one of its own; input's goes the other way. */
static void test_pipes(void **state) {
        _cleanup_options_ StartOptions one = START_OPTIONS_INIT, two = START_OPTIONS_INIT;
        int ends[3] = { -EBADF, -EBADF, -EBADF };
        char byte = 0;

        assert_int_equal(open_streams(&one, ends, "a{sv}", 2, "StandardOutput", "s", "pipe", "StandardInput",
                                      "s", "pipe"),
                         0);
        assert_int_equal(streams_own(&one), 7);
        assert_int_equal(ends[2], -EBADF);
        same_file(one.stdio[1], one.stdio[2]);
        same_file(one.stdio[1], ends[1]);
        assert_int_equal(write(one.stdio[2], "x", 1), 1);
        assert_int_equal(read(ends[1], &byte, 1), 1);
        assert_int_equal(write(ends[0], "y", 1), 1);
        assert_int_equal(read(one.stdio[0], &byte, 1), 1);
        assert_int_equal(byte, 'y');
        for (size_t i = 0; i < 2; i++)
                assert_int_equal(fcntl(ends[i], F_GETFD), FD_CLOEXEC);
        close_all(ends);

        assert_int_equal(open_streams(&two, ends, "a{sv}", 2, "StandardOutput", "s", "pipe", "StandardError",
                                      "s", "pipe"),
                         0);
        assert_int_equal(streams_own(&two), 6);
        assert_int_equal(ends[0], -EBADF);
        assert_int_equal(write(two.stdio[2], "z", 1), 1);
        assert_int_equal(read(ends[2], &byte, 1), 1);
        assert_int_equal(byte, 'z');
        close_all(ends);
}

/* a{sv} with StandardInput=<handle>, in the byte order of this machine. */
static size_t raw_dictionary(unsigned char *body, uint32_t handle) {
        uint32_t n;

        memset(body, 0, 64);
        n = 13;
        memcpy(body + 8, &n, 4);
        memcpy(body + 12, "StandardInput", 14);
        memcpy(body + 26, "\1h", 3);
        /* Aligned to 4 after the signature's NUL. */
        memcpy(body + 32, &handle, 4);
        n = 36 - 8;
        memcpy(body, &n, 4);
        return 36;
}

static void test_handle_without_a_descriptor(void **state) {
        static const uint32_t handles[] = { 0, 1, 5, INT32_MAX, UINT32_MAX };

        for (size_t i = 0; i < ELEMENTSOF(handles); i++) {
                _cleanup_bus_message_ sd_bus_message *m = NULL;
                _cleanup_bus_error_ sd_bus_error error = SD_BUS_ERROR_NULL;
                _cleanup_options_ StartOptions options = START_OPTIONS_INIT;
                unsigned char body[64];

                m = test_message_raw("a{sv}", body, raw_dictionary(body, handles[i]));
                assert_true(options_bus_read(m, &options, &error) < 0);
                assert_string_equal(error.name, BERTH_ERROR_INVALID_ARGS);
                assert_non_null(strstr(error.message, "StandardInput"));
                assert_int_equal(options.stdio[0], -EBADF);
        }
}

static void test_taken_options_leave_nothing_behind(void **state) {
        StartOptions from = START_OPTIONS_INIT;
        _cleanup_options_ StartOptions to = START_OPTIONS_INIT;

        from.rows = 3;
        from.stdio[1] = open("/dev/null", O_WRONLY | O_CLOEXEC);
        to = options_take(&from);
        assert_int_equal(from.rows, 0);
        assert_int_equal(from.stdio[1], -EBADF);
        assert_int_equal(to.rows, 3);
        options_done(&from);
        assert_true(fcntl(to.stdio[1], F_GETFD) >= 0);
}

static void test_options_against_the_spec(void **state) {
        _cleanup_spec_ Spec *spec = spec_new();
        static const struct {
                bool terminal, stdio;
                OnDisconnect on_disconnect;
                const char *error;
        } table[] = {
                { false, false, ON_DISCONNECT_DEFAULT, NULL },
                { false, true, ON_DISCONNECT_KEEP, NULL },
                { false, true, ON_DISCONNECT_KILL, NULL },
                { false, false, ON_DISCONNECT_HANGUP, BERTH_ERROR_INVALID_ARGS },
                { true, false, ON_DISCONNECT_DEFAULT, NULL },
                { true, false, ON_DISCONNECT_HANGUP, NULL },
                { true, false, ON_DISCONNECT_KILL, NULL },
                { true, false, ON_DISCONNECT_KEEP, BERTH_ERROR_NOT_SUPPORTED },
                { true, true, ON_DISCONNECT_DEFAULT, BERTH_ERROR_INVALID_ARGS },
        };

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                _cleanup_bus_error_ sd_bus_error error = SD_BUS_ERROR_NULL;
                StartOptions options = START_OPTIONS_INIT;

                spec->terminal = table[i].terminal;
                options.stdio_given = table[i].stdio;
                options.on_disconnect = table[i].on_disconnect;
                if (table[i].error) {
                        assert_true(options_validate(&options, spec, &error) < 0);
                        assert_string_equal(error.name, table[i].error);
                } else
                        assert_int_equal(options_validate(&options, spec, &error), 0);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_words_round_trip),
                cmocka_unit_test(test_nothing_given),
                cmocka_unit_test(test_size_and_words),
                cmocka_unit_test(test_descriptors_outlive_the_message),
                cmocka_unit_test(test_error_follows_output_only_where_it_is_not_given),
                cmocka_unit_test(test_refusals_name_the_key_and_leak_nothing),
                cmocka_unit_test(test_numbered_descriptors),
                cmocka_unit_test(test_pipes),
                cmocka_unit_test(test_handle_without_a_descriptor),
                cmocka_unit_test(test_taken_options_leave_nothing_behind),
                cmocka_unit_test(test_options_against_the_spec),
        };

        return cmocka_run_group_tests(tests, set_up, tear_down);
}
