/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Pipes that the service makes for a program, and descriptors beside the standard ones. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "interfaces/names.h"
#include "tests/system/direct-call.h"
#include "util/fd.h"

#define MS 15000U
#define ROUNDS 1000U
#define BYTES (UINT64_C(100) << 20)

#define PIPES(in, out, err) \
        ((const char *const[]) { (in) ? "pipe" : NULL, (out) ? "pipe" : NULL, (err) ? "pipe" : NULL })

static void close_ends(int ends[3]) {
        for (size_t i = 0; i < 3; i++)
                ends[i] = fd_close(ends[i]);
}

static void test_every_byte_in_and_out_and_nothing_kept(void **state) {
        Direct *d = *state;
        const Call init = { .command = WORDS("sleep", "1000") };
        const Call cat = { .command = WORDS("cat"), .streams = PIPES(1, 1, 0) };
        _cleanup_free_ char *container = strdup(must_run(d, d->bus, "pipes", &init, NULL));
        size_t n_fds = 0;

        for (unsigned i = 0; i < ROUNDS; i++) {
                const char *input = i % 10 == 9 ? "" : text("round %u\n", i);
                _cleanup_free_ char *output = NULL;
                const char *process;
                int ends[3];

                process = must_exec_piped(d->bus, container, &cat, ends);
                assert_int_equal(ends[2], -EBADF);
                assert_int_equal(fd_write_all(ends[0], input, strlen(input)), 0);
                ends[0] = fd_close(ends[0]);
                output = read_to_end(ends[1], MS);
                assert_string_equal(output, input);
                close_ends(ends);
                assert_int_equal(process_must_wait(d->bus, process).status, 0);
                if (i == 0)
                        n_fds = direct_count_fds(d);
        }
        direct_expect_fds(d, n_fds);
}

static uint64_t count_to_end(int fd) {
        static char buffer[1 << 16];
        uint64_t total = 0;
        ssize_t n;

        while ((n = read(fd, buffer, sizeof(buffer))) > 0)
                total += (uint64_t) n;
        assert_int_equal(n, 0);
        return total;
}

static void test_much_goes_past_the_service(void **state) {
        const Call call = { .command = SH("head -c 104857600 /dev/zero"), .streams = PIPES(0, 1, 0) };
        Direct *d = *state;
        uint64_t ticks = direct_cpu_ticks(d);
        int ends[3];

        (void) must_run_piped(d, d->bus, "much", &call, ends);
        assert_true(count_to_end(ends[1]) == BYTES);
        close_ends(ends);
        /* The start and the end of a container are within a tick or two; a copy would be tens. */
        assert_true(direct_cpu_ticks(d) - ticks <= 3);
}

static void test_error_shares_the_pipe_unless_it_has_its_own(void **state) {
        const char *const command[] = { "sh", "-c", "echo out; echo err >&2", NULL };
        Direct *d = *state;
        int ends[3];

        for (unsigned own = 0; own < 2; own++) {
                const Call call = { .command = command, .auto_remove = true, .streams = PIPES(0, 1, own) };
                _cleanup_free_ char *output = NULL, *errors = NULL;
                const char *path = must_run_piped(d, d->bus, "both", &call, ends);

                output = read_to_end(ends[1], MS);
                assert_string_equal(output, own ? "out\n" : "out\nerr\n");
                if (own) {
                        errors = read_to_end(ends[2], MS);
                        assert_string_equal(errors, "err\n");
                } else
                        assert_int_equal(ends[2], -EBADF);
                close_ends(ends);
                assert_int_equal(must_wait(d->bus, path).status, 0);
        }
}

static void test_the_user_owns_the_pipes_and_can_open_them_again(void **state) {
        const Call call = {
                .command = SH("cat /proc/self/fd/0 >/proc/self/fd/1; echo again >/proc/self/fd/2"),
                .user = "1000:1001",
                .streams = PIPES(1, 1, 1),
        };
        Direct *d = *state;
        _cleanup_free_ char *output = NULL, *errors = NULL;
        struct stat st;
        int ends[3];

        (void) must_run_piped(d, d->bus, "owner", &call, ends);
        for (unsigned i = 0; i < 3; i++) {
                assert_int_equal(fstat(ends[i], &st), 0);
                assert_int_equal(st.st_uid, 1000);
                assert_int_equal(st.st_gid, 1001);
        }
        assert_int_equal(fd_write_all(ends[0], "hello", 5), 0);
        ends[0] = fd_close(ends[0]);
        output = read_to_end(ends[1], MS);
        errors = read_to_end(ends[2], MS);
        assert_string_equal(output, "hello");
        assert_string_equal(errors, "again\n");
        close_ends(ends);
}

static void test_exactly_three_descriptors(void **state) {
        const Call call = { .command = SH("ls /proc/self/fd | tr '\\n' ' '"), .streams = PIPES(1, 1, 1) };
        _cleanup_free_ char *output = NULL;
        Direct *d = *state;
        int ends[3];

        (void) must_run_piped(d, d->bus, "three", &call, ends);
        output = read_to_end(ends[1], MS);
        /* 3 is ls' own, of the directory. */
        assert_string_equal(output, "0 1 2 3 ");
        close_ends(ends);
}

/* Numbers that the launching process uses itself, low ones and the last, in an order that would let one overwrite the
 * other; nothing but them is open in the program. */
static void test_descriptors_come_under_their_numbers(void **state) {
        static const unsigned numbers[] = { 5, 3, 4, 9, 8, 7, 6, 10, 12, 11, 100, 1023 };
        enum { N = sizeof(numbers) / sizeof(numbers[0]) };
        const Call init = { .command = WORDS("sleep", "1000") };
        int list[2 * N + 1], own[N], ends[3];
        Direct *d = *state;
        const char *container = must_run(d, d->bus, "numbers", &init, NULL);

        for (unsigned i = 0; i < N; i++) {
                own[i] = fd_sealed_memory("number", text("%u\n", numbers[i]),
                                          strlen(text("%u\n", numbers[i])));
                assert_true(own[i] >= 0);
                list[2 * i] = (int) numbers[i];
                list[2 * i + 1] = own[i];
        }
        list[2 * N] = -1;
        for (unsigned exec = 0; exec < 2; exec++) {
                const Call call = {
                        .command = SH("cd /proc/self/fd; for i in *; do test $i -gt 2 -a -e $i && echo $i: "
                                      "$(cat $i); done"),
                        .auto_remove = !exec,
                        .streams = PIPES(0, 1, 0),
                        .numbered = list,
                };
                _cleanup_free_ char *output = NULL;

                (void) (exec ? must_exec_piped(d->bus, container, &call, ends)
                             : must_run_piped(d, d->bus, "new", &call, ends));
                output = read_to_end(ends[1], MS);
                close_ends(ends);
                for (unsigned i = 0; i < N; i++)
                        if (!strstr(output, text("%u: %u\n", numbers[i], numbers[i])))
                                fail_msg("%u is not there: %s", numbers[i], output);
                assert_null(strstr(output, "13:"));
        }
        for (unsigned i = 0; i < N; i++)
                (void) close(own[i]);
}

static void test_a_background_job_delays_no_end(void **state) {
        const Call init = { .command = WORDS("sleep", "1000") };
        const Call call = { .command = SH("sleep 1000 & echo gone"), .streams = PIPES(0, 1, 0) };
        Direct *d = *state;
        const char *container = must_run(d, d->bus, "background", &init, NULL);
        uint64_t begin = now_usec();
        int ends[3];

        assert_int_equal(process_must_wait(d->bus, must_exec_piped(d->bus, container, &call, ends)).status,
                         0);
        assert_true(now_usec() - begin < 5000000);
        close_ends(ends);
}

/* The direct mode has no scopes that lines could belong to. */
static void test_no_journal_without_systemd(void **state) {
        const Call call = { .command = WORDS("true"),
                            .streams = (const char *const[]) { NULL, NULL, "journal" } };
        const char *message;
        Direct *d = *state;

        message = must_fail(d, d->bus, "journal", &call, BERTH_ERROR_NOT_SUPPORTED);
        assert_non_null(strstr(message, "StandardError=journal"));
        assert_int_equal(count_containers(d->bus), 0);
}

static void test_failed_starts_keep_no_pipe(void **state) {
        const Call call = { .command = WORDS("/no/such"), .streams = PIPES(1, 1, 1) };
        Direct *d = *state;
        size_t n_fds = 0;

        for (unsigned i = 0; i < 20; i++) {
                (void) must_fail(d, d->bus, "none", &call, BERTH_ERROR_COMMAND_NOT_FOUND);
                if (i == 0)
                        n_fds = direct_count_fds(d);
        }
        direct_expect_fds(d, n_fds);
}

static void test_pipes_of_an_ordinary_user(void **state) {
        const Call call = { .command = SH("cat >/proc/self/fd/1"), .streams = PIPES(1, 1, 0) };
        _cleanup_free_ char *output = NULL;
        Direct *d = *state;
        int ends[3];

        (void) must_run_piped(d, d->bus, "user", &call, ends);
        assert_int_equal(fd_write_all(ends[0], "mine", 4), 0);
        ends[0] = fd_close(ends[0]);
        output = read_to_end(ends[1], MS);
        assert_string_equal(output, "mine");
        close_ends(ends);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                direct_test(test_every_byte_in_and_out_and_nothing_kept),
                direct_test(test_much_goes_past_the_service),
                direct_test(test_error_shares_the_pipe_unless_it_has_its_own),
                direct_test(test_the_user_owns_the_pipes_and_can_open_them_again),
                direct_test(test_exactly_three_descriptors),
                direct_test(test_descriptors_come_under_their_numbers),
                direct_test(test_a_background_job_delays_no_end),
                direct_test(test_no_journal_without_systemd),
                direct_test(test_failed_starts_keep_no_pipe),
                direct_user_test(test_pipes_of_an_ordinary_user),
        };

        return cmocka_run_group_tests(tests, direct_group_setup, NULL);
}
