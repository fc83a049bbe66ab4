/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "service/command-lines.h"

#define DEADLINE_USEC (10U * 1000U * 1000U)

static void expect_clean(const char *bytes, size_t size, const char *expected) {
        char *text = command_line_clean(bytes, size);

        assert_non_null(text);
        assert_string_equal(text, expected);
        free(text);
}

#define CLEAN(literal, expected) expect_clean(literal, sizeof(literal) - 1, expected)

static void test_arguments_are_separated_by_spaces(void **state) {
        CLEAN("sleep\0001000\0", "sleep 1000");
        CLEAN("a\0\0b\0\0\0", "a  b");
        CLEAN("", "");
        CLEAN("\0\0", "");
        CLEAN("one", "one");
}

static void test_what_is_no_utf_8_is_replaced(void **state) {
        CLEAN("\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80");
        CLEAN("a\xff"
              "b",
              "a\xef\xbf\xbd"
              "b");
        /* Cut off; too long a form; a surrogate; beyond the last character. */
        CLEAN("\xe2\x82", "\xef\xbf\xbd\xef\xbf\xbd");
        CLEAN("\xc0\x80", "\xef\xbf\xbd\xef\xbf\xbd");
        CLEAN("\xe0\x80\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
        CLEAN("\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
        CLEAN("\xf4\x90\x80\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
        CLEAN("\xc3\0x", "\xef\xbf\xbd x");
}

typedef struct Result {
        bool done;
        char *line;
} Result;

static void on_done(const Members *members, char *const *lines, void *userdata) {
        Result *result = userdata;

        assert_int_equal(members->n, 2);
        assert_string_equal(lines[1], "");
        result->line = strdup(lines[0]);
        result->done = true;
}

static void test_a_child_reads_them(void **state) {
        Members members = { .pids = malloc(2 * sizeof(pid_t)), .n = 2 };
        Result result = {};
        sigset_t mask;
        sd_event *event;

        assert_int_equal(sigemptyset(&mask) + sigaddset(&mask, SIGCHLD), 0);
        assert_int_equal(sigprocmask(SIG_BLOCK, &mask, NULL), 0);
        assert_true(sd_event_new(&event) >= 0);
        assert_non_null(members.pids);
        members.pids[0] = getpid();
        members.pids[1] = INT32_MAX; /* nobody's */
        assert_int_equal(command_lines_read(event, &members, on_done, &result), 0);
        assert_null(members.pids);
        while (!result.done)
                assert_true(sd_event_run(event, DEADLINE_USEC) > 0);
        assert_non_null(strstr(result.line, "test-command-lines"));
        free(result.line);
        /* The child is reaped by the loop. */
        while (waitid(P_ALL, 0, &(siginfo_t) {}, WEXITED | WNOWAIT | WNOHANG) == 0)
                assert_true(sd_event_run(event, DEADLINE_USEC) > 0);
        (void) sd_event_unref(event);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_arguments_are_separated_by_spaces),
                cmocka_unit_test(test_what_is_no_utf_8_is_replaced),
                cmocka_unit_test(test_a_child_reads_them),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
