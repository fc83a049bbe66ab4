/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "service/launcher-internal.h"
#include "service/launcher.h"
#include "tests/unit/fake-launch.h"
#include "util/fd.h"

#define DEADLINE_USEC (20U * 1000U * 1000U)
#define MANY 1000

typedef struct Scene {
        sd_event *event;
        Launcher *launcher;
        unsigned n_done; /* of all launches */
} Scene;

typedef struct Asked {
        Scene *scene;
        Launch *launch;
        pid_t pid;
        unsigned n_cloned, n_done, place;
        bool open_gate, cancel_when_cloned;
        LaunchOutcome outcome;
        LaunchStage stage;
        int error, pidfd;
        char detail[64];
} Asked;

static int set_up(void **state) {
        Scene *scene = calloc(1, sizeof(Scene));
        sigset_t set;

        assert_non_null(scene);
        (void) sigemptyset(&set);
        (void) sigaddset(&set, SIGCHLD);
        assert_return_code(sigprocmask(SIG_BLOCK, &set, NULL), errno);
        assert_return_code(sd_event_new(&scene->event), 0);
        assert_return_code(launcher_new(scene->event, getenv("FAKE_LAUNCH"), &scene->launcher), 0);
        *state = scene;
        return 0;
}

/* Nothing is left of any launch, nor of berth-launch. */
static int tear_down(void **state) {
        Scene *scene = *state;

        assert_null(launcher_free(scene->launcher));
        assert_int_equal(waitid(P_ALL, 0, &(siginfo_t) {}, WEXITED | WNOHANG), -1);
        assert_int_equal(errno, ECHILD);
        (void) sd_event_unref(scene->event);
        free(scene);
        return 0;
}

static void on_cloned(Launch *launch, pid_t pid, int pidfd, void *userdata) {
        Asked *asked = userdata;

        assert_int_equal(asked->n_done, 0);
        asked->n_cloned++;
        asked->pid = pid;
        if (asked->open_gate)
                assert_return_code(launch_open_gate(launch, LAUNCH_GATE_CGROUP), 0);
        if (asked->cancel_when_cloned)
                launch_cancel(launch);
}

static void on_devpts(Launch *launch, int devpts, int master, void *userdata) {
        fail_msg("no child of a stand-in makes a devpts");
}

static void on_done(Launch *launch, const LaunchResult *result, void *userdata) {
        Asked *asked = userdata;

        asked->n_done++;
        asked->place = asked->scene->n_done++;
        asked->outcome = result->outcome;
        asked->stage = result->stage;
        asked->error = result->error;
        asked->pidfd = result->pidfd;
        (void) snprintf(asked->detail, sizeof(asked->detail), "%s", result->detail);
        if (result->outcome == LAUNCH_RUNNING)
                assert_int_equal(result->pid, asked->pid);
        else if (asked->pid > 0) {
                assert_int_equal(waitid(P_PID, (id_t) asked->pid, &(siginfo_t) {}, WEXITED | WNOHANG), -1);
                assert_int_equal(errno, ECHILD);
        }
}

static const LaunchHandler handler = { .cloned = on_cloned, .devpts = on_devpts, .done = on_done };

static int ask_in_time(Scene *scene, FakeOrder order, uint64_t timeout_usec, Asked *asked) {
        LaunchPlan plan = { .size = sizeof(plan), .clone_flags = order };
        LaunchParameters parameters = {
                .plan = &plan,
                .plan_size = sizeof(plan),
                .cgroup = -EBADF,
                .enter = -EBADF,
                .stdio = { -EBADF, -EBADF, -EBADF },
                .devpts = -EBADF,
                .tty = -EBADF,
                .timeout_usec = timeout_usec,
        };
        int r;

        asked->scene = scene;
        r = launch_start(scene->launcher, &parameters, &handler, asked, &asked->launch);
        assert_int_equal(asked->n_done, 0);
        return r;
}

static void ask(Scene *scene, FakeOrder order, Asked *asked) {
        assert_return_code(ask_in_time(scene, order, UINT64_MAX, asked), 0);
}

static void turn(Scene *scene) {
        assert_true(sd_event_run(scene->event, DEADLINE_USEC) > 0);
}

static void run_until_done(const Asked *asked) {
        while (asked->n_done == 0)
                turn(asked->scene);
}

static void expect(const Asked *asked, LaunchOutcome outcome, LaunchStage stage, int error) {
        run_until_done(asked);
        assert_int_equal(asked->n_done, 1);
        assert_int_equal(asked->outcome, outcome);
        assert_int_equal(asked->stage, stage);
        assert_int_equal(asked->error, error);
        assert_int_equal(asked->pidfd, -EBADF);
}

static void expect_running(Asked *asked) {
        siginfo_t si = {};

        run_until_done(asked);
        assert_int_equal(asked->n_done, 1);
        assert_int_equal(asked->n_cloned, 1);
        assert_int_equal(asked->outcome, LAUNCH_RUNNING);
        assert_return_code(pidfd_send_signal(asked->pidfd, SIGKILL, NULL, 0), errno);
        assert_return_code(waitid(P_PIDFD, (id_t) asked->pidfd, &si, WEXITED), errno);
        assert_int_equal(si.si_pid, asked->pid);
        asked->pidfd = fd_close(asked->pidfd);
}

static void signal_launcher(const Scene *scene, int signal) {
        siginfo_t si;

        assert_return_code(pidfd_send_signal(scene->launcher->pidfd, signal, NULL, 0), errno);
        if (signal == SIGSTOP)
                assert_return_code(waitid(P_PIDFD, (id_t) scene->launcher->pidfd, &si, WSTOPPED), errno);
}

static void test_the_names_of_stages_and_back(void **state) {
        for (LaunchStage stage = 0; stage < _LAUNCH_STAGE_MAX; stage++) {
                assert_non_null(launch_stage_to_string(stage));
                assert_int_equal(launch_stage_from_string(launch_stage_to_string(stage)), stage);
        }
        assert_null(launch_stage_to_string(_LAUNCH_STAGE_MAX));
        assert_null(launch_stage_to_string(_LAUNCH_STAGE_INVALID));
        assert_int_equal(launch_stage_from_string("stage"), _LAUNCH_STAGE_INVALID);
        assert_int_equal(launch_stage_from_string("execute"), _LAUNCH_STAGE_INVALID);
}

static void test_a_program_runs_and_its_pidfd_is_handed_over(void **state) {
        Asked asked = {};

        ask(*state, FAKE_RUN, &asked);
        expect_running(&asked);
}

static void test_nothing_is_begun_without_berth_launch(void **state) {
        Scene *scene = *state, without = { .event = scene->event };
        Asked asked = {};

        assert_return_code(launcher_new(scene->event, "/there/is/none", &without.launcher), 0);
        assert_int_equal(ask_in_time(&without, FAKE_RUN, UINT64_MAX, &asked), -ENOENT);
        assert_int_equal(sd_event_run(scene->event, 0), 0);
        assert_int_equal(asked.n_done, 0);
        assert_null(launcher_free(without.launcher));
        assert_null(launcher_free(NULL));
}

static void test_a_refused_clone_is_told_with_its_errno(void **state) {
        Asked asked = {};

        ask(*state, FAKE_REFUSE, &asked);
        expect(&asked, LAUNCH_FAILED, LAUNCH_STAGE_CLONE, -EPERM);
        assert_int_equal(asked.n_cloned, 0);
}

static void test_a_failing_child_tells_stage_errno_and_what_it_was_about(void **state) {
        Asked asked = {};

        ask(*state, FAKE_FAIL, &asked);
        expect(&asked, LAUNCH_FAILED, LAUNCH_STAGE_MOUNT, -ENOENT);
        assert_string_equal(asked.detail, "/x");
}

static void test_a_killed_child_tells_where_it_was(void **state) {
        Asked asked = {};

        ask(*state, FAKE_KILLED, &asked);
        expect(&asked, LAUNCH_FAILED, LAUNCH_STAGE_MOUNT, -EOWNERDEAD);
}

static void test_a_child_that_says_what_it_should_not_is_ended(void **state) {
        Asked talk = {}, more = {};

        ask(*state, FAKE_TALK, &talk);
        ask(*state, FAKE_TALK_LONG, &more);
        expect(&talk, LAUNCH_FAILED, LAUNCH_STAGE_CLONE, -EPROTO);
        expect(&more, LAUNCH_FAILED, LAUNCH_STAGE_CLONE, -EMSGSIZE);
}

static void test_a_gate_is_waited_for(void **state) {
        Asked open = { .open_gate = true }, shut = {};

        ask(*state, FAKE_GATE, &shut);
        ask(*state, FAKE_GATE, &open);
        expect_running(&open);
        while (shut.n_cloned == 0)
                turn(*state);
        assert_int_equal(shut.n_done, 0);
        assert_return_code(launch_open_gate(shut.launch, LAUNCH_GATE_CGROUP), 0);
        expect_running(&shut);
}

/* Two ways for a socket to tell of it: end of file, or what was never read. */
static void test_a_gate_of_a_dead_child_is_no_failure_of_its_own(void **state) {
        Asked asked = {};

        ask(*state, FAKE_HANG, &asked);
        while (asked.n_cloned == 0)
                turn(*state);
        assert_return_code(launch_open_gate(asked.launch, LAUNCH_GATE_CGROUP), 0);
        assert_return_code(kill(asked.pid, SIGKILL), errno);
        assert_return_code(waitid(P_PID, (id_t) asked.pid, &(siginfo_t) {}, WEXITED | WNOWAIT), errno);
        assert_return_code(launch_open_gate(asked.launch, LAUNCH_GATE_CGROUP), 0);
        assert_return_code(launch_open_gate(asked.launch, LAUNCH_GATE_CGROUP), 0);
        run_until_done(&asked);
        assert_int_equal(asked.error, -EOWNERDEAD);
}

static void test_a_launch_over_its_time_tells_where_it_was(void **state) {
        Asked asked = {};

        assert_return_code(ask_in_time(*state, FAKE_HANG, 100000, &asked), 0);
        expect(&asked, LAUNCH_TIMED_OUT, LAUNCH_STAGE_ROOTFS, -ETIMEDOUT);
}

static void test_cancelling_before_the_clone_leaves_no_child(void **state) {
        Asked first = {}, asked = {};

        ask(*state, FAKE_RUN, &first);
        expect_running(&first);
        signal_launcher(*state, SIGSTOP);
        ask(*state, FAKE_RUN, &asked);
        launch_cancel(asked.launch);
        launch_cancel(asked.launch);
        assert_int_equal(asked.n_done, 0);
        signal_launcher(*state, SIGCONT);
        expect(&asked, LAUNCH_CANCELLED, LAUNCH_STAGE_NONE, -ECANCELED);
        assert_int_equal(asked.n_cloned, 0);
}

static void test_cancelling_a_child_ends_it(void **state) {
        Asked within = { .cancel_when_cloned = true }, asked = {};

        ask(*state, FAKE_HANG, &asked);
        while (asked.n_cloned == 0)
                turn(*state);
        launch_cancel(asked.launch);
        launch_fail(asked.launch, LAUNCH_STAGE_SCOPE, -EIO, "too late");
        assert_int_equal(asked.n_done, 0);
        expect(&asked, LAUNCH_CANCELLED, LAUNCH_STAGE_NONE, -ECANCELED);

        ask(*state, FAKE_RUN, &within);
        expect(&within, LAUNCH_CANCELLED, LAUNCH_STAGE_NONE, -ECANCELED);
}

/* Its end of file is there to be read, and is not: it was just about to succeed. */
static void test_a_cancel_beats_a_program_that_runs_unnoticed(void **state) {
        Asked asked = {};
        char path[64];

        ask(*state, FAKE_GATE, &asked);
        while (asked.n_cloned == 0)
                turn(*state);
        assert_return_code(launch_open_gate(asked.launch, LAUNCH_GATE_CGROUP), 0);
        (void) snprintf(path, sizeof(path), "/proc/%d/fd", asked.pid);
        while (!(((const volatile LaunchReport *) asked.launch->report)->stage == LAUNCH_STAGE_EXEC))
                (void) sched_yield();
        launch_cancel(asked.launch);
        expect(&asked, LAUNCH_CANCELLED, LAUNCH_STAGE_NONE, -ECANCELED);
}

static void test_a_failure_from_outside_is_told_as_it_is(void **state) {
        Asked asked = {};

        ask(*state, FAKE_HANG, &asked);
        while (asked.n_cloned == 0)
                turn(*state);
        launch_fail(asked.launch, LAUNCH_STAGE_SCOPE, -EREMOTEIO, "no scope today");
        expect(&asked, LAUNCH_FAILED, LAUNCH_STAGE_SCOPE, -EREMOTEIO);
        assert_string_equal(asked.detail, "no scope today");
}

static void test_berth_launch_is_started_again_when_it_is_lost(void **state) {
        static const FakeOrder faults[] = { FAKE_DIE, FAKE_GARBAGE, FAKE_NO_PIDFD };

        for (size_t i = 0; i < ELEMENTSOF(faults); i++) {
                Asked hanging = {}, lost = {}, behind = {}, later = {};

                ask(*state, FAKE_HANG, &hanging);
                while (hanging.n_cloned == 0)
                        turn(*state);
                signal_launcher(*state, SIGSTOP);
                ask(*state, faults[i], &lost);
                ask(*state, faults[i], &behind);
                signal_launcher(*state, SIGCONT);
                expect(&lost, LAUNCH_FAILED, LAUNCH_STAGE_CLONE, -EPIPE);
                expect(&behind, LAUNCH_FAILED, LAUNCH_STAGE_CLONE, -EPIPE);
                ask(*state, FAKE_RUN, &later);
                expect_running(&later);
                /* Whatever has its child is not concerned. */
                assert_int_equal(hanging.n_done, 0);
                launch_cancel(hanging.launch);
                expect(&hanging, LAUNCH_CANCELLED, LAUNCH_STAGE_NONE, -ECANCELED);
        }
}

static void test_a_process_that_is_no_child_of_ours_is_not_taken(void **state) {
        Asked asked = {};

        ask(*state, FAKE_STRANGER, &asked);
        expect(&asked, LAUNCH_FAILED, LAUNCH_STAGE_CLONE, -ECHILD);
        assert_int_equal(asked.n_cloned, 0);
}

static void test_answers_to_nobody_are_passed_over(void **state) {
        Asked asked = {}, later = {};

        ask(*state, FAKE_TWICE, &asked);
        expect_running(&asked);
        ask(*state, FAKE_RUN, &later);
        expect_running(&later);
        assert_int_equal(asked.n_done, 1);
}

static void test_requests_that_the_socket_cannot_take_yet_wait_in_their_order(void **state) {
        Scene *scene = *state;
        struct rlimit before, limit;
        Asked *asked, first = {};
        uint32_t events;

        assert_return_code(getrlimit(RLIMIT_NOFILE, &before), errno);
        limit = before;
        limit.rlim_cur = limit.rlim_max;
        assert_return_code(setrlimit(RLIMIT_NOFILE, &limit), errno);
        if (limit.rlim_max < 5 * MANY)
                skip();
        asked = calloc(MANY, sizeof(Asked));
        assert_non_null(asked);
        ask(scene, FAKE_REFUSE, &first);
        run_until_done(&first);
        signal_launcher(scene, SIGSTOP);
        for (size_t i = 0; i < MANY; i++)
                ask(scene, FAKE_REFUSE, &asked[i]);
        assert_return_code(sd_event_source_get_io_events(scene->launcher->control_source, &events), 0);
        assert_true(events & EPOLLOUT);
        signal_launcher(scene, SIGCONT);
        run_until_done(&asked[MANY - 1]);
        for (size_t i = 0; i < MANY; i++) {
                expect(&asked[i], LAUNCH_FAILED, LAUNCH_STAGE_CLONE, -EPERM);
                assert_int_equal(asked[i].place, i + 1);
        }
        /* And the loop is quiet again. */
        assert_return_code(sd_event_source_get_io_events(scene->launcher->control_source, &events), 0);
        assert_int_equal(events, EPOLLIN);
        assert_int_equal(sd_event_run(scene->event, 0), 0);
        free(asked);
        assert_return_code(setrlimit(RLIMIT_NOFILE, &before), errno);
}

/* The last descriptor was taken between the question and the answer. */
static void test_a_child_that_there_is_no_descriptor_for_is_ended(void **state) {
        Asked first = {}, asked = {}, later = {};
        struct rlimit before, limit;
        Scene *scene = *state;
        int free_fd, control;

        ask(scene, FAKE_HANG, &first);
        while (first.n_cloned == 0)
                turn(scene);
        control = scene->launcher->control;
        signal_launcher(scene, SIGSTOP);
        ask(scene, FAKE_RUN, &asked);
        assert_return_code(getrlimit(RLIMIT_NOFILE, &before), errno);
        free_fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
        assert_return_code(free_fd, errno);
        (void) close(free_fd);
        limit = before;
        limit.rlim_cur = (rlim_t) free_fd;
        assert_return_code(setrlimit(RLIMIT_NOFILE, &limit), errno);
        signal_launcher(scene, SIGCONT);
        run_until_done(&asked);
        assert_return_code(setrlimit(RLIMIT_NOFILE, &before), errno);
        expect(&asked, LAUNCH_FAILED, LAUNCH_STAGE_CLONE, -EMFILE);
        /* Nobody else suffers from it: neither berth-launch nor its other children. */
        assert_int_equal(scene->launcher->control, control);
        assert_int_equal(first.n_done, 0);
        ask(scene, FAKE_RUN, &later);
        expect_running(&later);
        launch_cancel(first.launch);
        run_until_done(&first);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_the_names_of_stages_and_back),
                TEST(test_a_program_runs_and_its_pidfd_is_handed_over),
                TEST(test_nothing_is_begun_without_berth_launch),
                TEST(test_a_refused_clone_is_told_with_its_errno),
                TEST(test_a_failing_child_tells_stage_errno_and_what_it_was_about),
                TEST(test_a_killed_child_tells_where_it_was),
                TEST(test_a_child_that_says_what_it_should_not_is_ended),
                TEST(test_a_gate_is_waited_for),
                TEST(test_a_gate_of_a_dead_child_is_no_failure_of_its_own),
                TEST(test_a_launch_over_its_time_tells_where_it_was),
                TEST(test_cancelling_before_the_clone_leaves_no_child),
                TEST(test_cancelling_a_child_ends_it),
                TEST(test_a_cancel_beats_a_program_that_runs_unnoticed),
                TEST(test_a_failure_from_outside_is_told_as_it_is),
                TEST(test_berth_launch_is_started_again_when_it_is_lost),
                TEST(test_a_process_that_is_no_child_of_ours_is_not_taken),
                TEST(test_answers_to_nobody_are_passed_over),
                TEST(test_requests_that_the_socket_cannot_take_yet_wait_in_their_order),
                TEST(test_a_child_that_there_is_no_descriptor_for_is_ended),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
