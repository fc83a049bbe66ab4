/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "util/cleanup.h"
#include "util/fd.h"

static void test_descriptors_travel_with_cloexec(void **state) {
        _cleanup_fd_ int a = -EBADF, b = -EBADF, got = -EBADF;
        int pair[2], fds[1];
        char buffer[8];
        size_t n;

        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
        a = pair[0];
        b = pair[1];
        assert_int_equal(fd_send(a, "hello", 5, &a, 1), 0);
        assert_int_equal(fd_receive(b, buffer, sizeof(buffer), fds, 1, &n), 5);
        assert_int_equal(n, 1);
        got = fds[0];
        assert_int_equal(fcntl(got, F_GETFD), FD_CLOEXEC);
        assert_memory_equal(buffer, "hello", 5);
}

static int lowest_free(void) {
        int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

        assert_true(fd >= 0);
        (void) close(fd);
        return fd;
}

static void test_too_many_descriptors_are_refused_and_closed(void **state) {
        _cleanup_fd_ int a = -EBADF, b = -EBADF;
        int pair[2], fds[1], before;
        char buffer[8];
        size_t n = 7;

        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
        a = pair[0];
        b = pair[1];
        before = lowest_free();
        assert_int_equal(fd_send(a, "x", 1, (int[]) { a, a, b }, 3), 0);
        assert_int_equal(fd_receive(b, buffer, sizeof(buffer), fds, 1, &n), -EMSGSIZE);
        assert_int_equal(n, 7);
        assert_int_equal(lowest_free(), before);
}

static void test_long_message_is_refused(void **state) {
        _cleanup_fd_ int a = -EBADF, b = -EBADF;
        int pair[2];
        char buffer[2];
        size_t n;

        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
        a = pair[0];
        b = pair[1];
        assert_int_equal(fd_send(a, "long", 4, NULL, 0), 0);
        assert_int_equal(fd_receive(b, buffer, sizeof(buffer), NULL, 0, &n), -EMSGSIZE);
}

static void test_sealed_memory_cannot_be_written(void **state) {
        _cleanup_fd_ int fd = -EBADF;
        char buffer[3];

        fd = fd_sealed_memory("test", "abc", 3);
        assert_true(fd >= 0);
        assert_int_equal(pwrite(fd, "x", 1, 0), -1);
        assert_int_equal(ftruncate(fd, 0), -1);
        assert_int_equal(pread(fd, buffer, 3, 0), 3);
        assert_memory_equal(buffer, "abc", 3);
}

static void test_only_regular_files_up_to_the_limit_are_read(void **state) {
        char directory[] = "/tmp/berth-test-XXXXXX", path[64];
        _cleanup_free_ char *data = NULL;
        _cleanup_fd_ int fd = -EBADF;
        size_t size;

        assert_non_null(mkdtemp(directory));
        (void) snprintf(path, sizeof(path), "%s/fifo", directory);
        assert_int_equal(mkfifo(path, 0600), 0);
        assert_int_equal(fd_read_file(AT_FDCWD, path, 0, 100, &data, &size), -EINVAL);
        assert_int_equal(unlink(path), 0);

        (void) snprintf(path, sizeof(path), "%s/file", directory);
        fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
        assert_true(fd >= 0);
        assert_int_equal(fd_write_all(fd, "0123456789", 10), 0);
        assert_int_equal(fd_read_file(AT_FDCWD, path, 0, 9, &data, &size), -EFBIG);
        assert_null(data);
        assert_int_equal(fd_read_file(AT_FDCWD, path, 0, 10, &data, &size), 0);
        assert_int_equal(size, 10);
        assert_string_equal(data, "0123456789");
        assert_int_equal(unlink(path), 0);
        assert_int_equal(rmdir(directory), 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_descriptors_travel_with_cloexec),
                cmocka_unit_test(test_too_many_descriptors_are_refused_and_closed),
                cmocka_unit_test(test_long_message_is_refused),
                cmocka_unit_test(test_sealed_memory_cannot_be_written),
                cmocka_unit_test(test_only_regular_files_up_to_the_limit_are_read),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
