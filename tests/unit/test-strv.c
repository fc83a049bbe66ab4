/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "util/strv.h"

static void test_null_is_the_empty_list(void **state) {
        char **copy = (char **) 1;

        assert_int_equal(strv_length(NULL), 0);
        assert_false(strv_contains(NULL, "a"));
        assert_null(strv_env_get(NULL, "A"));
        assert_null(strv_free(NULL));
        assert_return_code(strv_copy(NULL, &copy), 0);
        assert_null(copy);
        copy = (char **) 1;
        assert_return_code(strv_copy((char *const[]) { NULL }, &copy), 0);
        assert_null(copy);
}

static void test_appending_copies_and_keeps_the_order(void **state) {
        _cleanup_strv_ char **list = NULL;
        char word[] = "one";

        assert_return_code(strv_append(&list, word), 0);
        word[0] = 'x';
        assert_return_code(strv_append(&list, ""), 0);
        assert_return_code(strv_append(&list, "three"), 0);
        assert_int_equal(strv_length(list), 3);
        assert_string_equal(list[0], "one");
        assert_string_equal(list[1], "");
        assert_string_equal(list[2], "three");
        assert_null(list[3]);
}

static void test_a_copy_is_deep(void **state) {
        _cleanup_strv_ char **list = NULL, **copy = NULL;

        assert_return_code(strv_append(&list, "one"), 0);
        assert_return_code(strv_append(&list, "two"), 0);
        assert_return_code(strv_copy(list, &copy), 0);
        list[0][0] = 'x';
        assert_int_equal(strv_length(copy), 2);
        assert_string_equal(copy[0], "one");
        assert_string_equal(copy[1], "two");
        assert_true(strv_contains(copy, "two"));
        assert_false(strv_contains(copy, "tw"));
        assert_false(strv_contains(copy, "twoo"));
}

static void test_the_last_value_of_a_variable_wins(void **state) {
        char *const list[] = { (char *) "A=1", (char *) "AB=2", (char *) "A=3=4",
                               (char *) "B",   (char *) "C=",   NULL };

        assert_string_equal(strv_env_get(list, "A"), "3=4");
        assert_string_equal(strv_env_get(list, "AB"), "2");
        assert_null(strv_env_get(list, "B"));
        assert_string_equal(strv_env_get(list, "C"), "");
        assert_null(strv_env_get(list, "D"));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_null_is_the_empty_list),
                cmocka_unit_test(test_appending_copies_and_keeps_the_order),
                cmocka_unit_test(test_a_copy_is_deep),
                cmocka_unit_test(test_the_last_value_of_a_variable_wins),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
