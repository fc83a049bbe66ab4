/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "service/state.h"
#include "util/fd.h"

typedef struct Test {
        char base[32];
        char path[64];
        State *state;
        char told[256]; /* name and unit of every record that was told of */
} Test;

static int setup(void **state) {
        Test *t;

        t = calloc(1, sizeof(*t));
        assert_non_null(t);
        (void) snprintf(t->base, sizeof(t->base), "/tmp/berth-state.XXXXXX");
        assert_non_null(mkdtemp(t->base));
        (void) snprintf(t->path, sizeof(t->path), "%s/containers", t->base);
        assert_return_code(state_open(t->path, &t->state), 0);
        *state = t;
        return 0;
}

static int teardown(void **state) {
        Test *t = *state;

        (void) state_free(t->state);
        /* Every test leaves the directory empty. */
        assert_return_code(rmdir(t->path), 0);
        assert_return_code(rmdir(t->base), 0);
        free(t);
        return 0;
}

static void tell(const char *name, const char *unit, void *userdata) {
        Test *t = userdata;
        size_t length = strlen(t->told);

        (void) snprintf(t->told + length, sizeof(t->told) - length, "%s=%s;", name, unit);
}

static void put(const Test *t, const char *name, const void *data, size_t size) {
        _cleanup_fd_ int fd = -EBADF;
        char path[128];

        (void) snprintf(path, sizeof(path), "%s/%s", t->path, name);
        fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        assert_return_code(fd, 0);
        assert_return_code(fd_write_all(fd, data, size), 0);
}

static void test_what_is_saved_is_told_of(void **state) {
        Test *t = *state;
        struct stat st;

        assert_return_code(stat(t->path, &st), 0);
        assert_int_equal(st.st_mode & 07777, 0700);
        assert_return_code(state_save(t->state, "one", "berth-one.scope"), 0);
        assert_return_code(state_save(t->state, "one", "berth-one.scope"), 0);
        assert_return_code(state_foreach(t->state, tell, t), 0);
        assert_string_equal(t->told, "one=berth-one.scope;");
        state_remove(t->state, "one");
        state_remove(t->state, "one");
        t->told[0] = 0;
        assert_return_code(state_foreach(t->state, tell, t), 0);
        assert_string_equal(t->told, "");
}

#define TEXT(text) \
        { text, sizeof(text) - 1 }

static void test_what_is_torn_or_foreign_is_removed_and_not_told_of(void **state) {
        static const struct {
                const char *data;
                size_t size;
        } foreign[] = {
                TEXT(""),
                TEXT("berth-container 1\n"),
                TEXT("berth-container 1\nunit=berth-one.scope\n"),
                TEXT("berth-container 2\nunit=berth-one.scope\nend\n"),
                TEXT("berth-container 1\nunit=berth-two.scope\nend\n"),
                TEXT("berth-container 1\nunit=ssh.service\nend\n"),
                TEXT("berth-container 1\nunit=berth-one.scope\nend\nmore\n"),
                TEXT("berth-container 1\nunit=berth-one.scope\nend\n\0more"),
                TEXT("berth-container 1\nunit=berth-one.scope\0\nend\n"),
        };
        Test *t = *state;
        char path[128];

        (void) snprintf(path, sizeof(path), "%s/one", t->path);
        for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++) {
                put(t, "one", foreign[i].data, foreign[i].size);
                assert_return_code(state_foreach(t->state, tell, t), 0);
                if (*t->told || access(path, F_OK) >= 0)
                        fail_msg("record %zu: %s", i, t->told);
        }

        put(t, ".one.tmp", "berth-container 1\nunit=berth-one.scope\nend\n", 43);
        assert_return_code(symlink("/etc/passwd", path), 0);
        assert_return_code(state_foreach(t->state, tell, t), 0);
        assert_string_equal(t->told, "");
        assert_int_equal(access(path, F_OK), -1);
        assert_return_code(access("/etc/passwd", F_OK), 0);
        assert_return_code(mkdir(path, 0700), 0);
        assert_return_code(state_foreach(t->state, tell, t), 0);
        assert_string_equal(t->told, "");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_what_is_saved_is_told_of, setup, teardown),
                cmocka_unit_test_setup_teardown(test_what_is_torn_or_foreign_is_removed_and_not_told_of,
                                                setup, teardown),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
