/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* berthctl --direct as a person uses it: on a terminal, in a pipe, killed in the middle. $BERTHCTL and
 * $BERTHD name the programs under test. */
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/pidfd.h>
#include <termios.h>

#include <cmocka.h>

#include "tests/system/terminal.h"
#include "util/strv.h"

#define MS 30000

static const char *berthctl(void) {
        const char *path = getenv("BERTHCTL");

        assert_non_null(path);
        return path;
}

/* berthctl --direct run OPTIONS… --ephemeral / -- sh -c COMMAND on a terminal of its own. */
static TerminalTest *run(unsigned rows, unsigned columns, const char *option, const char *command) {
        const char *const argv[] = { berthctl(), "--direct", "run", option,  "--ephemeral", "/",
                                     "--",       "sh",       "-c",  command, NULL };

        return terminal_test_spawn(argv, rows, columns);
}

/* A line for sh on the host, with $BERTHCTL. */
static TerminalTest *host_shell(const char *line) {
        return terminal_test_spawn((const char *[]) { "sh", "-c", line, NULL }, 24, 80);
}

static void test_statuses_arrive(void **state) {
        static const struct {
                const char *command;
                int status;
        } cases[] = {
                { "exit 0", 0 },
                { "exit 1", 1 },
                { "exit 42", 42 },
                { "exit 255", 255 },
                { "sh -c 'kill -9 $$'", 137 },
                { "exec /nowhere/at/all", 127 },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++)
                for (unsigned tty = 0; tty < 2; tty++) {
                        _cleanup_terminal_test_ TerminalTest *t = NULL;

                        t = run(24, 80, tty ? "-t" : "-T", cases[i].command);
                        assert_int_equal(terminal_test_wait(t, MS), cases[i].status);
                }
}

static void test_failures_to_execute_have_their_own(void **state) {
        static const struct {
                const char *command;
                int status;
                const char *message;
        } cases[] = {
                { "$BERTHCTL --direct run --ephemeral / /bin/nope", 127, "/bin/nope" },
                { "$BERTHCTL --direct run --ephemeral / /etc/passwd", 126, "/etc/passwd" },
                { "$BERTHCTL --direct run /nowhere true", 125, "/nowhere" },
                { "$BERTHCTL --direct list", 125, "--direct" },
                { "BERTHD=/nowhere/berthd $BERTHCTL --direct run / true", 125, "/nowhere/berthd" },
                { "BERTHD=/bin/false $BERTHCTL --direct run / true", 125, "exit status 1" },
                { "$BERTHCTL --address=unix:path=/nowhere list", 125, "unix:path=/nowhere" },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_terminal_test_ TerminalTest *t = NULL;

                t = host_shell(cases[i].command);
                assert_true(terminal_test_expect(t, "berthctl: ", MS));
                assert_true(terminal_test_expect(t, cases[i].message, MS));
                assert_int_equal(terminal_test_wait(t, MS), cases[i].status);
        }
}

static void test_the_terminal_has_the_callers_size(void **state) {
        _cleanup_terminal_test_ TerminalTest *t = NULL;

        t = run(43, 132, "-t", "tty; stty size");
        assert_true(terminal_test_expect(t, "/dev/", MS));
        assert_true(terminal_test_expect(t, "43 132", MS));
        assert_int_equal(terminal_test_wait(t, MS), 0);
}

static void test_without_a_size_it_is_24_by_80(void **state) {
        _cleanup_terminal_test_ TerminalTest *t = NULL;

        /* A terminal emulator that says nothing. */
        t = host_shell("stty rows 0 cols 0; $BERTHCTL --direct run -t --ephemeral / -- stty size");
        assert_true(terminal_test_expect(t, "24 80", MS));
        assert_int_equal(terminal_test_wait(t, MS), 0);
}

static void test_a_terminal_is_given_when_there_is_one(void **state) {
        _cleanup_terminal_test_ TerminalTest *on = NULL, *piped = NULL;

        on = host_shell(
                "$BERTHCTL --direct run --ephemeral / -- sh -c 'test -t 0 && test -t 1 && test -t 2'");
        assert_int_equal(terminal_test_wait(on, MS), 0);
        piped = host_shell("$BERTHCTL --direct run --ephemeral / -- sh -c 'test -t 1; echo $?' | cat");
        assert_true(terminal_test_expect(piped, "1", MS));
        assert_int_equal(terminal_test_wait(piped, MS), 0);
}

static void test_a_resize_reaches_the_program(void **state) {
        _cleanup_terminal_test_ TerminalTest *t = NULL;

        t = run(24, 80, "-t", "trap 'stty size; exit 0' WINCH; echo ready; while :; do read x; done");
        assert_true(terminal_test_expect(t, "ready", MS));
        terminal_test_resize(t, 50, 100);
        assert_true(terminal_test_expect(t, "50 100", MS));
        assert_int_equal(terminal_test_wait(t, MS), 0);
}

static void test_keys_are_the_containers(void **state) {
        _cleanup_terminal_test_ TerminalTest *t = NULL;

        t = run(24, 80, "-t",
                "trap 'echo interrupted' INT; echo ready; while ! read x; do :; done; "
                "echo got-$x; read x || echo over");
        assert_true(terminal_test_expect(t, "ready", MS));
        terminal_test_type(t, "\003");
        assert_true(terminal_test_expect(t, "interrupted", MS));
        terminal_test_type(t, "line\n");
        assert_true(terminal_test_expect(t, "got-line", MS));
        terminal_test_type(t, "\004");
        assert_true(terminal_test_expect(t, "over", MS));
        assert_int_equal(terminal_test_wait(t, MS), 0);
}

static void get_settings(TerminalTest *t, struct termios *ret) {
        assert_int_equal(tcgetattr(terminal_test_master(t), ret), 0);
}

static bool same_settings(const struct termios *a, const struct termios *b) {
        return a->c_iflag == b->c_iflag && a->c_oflag == b->c_oflag && a->c_lflag == b->c_lflag &&
               memcmp(a->c_cc, b->c_cc, sizeof(a->c_cc)) == 0;
}

/* A shell on the host stays there, as the one a person has, and tells the status of berthctl. */
static void check_killed(int signal) {
        _cleanup_terminal_test_ TerminalTest *t = NULL;
        struct termios before, during, after;
        char wanted[32];
        const char *pid;

        t = host_shell(
                "echo start; read x; sh -c 'echo pid=$$.; exec $BERTHCTL --direct run --stop-timeout 0.2 -t "
                "--ephemeral / -- sh -c \"echo ready; exec sleep 1000\"'; echo status=$?; read x");
        assert_true(terminal_test_expect(t, "start", MS));
        get_settings(t, &before);
        terminal_test_type(t, "\n");
        assert_true(terminal_test_expect(t, "ready", MS));
        get_settings(t, &during);
        assert_false(same_settings(&before, &during));
        pid = strstr(terminal_test_output(t, NULL), "pid=");
        assert_non_null(pid);
        assert_int_equal(kill((pid_t) strtol(pid + 4, NULL, 10), signal), 0);
        (void) snprintf(wanted, sizeof(wanted), "status=%d", 128 + signal);
        assert_true(terminal_test_expect(t, wanted, MS));
        get_settings(t, &after);
        assert_true(same_settings(&before, &after));
}

static void test_a_killed_client_gives_the_terminal_back(void **state) {
        static const int signals[] = { SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGALRM, SIGXCPU };

        for (size_t i = 0; i < ELEMENTSOF(signals); i++)
                check_killed(signals[i]);
}

static void test_pipes_go_through(void **state) {
        static const struct {
                const char *line, *wanted;
        } cases[] = {
                { "echo in | $BERTHCTL --direct run --ephemeral / cat", "in" },
                { "echo in | $BERTHCTL --direct run -t --ephemeral / -- sh -c 'read x; echo $x-$x'",
                  "in-in" },
                { "printf in | $BERTHCTL --direct run -t --ephemeral / -- sh -c 'cat; echo -end'", "-end" },
                { "$BERTHCTL --direct run --ephemeral / -- seq 100000 | md5sum",
                  "dea9193b768319cbb4ff1a137ac03113" },
                { "$BERTHCTL --direct run -t --ephemeral / -- sh -c 'stty -opost; seq 100000' | md5sum",
                  "dea9193b768319cbb4ff1a137ac03113" },
                { "$BERTHCTL --direct run --ephemeral / -- sh -c 'echo err >&2' 2>&1 >/dev/null | sed "
                  "s/err/ERR/",
                  "ERR" },
                { "$BERTHCTL --direct run --ephemeral / -- sh -c 'cat; echo closed' <&-", "closed" },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_terminal_test_ TerminalTest *t = NULL;

                t = host_shell(cases[i].line);
                assert_true(terminal_test_expect(t, cases[i].wanted, MS));
                assert_int_equal(terminal_test_wait(t, MS), 0);
        }
}

static void test_signals_are_passed_on_without_a_terminal(void **state) {
        static const int signals[] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2 };

        for (size_t i = 0; i < ELEMENTSOF(signals); i++) {
                _cleanup_terminal_test_ TerminalTest *t = NULL;
                char command[200];

                (void) snprintf(command, sizeof(command),
                                "trap 'exit %d' %d; trap 'echo ready' PWR; echo begin; "
                                "while :; do sleep 0.05; done",
                                10 + signals[i], signals[i]);
                t = run(24, 80, "-T", command);
                assert_true(terminal_test_expect(t, "begin", MS));
                /* Passed on at the latest when the reply to the start is there: from then on all are. */
                assert_int_equal(kill(terminal_test_pid(t), SIGPWR), 0);
                assert_true(terminal_test_expect(t, "ready", MS));
                assert_int_equal(kill(terminal_test_pid(t), signals[i]), 0);
                assert_int_equal(terminal_test_wait(t, MS), 10 + signals[i]);
        }
}

static void test_the_third_interrupt_is_for_berthctl(void **state) {
        _cleanup_terminal_test_ TerminalTest *t = NULL;

        t = run(24, 80, "-T",
                "trap 'echo heard' INT; trap 'echo ready' PWR; echo begin; while :; do sleep 0.05; done");
        assert_true(terminal_test_expect(t, "begin", MS));
        assert_int_equal(kill(terminal_test_pid(t), SIGPWR), 0);
        assert_true(terminal_test_expect(t, "ready", MS));
        for (unsigned i = 0; i < 2; i++) {
                terminal_test_type(t, "\003");
                assert_true(terminal_test_expect(t, "heard", MS));
        }
        terminal_test_type(t, "\003");
        assert_int_equal(terminal_test_wait(t, MS), 128 + SIGINT);
}

static void test_hundred_echoes_lose_nothing(void **state) {
        _cleanup_terminal_test_ TerminalTest *t = NULL;

        t = host_shell("i=0; n=0; while [ $i -lt 100 ]; do i=$((i + 1)); "
                       "[ \"$($BERTHCTL --direct run -t --ephemeral / -- echo -n output-$i)\" = output-$i ] "
                       "&& n=$((n + 1)); "
                       "done; echo right=$n.");
        assert_true(terminal_test_expect(t, "right=100.", 120000));
        assert_int_equal(terminal_test_wait(t, MS), 0);
}

static void test_a_background_process_does_not_hold_the_end(void **state) {
        _cleanup_terminal_test_ TerminalTest *t = NULL;

        t = run(24, 80, "-t", "sleep 1000 & echo out; exit 3");
        assert_true(terminal_test_expect(t, "out", MS));
        assert_int_equal(terminal_test_wait(t, MS), 3);
}

static void test_the_kind_of_terminal_is_passed(void **state) {
        _cleanup_terminal_test_ TerminalTest *t = NULL;

        t = host_shell("TERM=vt220 COLORTERM=truecolor NO_COLOR=1 $BERTHCTL --direct run -t -e NO_COLOR=2 "
                       "--ephemeral / "
                       "-- sh -c 'echo $TERM,$COLORTERM,$NO_COLOR,$container'");
        assert_true(terminal_test_expect(t, "vt220,truecolor,2,berth", MS));
        assert_int_equal(terminal_test_wait(t, MS), 0);
}

static void test_control_characters_are_the_callers(void **state) {
        _cleanup_terminal_test_ TerminalTest *t = NULL;

        /* They are in force before the first input, not before the first instruction: so it waits for a line. */
        t = host_shell(
                "stty intr ^G; $BERTHCTL --direct run -t --ephemeral / -- sh -c 'trap \"exit 9\" INT; "
                "echo waiting; read y; stty -a; echo ready; read x; sleep 10'");
        assert_true(terminal_test_expect(t, "waiting", MS));
        terminal_test_type(t, "\r");
        assert_true(terminal_test_expect(t, "intr = ^G", MS));
        assert_true(terminal_test_expect(t, "ready", MS));
        terminal_test_type(t, "\007");
        assert_int_equal(terminal_test_wait(t, MS), 9);
}

/* The processes that pid is the parent of, as pidfds. */
static size_t children(pid_t pid, int *ret_pidfds, pid_t *ret_pids, size_t max) {
        char path[64], list[256] = {}, *p = list, *end;
        size_t n = 0;
        int fd;

        (void) snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, pid);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        assert_true(fd >= 0);
        assert_true(read(fd, list, sizeof(list) - 1) > 0);
        (void) close(fd);
        for (long child; n < max && (child = strtol(p, &end, 10)) > 0 && end != p; p = end, n++) {
                ret_pids[n] = (pid_t) child;
                ret_pidfds[n] = pidfd_open(ret_pids[n], 0);
                assert_true(ret_pidfds[n] >= 0);
        }
        return n;
}

static void test_a_client_killed_for_good_leaves_nothing(void **state) {
        _cleanup_terminal_test_ TerminalTest *t = NULL;
        pid_t berthd, pids[8];
        int pidfds[9];
        size_t n;

        t = run(24, 80, "-t", "echo ready; exec sleep 1000");
        assert_true(terminal_test_expect(t, "ready", MS));
        assert_int_equal(children(terminal_test_pid(t), &pidfds[8], &berthd, 1), 1);
        /* berth-launch and the container's init. */
        n = children(berthd, pidfds, pids, 8);
        assert_int_equal(n, 2);
        pidfds[n++] = pidfds[8];
        assert_int_equal(kill(terminal_test_pid(t), SIGKILL), 0);
        assert_int_equal(terminal_test_wait(t, MS), 137);
        for (size_t i = 0; i < n; i++) {
                struct pollfd ended = { .fd = pidfds[i], .events = POLLIN };

                assert_int_equal(poll(&ended, 1, MS), 1);
                (void) close(pidfds[i]);
        }
}

static void test_missing_targets_are_made_in_a_read_only_root_too(void **state) {
        static const struct {
                const char *option, *left;
        } cases[] = {
                { "--read-only", "bin dev proc srv sys" },
                { "--ephemeral", "bin" },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_terminal_test_ TerminalTest *t = NULL;
                char line[1024];

                (void) snprintf(line, sizeof(line),
                                "root=$(mktemp -d) && mkdir $root/bin && cp /bin/busybox $root/bin/ && "
                                "$BERTHCTL --direct run -T %s -v /etc/passwd:/srv/file $root -- "
                                "/bin/busybox test -s /srv/file; status=$?; "
                                "left=$(echo $(ls $root)); rm -r $root; "
                                "[ $status = 0 ] && [ \"$left\" = '%s' ]",
                                cases[i].option, cases[i].left);
                t = host_shell(line);
                assert_int_equal(terminal_test_wait(t, MS), 0);
        }
}

static void test_stop_and_continue(void **state) {
        _cleanup_terminal_test_ TerminalTest *t = NULL;
        struct termios before, during, stopped, again;
        const char *pid;
        pid_t number;

        /* A shell with job control, as a person has it. */
        t = terminal_test_spawn((const char *[]) { "env", "PS1=host> ", "sh", "-im", NULL }, 24, 80);
        assert_true(terminal_test_expect(t, "host> ", MS));
        get_settings(t, &before);
        terminal_test_type(t, "sh -c 'echo pid=$$.; exec $BERTHCTL --direct run -t --ephemeral / -- "
                              "sh -c \"echo rea\"\"dy; read x; echo got-\\$x; read x\"'\n");
        assert_true(terminal_test_expect(t, "\npid=", MS));
        assert_true(terminal_test_expect(t, "\nready", MS));
        get_settings(t, &during);
        pid = strstr(terminal_test_output(t, NULL), "\npid=");
        assert_non_null(pid);
        number = (pid_t) strtol(pid + 5, NULL, 10);
        assert_int_equal(kill(number, SIGTSTP), 0);
        assert_true(terminal_test_expect(t, "host> ", MS));
        get_settings(t, &stopped);
        assert_true(stopped.c_lflag & ISIG);
        terminal_test_type(t, "fg\n");
        assert_true(terminal_test_expect(t, "fg\r\n", MS));
        terminal_test_type(t, "back\n");
        assert_true(terminal_test_expect(t, "got-back", MS));
        get_settings(t, &again);
        assert_true(same_settings(&again, &during));
        terminal_test_type(t, "\n");
        assert_true(terminal_test_expect(t, "host> ", MS));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_statuses_arrive),
                cmocka_unit_test(test_failures_to_execute_have_their_own),
                cmocka_unit_test(test_the_terminal_has_the_callers_size),
                cmocka_unit_test(test_without_a_size_it_is_24_by_80),
                cmocka_unit_test(test_a_terminal_is_given_when_there_is_one),
                cmocka_unit_test(test_a_resize_reaches_the_program),
                cmocka_unit_test(test_keys_are_the_containers),
                cmocka_unit_test(test_a_killed_client_gives_the_terminal_back),
                cmocka_unit_test(test_pipes_go_through),
                cmocka_unit_test(test_signals_are_passed_on_without_a_terminal),
                cmocka_unit_test(test_the_third_interrupt_is_for_berthctl),
                cmocka_unit_test(test_hundred_echoes_lose_nothing),
                cmocka_unit_test(test_a_background_process_does_not_hold_the_end),
                cmocka_unit_test(test_the_kind_of_terminal_is_passed),
                cmocka_unit_test(test_control_characters_are_the_callers),
                cmocka_unit_test(test_a_client_killed_for_good_leaves_nothing),
                cmocka_unit_test(test_missing_targets_are_made_in_a_read_only_root_too),
                cmocka_unit_test(test_stop_and_continue),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
