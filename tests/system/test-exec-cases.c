/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Exec, from outside. The numbers are those of the list of cases from other engines' trackers. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "interfaces/names.h"
#include "tests/system/direct-call.h"
#include "util/fd.h"

#define MS 15000U

/* A container that does nothing. */
static const char *idle(Direct *d) {
        const Call call = { .command = WORDS("sleep", "1000"), .environment = WORDS("INIT=1", "BOTH=init") };

        (void) must_run(d, d->bus, "idle", &call, NULL);
        return BERTH_CONTAINER_PREFIX "/idle"; /* for longer than the fixture keeps a path */
}

/* Runs a command of sh in it to its end: what it said, malloced, and how it ended. */
static char *say(sd_bus *bus, const char *path, Call call, End *ret_end) {
        int pair[2], stdio[3];
        const char *process;
        char *output;

        assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
        stdio[0] = -1;
        stdio[1] = stdio[2] = pair[1];
        call.stdio = stdio;
        process = must_exec(bus, path, &call, NULL);
        (void) close(pair[1]);
        output = read_to_end(pair[0], MS);
        (void) close(pair[0]);
        *ret_end = process_must_wait(bus, process);
        return output;
}

static void expect_output(sd_bus *bus, const char *path, Call call, const char *expected) {
        _cleanup_free_ char *output = NULL;
        End end;

        output = say(bus, path, call, &end);
        assert_string_equal(output, expected);
        assert_int_equal(end.code, CLD_EXITED);
        assert_int_equal(end.status, 0);
}

static void test_statuses_and_signals_are_the_programs(void **state) {
        static const int statuses[] = { 0, 1, 42, 137, 255 };
        Direct *d = *state;
        const char *path = idle(d);
        End end;

        for (size_t i = 0; i < ELEMENTSOF(statuses); i++) {
                const Call call = { .command = SH(text("exit %d", statuses[i])) };

                end = process_must_wait(d->bus, must_exec(d->bus, path, &call, NULL));
                assert_int_equal(end.code, CLD_EXITED);
                assert_int_equal(end.status, statuses[i]);
                assert_string_equal(end.result, statuses[i] ? "exit-code" : "success");
        }
        assert_string_equal(get_s(d->bus, path, "State"), "running");
}

static void test_case_17_killed_is_not_exit_137(void **state) {
        const Call killed = { .command = SH("kill -9 $$") };
        Direct *d = *state;
        End end;

        end = process_must_wait(d->bus, must_exec(d->bus, idle(d), &killed, NULL));
        assert_int_equal(end.code, CLD_KILLED);
        assert_int_equal(end.status, SIGKILL);
        assert_string_equal(end.result, "signal");
}

static void test_case_12_a_signal_reaches_one_process(void **state) {
        const Call sleeper = { .command = WORDS("sleep", "500") };
        Direct *d = *state;
        const char *path = idle(d), *a, *b;
        int32_t code;
        End end;

        a = must_exec(d->bus, path, &sleeper, NULL);
        b = must_exec(d->bus, path, &sleeper, NULL);
        assert_true(sd_bus_call_method(d->bus, BERTH_BUS_NAME, a, BERTH_INTERFACE_PROCESS, "Signal", NULL,
                                       NULL, "i", SIGTERM) >= 0);
        end = process_must_wait(d->bus, a);
        assert_int_equal(end.code, CLD_KILLED);
        assert_int_equal(end.status, SIGTERM);
        assert_true(sd_bus_get_property_trivial(d->bus, BERTH_BUS_NAME, b, BERTH_INTERFACE_PROCESS,
                                                "ExitCode", NULL, 'i', &code) >= 0);
        assert_int_equal(code, 0);
        assert_string_equal(get_s(d->bus, path, "State"), "running");
}

static void test_case_16_not_found_and_not_executable_are_told_apart(void **state) {
        static const struct {
                const char *command, *error;
        } all[] = {
                { "/nonexistent", BERTH_ERROR_COMMAND_NOT_FOUND },
                { "nosuchcmd", BERTH_ERROR_COMMAND_NOT_FOUND },
                { "/etc", BERTH_ERROR_COMMAND_NOT_EXECUTABLE },
                { "/etc/passwd", BERTH_ERROR_COMMAND_NOT_EXECUTABLE },
        };
        Direct *d = *state;
        const char *path = idle(d);

        for (size_t i = 0; i < ELEMENTSOF(all); i++) {
                const Call call = { .command = WORDS(all[i].command) };

                assert_non_null(strstr(exec_must_fail(d->bus, path, &call, all[i].error), all[i].command));
        }
        const Call nowhere = { .command = WORDS("true"), .working_directory = "/nowhere" };
        assert_non_null(
                strstr(exec_must_fail(d->bus, path, &nowhere, BERTH_ERROR_LAUNCH_FAILED), "/nowhere"));
        const Call nobody = { .command = WORDS("true"), .user = "nosuch" };
        assert_non_null(strstr(exec_must_fail(d->bus, path, &nobody, BERTH_ERROR_LAUNCH_FAILED), "nosuch"));
        const Call nothing = {};
        assert_non_null(strstr(exec_must_fail(d->bus, path, &nothing, BERTH_ERROR_INVALID_SPEC), "Command"));
        const Call rooted = { .command = WORDS("true"), .on_disconnect = "hangup" };
        (void) exec_must_fail(d->bus, path, &rooted, BERTH_ERROR_INVALID_ARGS);
}

static void test_case_23_another_user(void **state) {
        const Call numbers = {
                .command = SH("id -u; id -g; id -G; touch /root/x 2>/dev/null || echo denied"),
                .user = "1000:1000",
                .groups = WORDS("5"),
        };
        const Call name = { .command = SH("id -u; id -G; echo $HOME $USER $INIT"), .user = "app" };
        const Call minus = { .command = WORDS("true"), .user = "4294967295" };
        Direct *d = *state;
        const char *path = idle(d);

        expect_output(d->bus, path, numbers, "1000\n1000\n1000 5\ndenied\n");
        expect_output(d->bus, path, name, "1000\n1001 29 44\n/home/app app 1\n");
        (void) exec_must_fail(d->bus, path, &minus, BERTH_ERROR_INVALID_SPEC);
}

static void test_defaults_are_the_containers(void **state) {
        const Call init = {
                .command = WORDS("sleep", "1000"),
                .environment = WORDS("A=init", "B=init"),
                .working_directory = "/data",
                .user = "app",
                .drop_capabilities = WORDS("CHOWN"),
                .no_new_privileges = true,
                .limit = "NOFILE",
                .limit_soft = 77,
                .limit_hard = 88,
                .hostname = "inside",
        };
        const Call process = {
                .command = SH("echo $A $B $container; pwd; id -u; ulimit -n; hostname;"
                              "grep -E 'NoNewPrivs|Seccomp:|CapBnd' /proc/self/status | tr '\\t' ' '"),
                .environment = WORDS("B=exec"),
        };
        Direct *d = *state;
        const char *path = must_run(d, d->bus, "defaults", &init, NULL);

        expect_output(d->bus, path, process,
                      "init exec berth\n/data\n1000\n77\ninside\nCapBnd: 00000000a80425fa\nNoNewPrivs: 1\n"
                      "Seccomp: 2\n");
}

static void test_case_49_exactly_three_descriptors(void **state) {
        const Call call = { .command = SH("ls /proc/self/fd") };
        Direct *d = *state;
        const char *path = idle(d);

        for (unsigned i = 0; i < 20; i++)
                expect_output(d->bus, path, call, "0\n1\n2\n3\n");
}

static void test_case_31_end_of_input_reaches_the_program(void **state) {
        Direct *d = *state;
        const char *path = idle(d);

        for (unsigned i = 0; i < 200; i++) {
                _cleanup_free_ char *output = NULL;
                int in[2], out[2], stdio[3];
                const char *process;
                Call call = { .command = WORDS("cat") };

                assert_int_equal(pipe2(in, O_CLOEXEC), 0);
                assert_int_equal(pipe2(out, O_CLOEXEC), 0);
                stdio[0] = in[0];
                stdio[1] = out[1];
                stdio[2] = -1;
                call.stdio = stdio;
                process = must_exec(d->bus, path, &call, NULL);
                (void) close(in[0]);
                (void) close(out[1]);
                if (i % 2)
                        assert_int_equal(fd_write_all(in[1], "hello", 5), 0);
                (void) close(in[1]);
                output = read_to_end(out[0], MS);
                (void) close(out[0]);
                assert_string_equal(output, i % 2 ? "hello" : "");
                assert_int_equal(process_must_wait(d->bus, process).status, 0);
        }
}

static void test_case_07_the_size_is_in_force_at_once(void **state) {
        const Call sized = {
                .command = WORDS("stty", "size"), .terminal = true, .rows = 43, .columns = 132
        };
        const Call unsized = { .command = SH("stty size; tty"), .terminal = true, .sized = true };
        Direct *d = *state;
        const char *path = idle(d), *process;

        for (unsigned i = 0; i < 50; i++) {
                _cleanup_free_ char *output = NULL;
                int master;

                process = must_exec(d->bus, path, i ? &sized : &unsized, &master);
                output = read_to_end(master, MS);
                (void) close(master);
                assert_string_equal(output, i ? "43 132\r\n" : "24 80\r\n/dev/pts/0\r\n");
                assert_int_equal(process_must_wait(d->bus, process).status, 0);
        }
}

static void test_case_01_no_output_is_lost(void **state) {
        const Call call = { .command = WORDS("echo", "hoge"), .terminal = true };
        Direct *d = *state;
        const char *path = idle(d), *process;

        for (unsigned i = 0; i < 100; i++) {
                _cleanup_free_ char *output = NULL;
                int master;

                process = must_exec(d->bus, path, &call, &master);
                assert_int_equal(process_must_wait(d->bus, process).status, 0);
                output = read_to_end(master, MS);
                (void) close(master);
                assert_string_equal(output, "hoge\r\n");
        }
}

static void test_resize_reaches_the_foreground(void **state) {
        const Call call = { .command = SH(
                                    "trap 'stty size; exit 6' WINCH; echo up; while :; do sleep 0.05; done"),
                            .terminal = true };
        _cleanup_free_ char *output = NULL;
        Direct *d = *state;
        const char *path = idle(d), *process;
        char up[5] = "";
        int master;

        process = must_exec(d->bus, path, &call, &master);
        assert_int_equal(read(master, up, 4), 4);
        assert_true(sd_bus_call_method(d->bus, BERTH_BUS_NAME, process, BERTH_INTERFACE_PROCESS, "Resize",
                                       NULL, NULL, "qq", 30, 90) >= 0);
        output = read_to_end(master, MS);
        (void) close(master);
        assert_string_equal(output, "30 90\r\n");
        assert_int_equal(process_must_wait(d->bus, process).status, 6);
}

static void test_case_37_a_closed_master_hangs_up(void **state) {
        const Call call = { .command = SH("sleep 300"), .terminal = true };
        Direct *d = *state;
        const char *path = idle(d), *process;
        int master;
        End end;

        process = must_exec(d->bus, path, &call, &master);
        (void) close(master);
        end = process_must_wait(d->bus, process);
        assert_int_equal(end.code, CLD_KILLED);
        assert_int_equal(end.status, SIGHUP);
        assert_string_equal(get_s(d->bus, path, "State"), "running");
}

static void test_case_33_a_background_child_does_not_hold_the_end(void **state) {
        const Call call = { .command = SH("sleep 60 & exit 4") };
        Direct *d = *state;
        uint64_t before = now_usec();
        End end;

        end = process_must_wait(d->bus, must_exec(d->bus, idle(d), &call, NULL));
        assert_int_equal(end.status, 4);
        assert_true(now_usec() - before < 10U * 1000U * 1000U);
}

static void test_what_does_not_run_is_refused_at_once(void **state) {
        const Call container = { .command = WORDS("true") }, call = { .command = WORDS("true") };
        Direct *d = *state;
        const char *path = must_create(d, d->bus, "never", &container);

        (void) exec_must_fail(d->bus, path, &call, BERTH_ERROR_NOT_RUNNING);
        (void) must_start(d->bus, path);
        (void) must_wait(d->bus, path);
        (void) exec_must_fail(d->bus, path, &call, BERTH_ERROR_NOT_RUNNING);
}

typedef struct Ends {
        unsigned processes, containers, late, wanted;
        bool done;
} Ends;

static int on_exited(sd_bus_message *m, void *userdata, sd_bus_error *unused) {
        Ends *ends = userdata;

        if (sd_bus_message_is_signal(m, BERTH_INTERFACE_PROCESS, "Exited")) {
                ends->processes++;
                ends->late += ends->containers;
        }
        if (sd_bus_message_is_signal(m, BERTH_INTERFACE_CONTAINER, "Exited")) {
                ends->containers++;
                ends->done = true;
        }
        return 0;
}

static void test_the_end_of_init_is_the_end_of_fifty(void **state) {
        const Call call = { .command = SH("trap '' TERM HUP; sleep 1000 & sleep 1000") };
        Direct *d = *state;
        const char *path = idle(d);
        Ends ends = {};

        for (unsigned i = 0; i < 50; i++)
                (void) must_exec(d->bus, path, &call, NULL);
        assert_true(sd_bus_add_filter(d->bus, NULL, on_exited, &ends) >= 0);
        must_call(d->bus, path, "Signal", "i", SIGKILL);
        assert_true(bus_until(d->bus, &ends.done, MS));
        assert_int_equal(ends.processes, 50);
        assert_int_equal(ends.late, 0);
        must_remove(d->bus, path);
        direct_expect_idle(d);
}

typedef struct Answers {
        unsigned n, wanted, good, not_running;
        bool done;
} Answers;

static int on_answer(sd_bus_message *m, void *userdata, sd_bus_error *unused) {
        Answers *answers = userdata;
        const sd_bus_error *error = sd_bus_message_get_error(m);

        answers->good += !error;
        if (error && (sd_bus_error_has_name(error, BERTH_ERROR_NOT_RUNNING) ||
                      sd_bus_error_has_name(error, SD_BUS_ERROR_UNKNOWN_OBJECT)))
                answers->not_running++;
        else if (error)
                (void) fprintf(stderr, "%s: %s\n", error->name, error->message);
        answers->done = ++answers->n == answers->wanted;
        return 0;
}

static void ask(sd_bus *bus, const char *path, const Call *call, Answers *answers) {
        _cleanup_bus_message_ sd_bus_message *m = NULL;

        m = exec_new(bus, path, call);
        assert_true(sd_bus_call_async(bus, NULL, m, on_answer, answers, 0) >= 0);
        answers->wanted++;
}

static void test_a_starting_container_is_waited_for(void **state) {
        const Call container = { .command = WORDS("sleep", "1000") }, call = { .command = WORDS("true") };
        Direct *d = *state;

        for (unsigned i = 0; i < 20; i++) {
                const char *path = must_create(d, d->bus, "starting", &container);
                _cleanup_bus_message_ sd_bus_message *start = NULL;
                Answers answers = {};

                assert_true(sd_bus_message_new_method_call(d->bus, &start, BERTH_BUS_NAME, path,
                                                           BERTH_INTERFACE_CONTAINER, "Start") >= 0);
                assert_true(sd_bus_message_append(start, "a{sv}", 0) >= 0);
                assert_true(sd_bus_call_async(d->bus, NULL, start, on_answer, &answers, 0) >= 0);
                answers.wanted++;
                ask(d->bus, path, &call, &answers);
                ask(d->bus, path, &call, &answers);
                assert_true(bus_until(d->bus, &answers.done, MS));
                assert_int_equal(answers.good, 3);
                must_remove(d->bus, path);
        }
}

/* Execs that are under way in every phase when their container is stopped, removed, or loses its init. */
static void test_every_end_of_the_container_answers_every_exec(void **state) {
        const Call container = { .command = WORDS("sleep", "1000") },
                   call = { .command = WORDS("sleep", "1000") };
        Direct *d = *state;

        for (unsigned i = 0; i < 60; i++) {
                const char *path = must_run(d, d->bus, "ending", &container, NULL);
                Answers answers = {};

                for (unsigned k = 0; k < 10; k++) {
                        ask(d->bus, path, &call, &answers);
                        if (k != i % 10)
                                continue;
                        if (i % 3 == 0)
                                must_call(d->bus, path, "Stop", "t", UINT64_C(0));
                        else if (i % 3 == 1)
                                must_call(d->bus, path, "Signal", "i", SIGKILL);
                        else
                                must_call(d->bus, path, "Remove", "b", 1);
                }
                assert_true(bus_until(d->bus, &answers.done, MS));
                assert_int_equal(answers.good + answers.not_running, 10);
                if (i % 3 != 2)
                        must_remove(d->bus, path);
        }
        direct_expect_idle(d);
}

/* The fixture's end of the connection ends the service, which must not stumble over what is under way. */
static void test_the_service_ends_while_execs_start(void **state) {
        const Call call = { .command = WORDS("sleep", "1000"), .terminal = true };
        Direct *d = *state;
        const char *path = idle(d);

        for (unsigned i = 0; i < 20; i++) {
                _cleanup_bus_message_ sd_bus_message *m = NULL;

                m = exec_new(d->bus, path, &call);
                assert_true(sd_bus_send(d->bus, m, NULL) >= 0);
        }
        assert_true(sd_bus_flush(d->bus) >= 0);
}

static void test_a_client_that_dies_leaves_no_exec(void **state) {
        const Call container = { .command = WORDS("sleep", "1000") };
        const Call call = { .command = WORDS("sleep", "1000"), .terminal = true };
        Direct *d = *state;
        const char *path = must_run(d, d->bus, "orphans", &container, NULL);

        for (unsigned i = 0; i < 100; i++) {
                sd_bus *bus = direct_connect_own(d);

                for (unsigned k = 0; k < 3; k++) {
                        _cleanup_bus_message_ sd_bus_message *m = NULL;

                        m = exec_new(bus, path, &call);
                        assert_true(sd_bus_send(bus, m, NULL) >= 0);
                }
                for (unsigned k = 0; k < i % 7; k++)
                        (void) sd_bus_process(bus, NULL);
                bus_until_usec(d->bus, now_usec() + i * 30);
                (void) sd_bus_close_unref(bus);
        }
        /* Only init and berth-launch are left. */
        for (uint64_t until = now_usec() + MS * 1000U; direct_count_children(d) > 2;) {
                assert_true(now_usec() < until);
                bus_until_usec(d->bus, now_usec() + 10000);
        }
        must_remove(d->bus, path);
}

static void test_case_44_many_execs_leave_nothing(void **state) {
        const Call call = { .command = WORDS("true"), .terminal = true };
        Direct *d = *state;
        const char *path = idle(d);
        size_t fds;

        for (unsigned i = 0; i < 1001; i++) {
                int master;
                End end;

                end = process_must_wait(d->bus, must_exec(d->bus, path, &call, &master));
                (void) close(master);
                assert_int_equal(end.code, CLD_EXITED);
                assert_int_equal(end.status, 0);
                if (i == 0)
                        fds = direct_count_fds(d);
        }
        direct_expect_fds(d, fds);
        assert_int_equal(direct_count_children(d), 2);
}

static void test_two_hundred_at_once(void **state) {
        Direct *d = *state;
        const char *path = idle(d);
        const char *processes[200];
        int masters[200];

        for (unsigned i = 0; i < 200; i++) {
                const Call call = { .command = SH(text("read x; exit %u", i)), .terminal = true };

                processes[i] = strdup(must_exec(d->bus, path, &call, &masters[i]));
                assert_non_null(processes[i]);
        }
        for (unsigned i = 0; i < 200; i++)
                assert_int_equal(fd_write_all(masters[i], "\n", 1), 0);
        for (unsigned i = 0; i < 200; i++) {
                assert_int_equal(process_must_wait(d->bus, processes[i]).status, i);
                (void) close(masters[i]);
                free((char *) processes[i]);
        }
}

/* A container that may trace all it sees looks through every process that starts in it for a way to the host. */
static void test_who_may_trace_finds_no_way_to_the_host(void **state) {
        Direct *d = *state;
        const char *path = BERTH_CONTAINER_PREFIX "/snoop";
        const Call call = { .command = WORDS("true"), .no_new_privileges = true };
        const Call refused = { .command = WORDS("true") };
        _cleanup_free_ char *output = NULL;
        int in[2], out[2], stdio[3];
        char ready[7] = "";

        assert_int_equal(pipe2(in, O_CLOEXEC), 0);
        assert_int_equal(pipe2(out, O_CLOEXEC), 0);
        stdio[0] = in[0];
        stdio[1] = stdio[2] = out[1];
        const Call snoop = {
                .command = WORDS("payload", "snoop", d->root), /* a path that only the host has */
                .add_capabilities = WORDS("SYS_PTRACE"),
                .stdio = stdio,
        };
        (void) must_run(d, d->bus, "snoop", &snoop, NULL);
        (void) close(in[0]);
        (void) close(out[1]);
        assert_int_equal(read(out[0], ready, 6), 6);
        for (unsigned i = 0; i < 500; i++) {
                End end;

                end = process_must_wait(d->bus, must_exec(d->bus, path, &call, NULL));
                assert_int_equal(end.code, CLD_EXITED);
        }
        assert_non_null(
                strstr(exec_must_fail(d->bus, path, &refused, BERTH_ERROR_NOT_SUPPORTED), "CAP_SYS_PTRACE"));
        (void) close(in[1]);
        output = read_to_end(out[0], MS);
        (void) close(out[0]);
        assert_string_equal(output, "seen\n");
}

static void test_an_ordinary_users_container_is_entered(void **state) {
        const Call container = { .command = WORDS("sleep", "1000"), .root = "/", .read_only = true };
        const Call call = { .command = SH(
                                    "id -u; tty; stty size; stat -c %u $(tty); kill -0 1 && echo sees 1"),
                            .terminal = true,
                            .rows = 20,
                            .columns = 60 };
        _cleanup_free_ char *output = NULL;
        Direct *d = *state;
        const char *path = must_run(d, d->bus, "mine", &container, NULL), *process;
        int master;

        process = must_exec(d->bus, path, &call, &master);
        output = read_to_end(master, MS);
        (void) close(master);
        assert_string_equal(output, "0\r\n/dev/pts/0\r\n20 60\r\n0\r\nsees 1\r\n");
        assert_int_equal(process_must_wait(d->bus, process).status, 0);
        must_remove(d->bus, path);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                direct_test(test_statuses_and_signals_are_the_programs),
                direct_test(test_case_17_killed_is_not_exit_137),
                direct_test(test_case_12_a_signal_reaches_one_process),
                direct_test(test_case_16_not_found_and_not_executable_are_told_apart),
                direct_test(test_case_23_another_user),
                direct_test(test_defaults_are_the_containers),
                direct_test(test_case_49_exactly_three_descriptors),
                direct_test(test_case_31_end_of_input_reaches_the_program),
                direct_test(test_case_07_the_size_is_in_force_at_once),
                direct_test(test_case_01_no_output_is_lost),
                direct_test(test_resize_reaches_the_foreground),
                direct_test(test_case_37_a_closed_master_hangs_up),
                direct_test(test_case_33_a_background_child_does_not_hold_the_end),
                direct_test(test_what_does_not_run_is_refused_at_once),
                direct_test(test_the_end_of_init_is_the_end_of_fifty),
                direct_test(test_a_starting_container_is_waited_for),
                direct_test(test_every_end_of_the_container_answers_every_exec),
                direct_test(test_the_service_ends_while_execs_start),
                direct_test(test_the_service_ends_while_execs_start),
                direct_test(test_the_service_ends_while_execs_start),
                direct_listen_test(test_a_client_that_dies_leaves_no_exec),
                direct_test(test_case_44_many_execs_leave_nothing),
                direct_test(test_two_hundred_at_once),
                direct_test(test_who_may_trace_finds_no_way_to_the_host),
                direct_user_test(test_an_ordinary_users_container_is_entered),
        };

        return cmocka_run_group_tests(tests, direct_group_setup, NULL);
}
