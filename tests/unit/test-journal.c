/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "util/cleanup.h"
#include "util/fd.h"

static void test_header_then_lines(void **state) {
        const char *expected = "berth-web\nberth-web.scope\n6\n0\n0\n0\n0\nhello\n";
        char directory[] = "/tmp/berth-journal-XXXXXX", buffer[256] = "";
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        _cleanup_fd_ int server = -EBADF, peer = -EBADF;
        int fd;

        assert_non_null(mkdtemp(directory));
        (void) snprintf(address.sun_path, sizeof(address.sun_path), "%s/stdout", directory);
        assert_int_equal(journal_stream(address.sun_path, "x", ""), -ENOENT);
        server = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(bind(server, (const struct sockaddr *) &address, sizeof(address)), 0);
        assert_int_equal(listen(server, 1), 0);

        fd = journal_stream(address.sun_path, "berth-web", "berth-web.scope");
        assert_true(fd >= 0);
        assert_int_equal(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
        assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
        assert_int_equal(fd_write_all(fd, "hello\n", 6), 0);
        (void) close(fd);
        peer = accept4(server, NULL, NULL, SOCK_CLOEXEC);
        assert_true(peer >= 0);
        assert_int_equal(recv(peer, buffer, sizeof(buffer) - 1, MSG_WAITALL), strlen(expected));
        assert_string_equal(buffer, expected);
        (void) unlink(address.sun_path);
        (void) rmdir(directory);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_header_then_lines),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
