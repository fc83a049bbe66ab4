/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include <cmocka.h>

#include "service/keep.h"

#define DEADLINE_USEC (10U * 1000U * 1000U)

typedef struct Fixture {
        sd_event *event;
        Keep *keep;
        int master, slave;
        unsigned n_stopped;
        bool at_end;
} Fixture;

static void on_stopped(Keep *keep, bool at_end, void *userdata) {
        Fixture *f = userdata;

        f->n_stopped++;
        f->at_end = at_end;
}

static int set_up(void **state) {
        Fixture *f = calloc(1, sizeof(*f));
        struct termios mode;

        assert_non_null(f);
        assert_true(sd_event_new(&f->event) >= 0);
        f->master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
        assert_true(f->master >= 0);
        assert_int_equal(unlockpt(f->master), 0);
        f->slave = ioctl(f->master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
        assert_true(f->slave >= 0);
        assert_int_equal(tcgetattr(f->slave, &mode), 0);
        cfmakeraw(&mode);
        assert_int_equal(tcsetattr(f->slave, TCSANOW, &mode), 0);
        assert_int_equal(keep_new(f->event, f->master, on_stopped, f, &f->keep), 0);
        *state = f;
        return 0;
}

static int tear_down(void **state) {
        Fixture *f = *state;

        (void) keep_free(f->keep);
        (void) fd_close(f->slave);
        (void) fd_close(f->master);
        (void) sd_event_unref(f->event);
        free(f);
        return 0;
}

static void wait_stopped(Fixture *f, unsigned n) {
        while (f->n_stopped < n)
                assert_true(sd_event_run(f->event, DEADLINE_USEC) > 0);
}

/* The last byte is in the ring when the drainer ends, and it ends at EIO. */
static void drain_to_end(Fixture *f) {
        unsigned n = f->n_stopped;

        f->slave = fd_close(f->slave);
        wait_stopped(f, n + 1);
        assert_true(f->at_end);
}

static size_t scrollback(Fixture *f, char **ret) {
        _cleanup_fd_ int fd = keep_scrollback(f->keep);
        struct stat st;
        char *data;

        assert_true(fd >= 0);
        assert_int_equal(fcntl(fd, F_GET_SEALS), F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
        assert_int_equal(fstat(fd, &st), 0);
        data = malloc((size_t) st.st_size + 1);
        assert_non_null(data);
        assert_int_equal(pread(fd, data, (size_t) st.st_size, 0), st.st_size);
        data[st.st_size] = 0;
        *ret = data;
        return (size_t) st.st_size;
}

static void test_bytes_are_kept_up_to_the_end(void **state) {
        _cleanup_free_ char *kept = NULL;
        Fixture *f = *state;

        assert_int_equal(keep_drain(f->keep), 0);
        assert_int_equal(keep_drain(f->keep), -EBUSY);
        assert_int_equal(write(f->slave, "one two", 7), 7);
        drain_to_end(f);
        assert_false(keep_draining(f->keep));
        assert_int_equal(scrollback(f, &kept), 7);
        assert_string_equal(kept, "one two");
}

static void test_a_flood_leaves_the_newest(void **state) {
        _cleanup_free_ char *kept = NULL;
        Fixture *f = *state;
        char line[17];

        assert_int_equal(keep_drain(f->keep), 0);
        /* 1 MiB, from the thread that runs the event loop: nobody but the drainer can make room. */
        for (unsigned i = 0; i < 65536; i++) {
                (void) snprintf(line, sizeof(line), "%015u\n", i);
                assert_int_equal(fd_write_all(f->slave, line, 16), 0);
        }
        drain_to_end(f);
        assert_int_equal(scrollback(f, &kept), KEEP_RING_SIZE);
        for (unsigned i = 0; i < KEEP_RING_SIZE / 16; i++) {
                (void) snprintf(line, sizeof(line), "%015u\n", 65536 - KEEP_RING_SIZE / 16 + i);
                assert_memory_equal(kept + (size_t) i * 16, line, 16);
        }
}

static void test_what_a_client_left_is_undone(void **state) {
        _cleanup_free_ char *kept = NULL;
        Fixture *f = *state;
        int on = 1;

        assert_int_equal(fcntl(f->master, F_SETFL, O_RDWR | O_NONBLOCK | O_ASYNC), 0);
        assert_int_equal(ioctl(f->master, TIOCPKT, &on), 0);
        assert_int_equal(keep_drain(f->keep), 0);
        assert_int_equal(fcntl(f->master, F_GETFL) & (O_NONBLOCK | O_ASYNC), 0);
        assert_int_equal(ioctl(f->master, TIOCGPKT, &on), 0);
        assert_int_equal(on, 0);
        /* And again while it drains. */
        assert_int_equal(fcntl(f->master, F_SETFL, O_RDWR | O_NONBLOCK), 0);
        assert_int_equal(write(f->slave, "x", 1), 1);
        drain_to_end(f);
        assert_int_equal(scrollback(f, &kept), 1);
        assert_string_equal(kept, "x");
}

static void test_a_stopped_drainer_leaves_output_to_the_client(void **state) {
        _cleanup_free_ char *kept = NULL;
        Fixture *f = *state;
        char buffer[8];

        assert_int_equal(keep_stop(f->keep), 0);
        for (unsigned i = 1; i <= 20; i++) {
                assert_int_equal(keep_drain(f->keep), 0);
                assert_int_equal(keep_stop(f->keep), 0);
                wait_stopped(f, i);
                assert_false(f->at_end);
                assert_int_equal(write(f->slave, "ours", 4), 4);
                assert_int_equal(read(f->master, buffer, sizeof(buffer)), 4);
        }
        assert_int_equal(scrollback(f, &kept), 0);
}

static unsigned count(const char *path) {
        DIR *d = opendir(path);
        unsigned n = 0;

        assert_non_null(d);
        while (readdir(d))
                n++;
        (void) closedir(d);
        return n;
}

static void test_nothing_is_left(void **state) {
        Fixture *f = *state;
        unsigned fds = count("/proc/self/fd"), tasks = count("/proc/self/task");

        for (unsigned i = 1; i <= 20; i++) {
                assert_int_equal(keep_drain(f->keep), 0);
                assert_int_equal(keep_stop(f->keep), 0);
                wait_stopped(f, i);
        }
        /* The thread says that it is done just before it is gone. */
        for (unsigned i = 0; i < 1000 && count("/proc/self/task") > tasks; i++)
                (void) poll(NULL, 0, 10);
        assert_int_equal(count("/proc/self/task"), tasks);
        /* Event sources of clocks keep a descriptor, the first of its kind. */
        assert_true(count("/proc/self/fd") <= fds + 1);
}

/* VMIN and VTIME make a tty readable whose read yet waits, as it does when another reader was faster. */
static void test_a_stuck_drainer_is_cut_off_and_loses_nothing(void **state) {
        Fixture *f = *state;
        char bytes[32] = "";
        size_t n = 0;
        struct termios mode;

        assert_int_equal(tcgetattr(f->slave, &mode), 0);
        mode.c_cc[VMIN] = sizeof(bytes);
        mode.c_cc[VTIME] = 255;
        assert_int_equal(tcsetattr(f->slave, TCSANOW, &mode), 0);
        f->keep = keep_free(f->keep);
        assert_int_equal(keep_new(f->event, f->slave, on_stopped, f, &f->keep), 0);

        assert_int_equal(write(f->master, bytes, 1), 1);
        /* The byte travels by a work queue. */
        assert_int_equal(poll(&(struct pollfd) { .fd = f->slave, .events = POLLIN }, 1, 10000), 1);
        assert_int_equal(keep_drain(f->keep), 0);
        /* It has read what there was, and waits. */
        for (int waiting = 1; waiting > 0;)
                assert_int_equal(ioctl(f->slave, FIONREAD, &waiting), 0);
        assert_int_equal(keep_stop(f->keep), 0);
        wait_stopped(f, 1);
        assert_false(f->at_end);
        assert_false(keep_draining(f->keep));

        assert_int_equal(write(f->master, bytes, sizeof(bytes) - 1), sizeof(bytes) - 1);
        for (unsigned i = 0; i < 1000 && n == 0; i++) {
                _cleanup_free_ char *kept = NULL;

                n = scrollback(f, &kept);
                if (n == 0)
                        (void) poll(NULL, 0, 10);
        }
        assert_int_equal(n, sizeof(bytes));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_bytes_are_kept_up_to_the_end, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_a_flood_leaves_the_newest, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_what_a_client_left_is_undone, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_a_stopped_drainer_leaves_output_to_the_client, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(test_a_stuck_drainer_is_cut_off_and_loses_nothing, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(test_nothing_is_left, set_up, tear_down),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
