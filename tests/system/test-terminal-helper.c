/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The helper that other tests trust, tried on programs that need no trust. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/system/terminal.h"

#define MS 10000

static void test_statuses(void **state) {
        static const struct {
                const char *command;
                int status;
        } cases[] = { { "exit 0", 0 }, { "exit 42", 42 }, { "exit 255", 255 }, { "kill -9 $$", 137 } };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_terminal_test_ TerminalTest *t = NULL;

                t = terminal_test_spawn((const char *[]) { "sh", "-c", cases[i].command, NULL }, 24, 80);
                assert_int_equal(terminal_test_wait(t, MS), cases[i].status);
        }
}

static void test_a_shell_is_typed_at(void **state) {
        _cleanup_terminal_test_ TerminalTest *t = NULL;

        t = terminal_test_spawn((const char *[]) { "env", "PS1=ready> ", "sh", NULL }, 24, 80);
        assert_true(terminal_test_expect(t, "ready> ", MS));
        terminal_test_type(t, "stty size\n");
        assert_true(terminal_test_expect(t, "24 80", MS));
        terminal_test_resize(t, 43, 132);
        terminal_test_type(t, "stty size\n");
        assert_true(terminal_test_expect(t, "43 132", MS));
        terminal_test_type(t, "\004");
        assert_int_equal(terminal_test_wait(t, MS), 0);
        assert_true(terminal_test_expect_end(t, MS));
}

static void test_the_screen_is_drawn(void **state) {
        _cleanup_terminal_test_ TerminalTest *t = NULL;

        t = terminal_test_spawn(
                (const char *[]) { "sh", "-c", "printf '\\033[3;5Hh\\303\\251\\033[1;1Htop'; cat", NULL },
                10, 20);
        assert_true(terminal_test_expect_line(t, 0, "top", MS));
        assert_string_equal(terminal_test_line(t, 2), "    h\303\251");
        assert_string_equal(terminal_test_line(t, 1), "");
}

static void test_much_both_ways(void **state) {
        _cleanup_terminal_test_ TerminalTest *t = NULL;
        char line[100];

        t = terminal_test_spawn((const char *[]) { "sh", "-c", "stty -echo; echo go; cat; echo end", NULL },
                                24, 80);
        assert_true(terminal_test_expect(t, "go", MS));
        for (unsigned i = 0; i < 2000; i++) {
                (void) snprintf(line, sizeof(line), "line %06u with some more text to fill it up\n", i);
                terminal_test_type(t, line);
        }
        terminal_test_type(t, "\004");
        assert_true(terminal_test_expect(t, "line 001999 with", MS));
        assert_true(terminal_test_expect(t, "end", MS));
        assert_int_equal(terminal_test_wait(t, MS), 0);
}

static void test_a_deadline_passes(void **state) {
        _cleanup_terminal_test_ TerminalTest *t = NULL;

        t = terminal_test_spawn((const char *[]) { "cat", NULL }, 24, 80);
        assert_false(terminal_test_expect(t, "never", 50));
        assert_int_equal(terminal_test_wait(t, 50), -1);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_statuses),
                cmocka_unit_test(test_a_shell_is_typed_at),
                cmocka_unit_test(test_the_screen_is_drawn),
                cmocka_unit_test(test_much_both_ways),
                cmocka_unit_test(test_a_deadline_passes),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
