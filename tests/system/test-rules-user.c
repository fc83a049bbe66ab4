/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The same service as an ordinary user's, who has one id and no privilege: what works, and what is refused with the
 * reason. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "interfaces/names.h"
#include "tests/system/direct-call.h"
#include "util/fd.h"

#define MS 15000U

static void expect(const Direct *d, const Call *call, const char *command, const char *expected) {
        _cleanup_free_ char *output = NULL;

        output = capture_sh(d, call, command);
        if (strcmp(output, expected) != 0)
                fail_msg("%s: '%s', and not '%s'", command, output, expected);
}

static void test_read_only_of_the_host_works(void **state) {
        const Call call = { .root = "/", .read_only = true };
        Direct *d = *state;

        expect(d, &call, "id -u; touch /x 2>/dev/null || echo read-only; exit 0", "0\nread-only\n");
}

static void test_statuses_arrive(void **state) {
        Direct *d = *state;

        for (unsigned i = 0; i < 20; i++) {
                const Call call = { .command = SH("exit 42") };
                End end;

                free(capture(d, d->bus, &call, &end));
                assert_int_equal(end.code, CLD_EXITED);
                assert_int_equal(end.status, 42);
        }
}

static void test_ephemeral_works_without_submounts(void **state) {
        const Call call = { .ephemeral = true };
        Direct *d = *state;

        /* The files are root's, whom this user namespace does not know: only what is new can be written. */
        expect(d, &call, "cat /etc/secret; touch /tmp/x 2>/dev/null; id -u; exit 0", "secret\n0\n");
}

static void test_ephemeral_with_submounts_names_the_mount(void **state) {
        const Call call = { .ephemeral = true, .command = WORDS("true") };
        Direct *d = *state;
        const char *message, *place = text("%s/data", d->root);

        assert_int_equal(mount("tmpfs", place, "tmpfs", 0, NULL), 0);
        /* The service's mount namespace is the one that this was made in. */
        message = must_fail(d, d->bus, "overlay", &call, BERTH_ERROR_NOT_SUPPORTED);
        assert_int_equal(umount(text("%s/data", d->root)), 0);
        if (!strstr(message, text("%s/data", d->root)) || !strstr(message, "ReadOnly"))
                fail_msg("neither the mount nor a way out: %s", message);
}

static void test_terminal_works(void **state) {
        const Call call = {
                .command = SH("tty; stty size; [ -c $(tty) ] && echo exists; stat -c %a $(tty)"),
                .terminal = true,
                .rows = 43,
                .columns = 132,
        };
        Direct *d = *state;

        for (unsigned i = 0; i < 20; i++) {
                _cleanup_free_ char *output = NULL;
                _cleanup_fd_ int master = -EBADF;
                const char *path;

                path = must_run(d, d->bus, "terminal", &call, &master);
                output = read_to_end(master, MS);
                if (strcmp(output, "/dev/pts/0\r\n43 132\r\nexists\r\n620\r\n") != 0 &&
                    strcmp(output, "/dev/console\r\n43 132\r\nexists\r\n620\r\n") != 0)
                        fail_msg("%s", output);
                (void) must_wait(d->bus, path);
                must_remove(d->bus, path);
        }
}

static void test_resize_and_hang_up_work(void **state) {
        const Call call = { .command = WORDS("payload", "follow-size"),
                            .terminal = true,
                            .timeout_stop_usec = 100000 };
        TerminalTest *t;
        Direct *d = *state;
        const char *path;
        int master;
        End end;

        path = must_run(d, d->bus, "resize", &call, &master);
        t = terminal_test_attach(master, 24, 80);
        assert_true(terminal_test_expect(t, "ready 24 80", MS));
        must_call(d->bus, path, "Resize", "qq", 30, 100);
        assert_true(terminal_test_expect(t, "winch 30 100", MS));
        terminal_test_resize(t, 31, 101);
        assert_true(terminal_test_expect(t, "winch 31 101", MS));
        (void) terminal_test_free(t);
        /* It blocks SIGTERM and takes it as the end. */
        end = must_wait(d->bus, path);
        assert_int_equal(end.code, CLD_EXITED);
        assert_int_equal(end.status, 0);
}

static void test_starts_own_size_is_later_than_a_resize_before_it(void **state) {
        const Call call = { .command = WORDS("payload", "size"), .terminal = true };
        _cleanup_free_ char *output = NULL;
        _cleanup_fd_ int master = -EBADF;
        Direct *d = *state;
        const char *path;

        path = must_create(d, d->bus, "later", &call);
        must_call(d->bus, path, "Resize", "qq", 51, 151);
        master = must_start_sized(d->bus, path, 30, 90);
        output = read_to_end(master, MS);
        assert_string_equal(output, "30 90\r\n");
        must_remove(d->bus, path);
}

static void test_the_host_cannot_be_seen_through_the_user_namespace(void **state) {
        const Call call = {};
        _cleanup_free_ char *map = NULL;
        Direct *d = *state;

        map = capture_sh(d, &call, "cat /proc/self/uid_map /proc/self/gid_map; cat /proc/self/setgroups");
        assert_non_null(strstr(map, "deny"));
        assert_non_null(strstr(map, text("%u", DIRECT_USER)));
        expect(d, &call, "cat /proc/self/status | grep -c 'Seccomp:.2'; ls /sys/class/net", "1\nlo\n");
        expect(d, &call,
               "for f in kcore keys; do [ ! -e /proc/$f ] || [ -z \"$(head -c 1 /proc/$f)\" ] || echo $f; "
               "done",
               "");
}

static void test_another_user_is_refused_and_named(void **state) {
        const Call call = { .command = WORDS("true"), .user = "app" };
        Direct *d = *state;
        const char *message;

        message = must_fail(d, d->bus, "user", &call, BERTH_ERROR_LAUNCH_FAILED);
        if (!strstr(message, "container user: credentials"))
                fail_msg("%s", message);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                direct_user_test(test_read_only_of_the_host_works),
                direct_user_test(test_statuses_arrive),
                direct_user_test(test_ephemeral_works_without_submounts),
                direct_user_test(test_ephemeral_with_submounts_names_the_mount),
                direct_user_test(test_terminal_works),
                direct_user_test(test_resize_and_hang_up_work),
                direct_user_test(test_starts_own_size_is_later_than_a_resize_before_it),
                direct_user_test(test_the_host_cannot_be_seen_through_the_user_namespace),
                direct_user_test(test_another_user_is_refused_and_named),
        };

        return cmocka_run_group_tests(tests, direct_group_setup, NULL);
}
