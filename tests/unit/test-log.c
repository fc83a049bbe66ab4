/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "util/cleanup.h"
#include "util/log.h"

/* What one line of an unwell service writes to standard error. */
static void capture(int priority, char *text, size_t size) {
        _cleanup_fd_ int saved = -EBADF, reader = -EBADF;
        int ends[2];
        ssize_t n;

        assert_return_code(pipe2(ends, O_CLOEXEC | O_NONBLOCK), errno);
        reader = ends[0];
        saved = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
        assert_return_code(saved, errno);
        assert_return_code(dup2(ends[1], STDERR_FILENO), errno);
        (void) close(ends[1]);
        errno = ENOENT;
        log_container(priority, "web", "berth-web.scope", "It is %s: %m", "unwell");
        assert_int_equal(errno, ENOENT);
        assert_return_code(dup2(saved, STDERR_FILENO), errno);
        n = read(reader, text, size - 1);
        text[n > 0 ? n : 0] = 0;
}

static void test_warnings_go_to_standard_error_and_notices_do_not(void **state) {
        char text[256];

        (void) unsetenv("JOURNAL_STREAM");
        capture(LOG_WARNING, text, sizeof(text));
        assert_string_equal(text, "berthd: It is unwell: No such file or directory\n");
        capture(LOG_NOTICE, text, sizeof(text));
        assert_string_equal(text, "");
}

/* As in a terminal whose emulator runs as a service. */
static void test_a_journal_stream_of_somebody_else_is_not_ours(void **state) {
        static const char *const foreign[] = { "1:1", "", "nonsense", "1:", "1:1:1", "-1:-1" };
        char text[256];

        for (size_t i = 0; i < ELEMENTSOF(foreign); i++) {
                assert_return_code(setenv("JOURNAL_STREAM", foreign[i], 1), errno);
                capture(LOG_ERR, text, sizeof(text));
                assert_string_equal(text, "berthd: It is unwell: No such file or directory\n");
        }
        (void) unsetenv("JOURNAL_STREAM");
}

static void test_lines_to_the_journal_are_not_written_to_its_stream_again(void **state) {
        _cleanup_fd_ int saved = -EBADF, file = -EBADF;
        char stream[64];
        struct stat st;

        file = memfd_create("journal", MFD_CLOEXEC);
        assert_return_code(file, errno);
        assert_return_code(fstat(file, &st), errno);
        (void) snprintf(stream, sizeof(stream), "%ju:%ju", (uintmax_t) st.st_dev, (uintmax_t) st.st_ino);
        saved = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
        assert_return_code(saved, errno);
        assert_return_code(dup2(file, STDERR_FILENO), errno);
        (void) setenv("JOURNAL_STREAM", stream, 1);
        log_message(LOG_ERR, "%s", "");
        (void) unsetenv("JOURNAL_STREAM");
        assert_return_code(dup2(saved, STDERR_FILENO), errno);
        assert_return_code(fstat(file, &st), errno);
        assert_int_equal(st.st_size, 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_warnings_go_to_standard_error_and_notices_do_not),
                cmocka_unit_test(test_a_journal_stream_of_somebody_else_is_not_ours),
                cmocka_unit_test(test_lines_to_the_journal_are_not_written_to_its_stream_again),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
