/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "service/helper.h"

#define DEADLINE_USEC (20U * 1000U * 1000U)
#define MANY 100

typedef struct Ended {
        int n, code, status;
        bool reaped;
        sd_event *event;
        Helper *next;
} Ended;

static void note(Helper *helper, int code, int status, void *userdata) {
        Ended *ended = userdata;

        ended->n++;
        ended->code = code;
        ended->status = status;
        ended->reaped = waitid(P_ALL, 0, &(siginfo_t) {}, WEXITED | WNOHANG | WNOWAIT) < 0 &&
                        errno == ECHILD;
}

static int set_up(void **state) {
        sigset_t set;

        (void) sigemptyset(&set);
        (void) sigaddset(&set, SIGCHLD);
        assert_return_code(sigprocmask(SIG_BLOCK, &set, NULL), errno);
        return sd_event_new((sd_event **) state);
}

static int tear_down(void **state) {
        (void) sd_event_unref(*state);
        return 0;
}

static void run_until(sd_event *event, const Ended *ended, int n) {
        while (ended->n < n)
                assert_true(sd_event_run(event, DEADLINE_USEC) > 0);
}

static Helper *start(sd_event *event, const char *command, uint64_t timeout_usec, Ended *ended) {
        char *const argv[] = { (char *) "sh", (char *) "-c", (char *) command, NULL };
        Helper *helper;

        assert_return_code(helper_start(event, argv, timeout_usec, note, ended, &helper), 0);
        return helper;
}

static void test_a_status_arrives_as_it_is(void **state) {
        static const int statuses[] = { 0, 1, 42, 127, 255 };

        for (size_t i = 0; i < ELEMENTSOF(statuses); i++) {
                Ended ended = {};
                char command[32];

                (void) snprintf(command, sizeof(command), "exit %d", statuses[i]);
                (void) start(*state, command, UINT64_MAX, &ended);
                run_until(*state, &ended, 1);
                assert_int_equal(ended.code, CLD_EXITED);
                assert_int_equal(ended.status, statuses[i]);
        }
}

static void test_a_signal_arrives_as_it_is(void **state) {
        Ended ended = {};

        (void) start(*state, "kill -USR1 $$", UINT64_MAX, &ended);
        run_until(*state, &ended, 1);
        assert_int_equal(ended.code, CLD_KILLED);
        assert_int_equal(ended.status, SIGUSR1);
}

static void test_it_is_reaped_before_anybody_hears_of_its_end(void **state) {
        Ended ended = {};

        (void) start(*state, "exit 3", UINT64_MAX, &ended);
        run_until(*state, &ended, 1);
        assert_true(ended.reaped);
}

static void test_one_over_its_time_is_killed_and_told_as_such(void **state) {
        Ended ended = {};

        (void) start(*state, "exec sleep 1000", 1000, &ended);
        run_until(*state, &ended, 1);
        assert_int_equal(ended.code, 0);
        assert_int_equal(ended.status, -ETIMEDOUT);
        assert_true(ended.reaped);
}

static void test_a_program_that_is_not_there_is_not_started(void **state) {
        char *const name[] = { (char *) "there-is-no-such-helper", NULL },
                    *const path[] = { (char *) "/there/is/none", NULL },
                    *const directory[] = { (char *) "/etc", NULL };
        Helper *helper = (Helper *) 1;
        Ended ended = {};

        assert_int_equal(helper_start(*state, name, UINT64_MAX, note, &ended, &helper), -ENOENT);
        assert_int_equal(helper_start(*state, path, UINT64_MAX, note, &ended, &helper), -ENOENT);
        assert_int_equal(helper_start(*state, directory, UINT64_MAX, note, &ended, &helper), -EACCES);
        assert_ptr_equal(helper, (Helper *) 1);
        assert_int_equal(sd_event_run(*state, 0), 0);
        assert_int_equal(ended.n, 0);
}

static void test_freeing_one_that_runs_kills_and_reaps_it_without_a_word(void **state) {
        Ended ended = {};

        assert_null(helper_free(start(*state, "exec sleep 1000", DEADLINE_USEC, &ended)));
        assert_int_equal(waitid(P_ALL, 0, &(siginfo_t) {}, WEXITED | WNOHANG), -1);
        assert_int_equal(errno, ECHILD);
        assert_int_equal(sd_event_run(*state, 0), 0);
        assert_int_equal(ended.n, 0);
        assert_null(helper_free(NULL));
}

/* Its end is known to the event loop, but has not been told yet. */
static void test_freeing_one_that_has_just_ended_does_not_tell_of_it(void **state) {
        Ended ended = {};
        Helper *helper = start(*state, "exit 0", UINT64_MAX, &ended);

        assert_return_code(waitid(P_ALL, 0, &(siginfo_t) {}, WEXITED | WNOWAIT), errno);
        assert_true(sd_event_prepare(*state) >= 0);
        (void) sd_event_wait(*state, DEADLINE_USEC);
        (void) helper_free(helper);
        (void) sd_event_dispatch(*state);
        assert_int_equal(sd_event_run(*state, 0), 0);
        assert_int_equal(ended.n, 0);
}

static void start_another(Helper *helper, int code, int status, void *userdata) {
        Ended *ended = userdata;

        ended->next = start(ended->event, "exit 7", UINT64_MAX, ended);
}

/* As newgidmap follows newuidmap: the second has the descriptor number of the first. */
static void test_one_started_at_the_end_of_another_is_told_of_too(void **state) {
        char *const argv[] = { (char *) "true", NULL };
        Ended ended = { .event = *state };
        Helper *helper;

        assert_return_code(helper_start(*state, argv, UINT64_MAX, start_another, &ended, &helper), 0);
        run_until(*state, &ended, 1);
        assert_int_equal(ended.code, CLD_EXITED);
        assert_int_equal(ended.status, 7);
}

static void test_many_at_once_keep_their_own_statuses(void **state) {
        Ended ended[MANY] = {};
        int n;

        for (int i = 0; i < MANY; i++) {
                char command[32];

                (void) snprintf(command, sizeof(command), "exit %d", i);
                (void) start(*state, command, UINT64_MAX, &ended[i]);
        }
        do {
                n = 0;
                assert_true(sd_event_run(*state, DEADLINE_USEC) > 0);
                for (int i = 0; i < MANY; i++)
                        n += ended[i].n;
        } while (n < MANY);
        for (int i = 0; i < MANY; i++) {
                assert_int_equal(ended[i].n, 1);
                assert_int_equal(ended[i].status, i);
        }
}

static void test_it_has_no_blocked_or_ignored_signal_and_the_null_device(void **state) {
        struct sigaction before;
        Ended ended = {};

        assert_return_code(sigaction(SIGPIPE, &(struct sigaction) { .sa_handler = SIG_IGN }, &before),
                           errno);
        /* Of the shell's children: the shell itself blocks signals for a moment while it waits. */
        (void) start(
                *state,
                "test \"$(readlink /proc/self/fd/0)\" = /dev/null &&"
                " grep -q '^SigBlk:[[:space:]]*0*$' /proc/self/status &&"
                " grep -Eq '^SigIgn:[[:space:]]*0*(180000000)?$' /proc/self/status", /* glibc's own two */
                UINT64_MAX, &ended);
        run_until(*state, &ended, 1);
        assert_return_code(sigaction(SIGPIPE, &before, NULL), errno);
        assert_int_equal(ended.code, CLD_EXITED);
        assert_int_equal(ended.status, 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(test_a_status_arrives_as_it_is),
                TEST(test_a_signal_arrives_as_it_is),
                TEST(test_it_is_reaped_before_anybody_hears_of_its_end),
                TEST(test_one_over_its_time_is_killed_and_told_as_such),
                TEST(test_a_program_that_is_not_there_is_not_started),
                TEST(test_freeing_one_that_runs_kills_and_reaps_it_without_a_word),
                TEST(test_freeing_one_that_has_just_ended_does_not_tell_of_it),
                TEST(test_one_started_at_the_end_of_another_is_told_of_too),
                TEST(test_many_at_once_keep_their_own_statuses),
                TEST(test_it_has_no_blocked_or_ignored_signal_and_the_null_device),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
