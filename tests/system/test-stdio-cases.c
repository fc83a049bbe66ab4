/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Standard streams that the client sends, and what else is open in a program (nothing). The numbers are those of the
 * list of cases from other engines' trackers. */
#include <fcntl.h>
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
#include "util/fd.h"

#define MS 15000U

/* Runs cat with this input and returns what it wrote. */
static char *through_cat(const Direct *d, const char *input) {
        Call call = { .command = WORDS("cat"), .auto_remove = true };
        int in[2], out[2];
        const char *path;
        char *output;
        End end;

        assert_int_equal(pipe2(in, O_CLOEXEC), 0);
        assert_int_equal(pipe2(out, O_CLOEXEC), 0);
        call.stdio = (const int[]) { in[0], out[1], -1 };
        path = must_run(d, d->bus, "cat", &call, NULL);
        (void) close(in[0]);
        (void) close(out[1]);
        assert_int_equal(fd_write_all(in[1], input, strlen(input)), 0);
        (void) close(in[1]);
        output = read_to_end(out[0], MS);
        (void) close(out[0]);
        end = must_wait(d->bus, path);
        assert_int_equal(end.code, CLD_EXITED);
        assert_int_equal(end.status, 0);
        return output;
}

static void test_case_31_end_of_input_reaches_the_program(void **state) {
        Direct *d = *state;
        size_t n_fds = 0;

        for (unsigned i = 0; i < 1000; i++) {
                const char *input = i % 10 == 9 ? "" : "hello";
                _cleanup_free_ char *output = NULL;

                output = through_cat(d, input);
                assert_string_equal(output, input);
                if (i == 0)
                        n_fds = direct_count_fds(d);
        }
        direct_expect_fds(d, n_fds);
}

static void test_case_31_null_is_an_input_that_has_ended(void **state) {
        const Call defaults = { .command = WORDS("cat") };
        Direct *d = *state;

        for (unsigned i = 0; i < 20; i++) {
                int stdio[] = { -1, -1, -1 };
                _cleanup_fd_ int null = -EBADF;
                Call call = defaults;
                const char *path;

                null = open("/dev/null", O_RDWR | O_CLOEXEC);
                assert_true(null >= 0);
                if (i % 2)
                        stdio[0] = null;
                call.stdio = stdio;
                path = must_run(d, d->bus, "null", &call, NULL);
                assert_int_equal(must_wait(d->bus, path).status, 0);
                must_remove(d->bus, path);
        }
}

static void test_case_31_through_berthctl(void **state) {
        Direct *d = *state;

        for (unsigned i = 0; i < 50; i++) {
                _cleanup_free_ char *output = NULL;
                const char *input = i % 5 == 4 ? "" : "hello";

                assert_int_equal(run_command(SH(text("printf '%s' | %s --direct run %s -- cat", input,
                                                     path_of_berthctl(), d->root)),
                                             &output),
                                 0);
                assert_string_equal(output, input);
        }
}

static void test_error_follows_output_unless_given(void **state) {
        Call call = { .command = SH("echo out; echo err >&2") };
        _cleanup_free_ char *output = NULL, *errors = NULL, *both = NULL;
        Direct *d = *state;
        int out[2], err[2];
        const char *path;
        End end;

        both = capture(d, d->bus, &call, &end);
        assert_string_equal(both, "out\nerr\n");
        assert_int_equal(pipe2(out, O_CLOEXEC), 0);
        assert_int_equal(pipe2(err, O_CLOEXEC), 0);
        call.stdio = (const int[]) { -1, out[1], err[1] };
        path = must_run(d, d->bus, "apart", &call, NULL);
        (void) close(out[1]);
        (void) close(err[1]);
        output = read_to_end(out[0], MS);
        errors = read_to_end(err[0], MS);
        assert_string_equal(output, "out\n");
        assert_string_equal(errors, "err\n");
        (void) close(out[0]);
        (void) close(err[0]);
        (void) must_wait(d->bus, path);

        path = NULL;
        call.terminal = true;
        call.stdio = (const int[]) { 0, -1, -1 };
        (void) must_fail(d, d->bus, "both", &call, BERTH_ERROR_INVALID_ARGS);
        assert_int_equal(count_containers(d->bus), 1);
}

static void expect_three(const char *listing) {
        unsigned seen = 0;

        /* ls shows its own directory as 3. */
        for (const char *line = listing; *line; line = strchr(line, '\n') + 1) {
                char *end;
                unsigned long fd = strtoul(line, &end, 10);

                assert_true(*end == '\n' || (*end == '\r' && end[1] == '\n'));
                if (fd > 3)
                        fail_msg("descriptor %lu is open: %s", fd, listing);
                seen |= 1U << fd;
        }
        assert_int_equal(seen, 0xf);
}

static void test_case_49_the_program_has_exactly_three_descriptors(void **state) {
        const Call neighbour = { .command = WORDS("sleep", "1000"), .terminal = true };
        const Call ls = { .command = WORDS("ls", "/proc/self/fd") };
        Call tty = { .command = WORDS("ls", "-1", "/proc/self/fd"), .terminal = true, .auto_remove = true };
        int masters[30], pipes[30][2];
        Direct *d = *state;

        for (unsigned i = 0; i < 30; i++) {
                int stdio[] = { -1, -1, -1 };
                Call call = neighbour;

                assert_int_equal(pipe2(pipes[i], O_CLOEXEC), 0);
                masters[i] = -EBADF;
                (void) direct_connect(d);
                if (i % 2) {
                        call.terminal = false;
                        stdio[0] = pipes[i][0];
                        stdio[1] = pipes[i][1];
                        call.stdio = stdio;
                }
                (void) must_run(d, d->clients[i], text("neighbour-%u", i), &call,
                                i % 2 ? NULL : &masters[i]);
        }
        for (unsigned i = 0; i < 10; i++) {
                _cleanup_free_ char *piped = NULL, *typed = NULL;
                _cleanup_fd_ int master = -EBADF;
                const char *path;
                End end;

                piped = capture(d, d->bus, &ls, &end);
                expect_three(piped);
                path = must_run(d, d->bus, "", &tty, &master);
                typed = read_to_end(master, MS);
                expect_three(typed);
                (void) must_wait(d->bus, path);
        }
        for (unsigned i = 0; i < 30; i++) {
                (void) fd_close(masters[i]);
                (void) close(pipes[i][0]);
                (void) close(pipes[i][1]);
        }
}

static void test_300_runs_lose_no_byte(void **state) {
        Direct *d = *state;

        for (unsigned i = 0; i < 300; i++) {
                _cleanup_free_ char *output = NULL;
                const char *line = text("%u the quick brown fox %u", i, i * 7919);

                assert_int_equal(run_command(WORDS(path_of_berthctl(), "--direct", "run", d->root, "--",
                                                   "echo", line),
                                             &output),
                                 0);
                assert_string_equal(output, text("%s\n", line));
        }
}

static void test_100_runs_on_a_terminal_lose_no_byte(void **state) {
        Direct *d = *state;

        for (unsigned i = 0; i < 100; i++) {
                const char *line = text("%u jumps over %u", i, i * 7919), *output;
                _cleanup_terminal_test_ TerminalTest *t = NULL;

                t = terminal_test_spawn(
                        WORDS(path_of_berthctl(), "--direct", "run", "-t", d->root, "--", "echo", line), 24,
                        80);
                assert_int_equal(terminal_test_wait(t, MS), 0);
                assert_true(terminal_test_expect_end(t, MS));
                output = terminal_test_output(t, NULL);
                if (!strstr(output, text("%s\r\n", line)))
                        fail_msg("round %u: %s", i, output);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                direct_test(test_case_31_end_of_input_reaches_the_program),
                direct_test(test_case_31_null_is_an_input_that_has_ended),
                direct_test(test_case_31_through_berthctl),
                direct_test(test_error_follows_output_unless_given),
                direct_listen_test(test_case_49_the_program_has_exactly_three_descriptors),
                direct_test(test_300_runs_lose_no_byte),
                direct_test(test_100_runs_on_a_terminal_lose_no_byte),
        };

        return cmocka_run_group_tests(tests, direct_group_setup, NULL);
}
