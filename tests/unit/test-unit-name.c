/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "util/cleanup.h"
#include "util/path.h"
#include "util/quote.h"
#include "util/unit-name.h"

/* The middle is what systemd-escape(1) prints. */
static void test_names_are_escaped_as_systemd_does(void **state) {
        static const struct {
                const char *name, *unit;
        } table[] = {
                { "web", "berth-web.scope" },
                { "web-1", "berth-web\\x2d1.scope" },
                { "a-b+c.d", "berth-a\\x2db\\x2bc.d.scope" },
                { "Under_Score.7", "berth-Under_Score.7.scope" },
                { ".hidden.x", "berth-\\x2ehidden.x.scope" },
                { "a/b", "berth-a-b.scope" },
                { "a\\b:c@d", "berth-a\\x5cb:c\\x40d.scope" },
                { "\xc3\xbc", "berth-\\xc3\\xbc.scope" },
                { "", "berth-.scope" },
        };

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                _cleanup_free_ char *unit = NULL;

                assert_int_equal(unit_name_scope(table[i].name, &unit), 0);
                assert_string_equal(unit, table[i].unit);
        }
}

static void test_length_is_that_of_the_escaped_name(void **state) {
        char name[300] = {}, *unit = NULL;

        memset(name, 'x', 243);
        assert_int_equal(unit_name_scope(name, &unit), 0);
        assert_int_equal(strlen(unit), 255);
        free(unit);
        unit = NULL;
        memset(name, 'x', 244);
        assert_int_equal(unit_name_scope(name, &unit), -ENAMETOOLONG);
        assert_null(unit);

        memset(name, 0, sizeof(name));
        memset(name, '-', 61);
        assert_int_equal(unit_name_scope(name, &unit), -ENAMETOOLONG);
        assert_null(unit);
}

static void test_slices(void **state) {
        static const char *const good[] = { "berth.slice",     "-.slice",       "a-b.slice",
                                            "user-1000.slice", "a\\x2db.slice", "A:_.1.slice" };
        static const char *const bad[] = { "",           ".slice",    "berth",     "berth.scope",
                                           "a/b.slice",  "-a.slice",  "a-.slice",  "a--b.slice",
                                           "a..b.slice", "a@b.slice", "a b.slice", "a.slice\n",
                                           "--.slice",   ".a.slice",  "slice" };
        char longest[300];

        for (size_t i = 0; i < ELEMENTSOF(good); i++)
                assert_true(unit_name_is_slice(good[i]));
        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                assert_false(unit_name_is_slice(bad[i]));
        memset(longest, 'a', 250);
        strcpy(longest + 249, ".slice");
        assert_true(unit_name_is_slice(longest));
        strcpy(longest + 249, "a.slice");
        assert_false(unit_name_is_slice(longest));
}

static void test_paths_are_resolved_within_the_root(void **state) {
        static const struct {
                const char *path, *normal;
        } table[] = {
                { "/a/b", "/a/b" },     { "//a//b//", "/a/b" },
                { "a/b", "/a/b" },      { "/a/./b/.", "/a/b" },
                { "/a/../b", "/b" },    { "/../../etc", "/etc" },
                { "a/b/../..", "/" },   { "", "/" },
                { "/", "/" },           { "..", "/" },
                { "/a/...", "/a/..." }, { "/a/.b/..c", "/a/.b/..c" },
        };

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                _cleanup_free_ char *normal = NULL;

                assert_int_equal(path_normalise(table[i].path, &normal), 0);
                assert_string_equal(normal, table[i].normal);
        }
        assert_true(path_has_parent("/a/../b"));
        assert_true(path_has_parent(".."));
        assert_false(path_has_parent("/a/..b/b..//..."));
}

static void test_quoted_text_is_short_and_whole(void **state) {
        char text[400] = "a\nb\x7f\x1b[0m";

        assert_string_equal(QUOTE(text), "a?b??[0m");
        memset(text, 'x', 128);
        text[128] = 0;
        assert_string_equal(QUOTE(text), text);
        text[128] = 'y';
        text[129] = 0;
        assert_int_equal(strlen(QUOTE(text)), 131);
        assert_string_equal(QUOTE(text) + 126, "xx...");
        /* A character of two bytes across the limit is left out as a whole. */
        memcpy(text + 127, "\xc3\xbc\xc3\xbc", 5);
        assert_string_equal(QUOTE(text) + 126, "x...");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_names_are_escaped_as_systemd_does),
                cmocka_unit_test(test_length_is_that_of_the_escaped_name),
                cmocka_unit_test(test_slices),
                cmocka_unit_test(test_paths_are_resolved_within_the_root),
                cmocka_unit_test(test_quoted_text_is_short_and_whole),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
