/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How programs end and what is told of it. The numbers are those of the list of cases from other engines' trackers. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "interfaces/names.h"
#include "tests/system/direct-call.h"
#include "util/fd.h"

#define MS 15000U

static void test_statuses_arrive_unchanged(void **state) {
        static const struct {
                int status;
                const char *result;
        } statuses[] = { { 0, "success" },
                         { 1, "exit-code" },
                         { 42, "exit-code" },
                         { 137, "exit-code" },
                         { 255, "exit-code" } };
        Direct *d = *state;

        for (size_t i = 0; i < ELEMENTSOF(statuses); i++) {
                const Call call = { .command = SH(text("exit %d", statuses[i].status)) };
                const char *path;
                End end;

                path = must_run(d, d->bus, "status", &call, NULL);
                end = must_wait(d->bus, path);
                assert_int_equal(end.code, CLD_EXITED);
                assert_int_equal(end.status, statuses[i].status);
                assert_string_equal(end.result, statuses[i].result);
                assert_int_equal(get_i(d->bus, path, "ExitCode"), CLD_EXITED);
                assert_int_equal(get_i(d->bus, path, "ExitStatus"), statuses[i].status);
                assert_string_equal(get_s(d->bus, path, "Result"), statuses[i].result);
                assert_string_equal(get_s(d->bus, path, "State"), "exited");
                assert_int_equal(get_u(d->bus, path, "PID"), 0);
                must_remove(d->bus, path);
        }
}

static void test_signals_arrive_unchanged(void **state) {
        static const struct {
                const char *fault;
                int signal;
        } faults[] = { { "segv", SIGSEGV }, { "ill", SIGILL }, { "bus", SIGBUS } };
        Direct *d = *state;

        for (size_t i = 0; i < ELEMENTSOF(faults); i++) {
                const Call call = {
                        .command = WORDS("payload", "fault", faults[i].fault),
                        .limit = "CORE",
                };
                End end;

                free(capture(d, d->bus, &call, &end));
                assert_int_equal(end.code, CLD_KILLED);
                assert_int_equal(end.status, faults[i].signal);
                assert_string_equal(end.result, "signal");
        }
}

/* That it goes on can only be seen by time that passes: half a second in which nothing is told of an end. */
static void expect_running(sd_bus *bus, const char *path) {
        bus_until_usec(bus, now_usec() + 500000);
        assert_string_equal(get_s(bus, path, "State"), "running");
}

static void test_case_11_sigterm_to_a_plain_pid_1_does_nothing(void **state) {
        const Call plain = { .command = WORDS("sleep", "100") };
        const Call handler = { .command = SH("trap 'exit 7' TERM; echo ready; while :; do sleep 0.1; done"),
                               .terminal = true };
        _cleanup_terminal_test_ TerminalTest *t = NULL;
        Direct *d = *state;
        const char *path;
        int master;
        End end;

        path = must_run(d, d->bus, "plain", &plain, NULL);
        must_call(d->bus, path, "Signal", "i", SIGTERM);
        expect_running(d->bus, path);
        must_call(d->bus, path, "Signal", "i", SIGKILL);
        end = must_wait(d->bus, path);
        assert_int_equal(end.code, CLD_KILLED);
        assert_int_equal(end.status, SIGKILL);
        assert_string_equal(end.result, "signal");

        path = must_run(d, d->bus, "handler", &handler, &master);
        t = terminal_test_attach(master, 24, 80);
        assert_true(terminal_test_expect(t, "ready", MS));
        must_call(d->bus, path, "Signal", "i", SIGTERM);
        end = must_wait(d->bus, path);
        assert_int_equal(end.code, CLD_EXITED);
        assert_int_equal(end.status, 7);
        assert_string_equal(end.result, "exit-code");
}

static void test_signal_refuses_what_is_no_signal(void **state) {
        static const int bad[] = { 0, -1, 65, 1000 };
        const Call call = { .command = WORDS("sleep", "100") };
        Direct *d = *state;
        const char *path;

        path = must_run(d, d->bus, "bad", &call, NULL);
        for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
                _cleanup_bus_error_ sd_bus_error error = SD_BUS_ERROR_NULL;

                assert_true(call_container(d->bus, path, "Signal", &error, "i", bad[i]) < 0);
                assert_string_equal(error.name, BERTH_ERROR_INVALID_ARGS);
        }
        must_remove(d->bus, path);
}

static void write_script(const Direct *d, const char *name, const char *content, mode_t mode) {
        _cleanup_fd_ int fd = -EBADF;

        fd = open(text("%s%s", d->root, name), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        assert_true(fd >= 0);
        assert_int_equal(fd_write_all(fd, content, strlen(content)), 0);
        assert_int_equal(fchmod(fd, mode), 0);
}

static void test_case_16_not_found_not_executable_and_failure_are_told_apart(void **state) {
        static const struct {
                const char *program, *error, *message;
                int berthctl;
        } programs[] = {
                { "/nonexistent", BERTH_ERROR_COMMAND_NOT_FOUND, "exec /nonexistent: No such file", 127 },
                { "nosuchcmd", BERTH_ERROR_COMMAND_NOT_FOUND, "exec nosuchcmd: No such file", 127 },
                { "/etc/passwd/x", BERTH_ERROR_COMMAND_NOT_FOUND, "exec /etc/passwd/x: Not a directory",
                  127 },
                { "/etc", BERTH_ERROR_COMMAND_NOT_EXECUTABLE, "exec /etc: ", 126 },
                { "/etc/passwd", BERTH_ERROR_COMMAND_NOT_EXECUTABLE, "exec /etc/passwd: Permission denied",
                  126 },
                { "/garbage", BERTH_ERROR_COMMAND_NOT_EXECUTABLE, "exec /garbage: Exec format error", 126 },
                { "/no-interpreter", BERTH_ERROR_COMMAND_NOT_FOUND, "exec /no-interpreter: No such file",
                  127 },
        };
        _cleanup_free_ char *output = NULL;
        Direct *d = *state;

        write_script(d, "/garbage", "neither a script nor a program\n", 0755);
        write_script(d, "/no-interpreter", "#!/no/such/interpreter\n", 0755);
        for (size_t i = 0; i < ELEMENTSOF(programs); i++) {
                const Call call = { .command = WORDS(programs[i].program) };
                _cleanup_free_ char *told = NULL;
                const char *message;
                int status;

                message = must_fail(d, d->bus, "absent", &call, programs[i].error);
                if (!strstr(message, programs[i].message) || !strstr(message, "container absent: "))
                        fail_msg("%s: %s", programs[i].program, message);
                assert_int_equal(count_containers(d->bus), 0);
                status = run_command(
                        WORDS(path_of_berthctl(), "--direct", "run", d->root, "--", programs[i].program),
                        &told);
                if (status != programs[i].berthctl || !strstr(told, programs[i].message))
                        fail_msg("%s: status %d: %s", programs[i].program, status, told);
        }
        assert_int_equal(
                run_command(WORDS(path_of_berthctl(), "--direct", "run", "/nonexistent", "--", "true"),
                            &output),
                125);
}

static void test_case_17_killed_by_a_signal_is_not_exit_137(void **state) {
        const Call exit_137 = { .command = SH("exit 137") };
        const Call waits = { .command = WORDS("sleep", "100") };
        /* A child's death by a signal is its parent's to tell. */
        const Call child = { .command = SH("sh -c 'kill -9 $$'; exit $?") };
        Direct *d = *state;
        const char *path;
        End end;

        path = must_run(d, d->bus, "exit", &exit_137, NULL);
        end = must_wait(d->bus, path);
        assert_int_equal(end.code, CLD_EXITED);
        assert_int_equal(end.status, 137);
        path = must_run(d, d->bus, "child", &child, NULL);
        end = must_wait(d->bus, path);
        assert_int_equal(end.code, CLD_EXITED);
        assert_int_equal(end.status, 137);
        path = must_run(d, d->bus, "kill", &waits, NULL);
        must_call(d->bus, path, "Signal", "i", SIGKILL);
        end = must_wait(d->bus, path);
        assert_int_equal(end.code, CLD_KILLED);
        assert_int_equal(end.status, SIGKILL);
}

/* ---- Stop ----------------------------------------------------------------------------------------------------- */

typedef struct Stops {
        unsigned pending;
        bool done;
} Stops;

static int on_stopped(sd_bus_message *reply, void *userdata, sd_bus_error *unused) {
        Stops *stops = userdata;

        assert_null(sd_bus_message_get_error(reply));
        stops->done = --stops->pending == 0;
        return 0;
}

static void stop_later(sd_bus *bus, const char *path, uint64_t timeout_usec, Stops *stops) {
        stops->pending++;
        assert_true(sd_bus_call_method_async(bus, NULL, BERTH_BUS_NAME, path, BERTH_INTERFACE_CONTAINER,
                                             "Stop", on_stopped, stops, "t", timeout_usec) >= 0);
}

static void test_stop_sends_the_stop_signal_and_waits_for_the_program(void **state) {
        const Call call = {
                .command = SH("trap 'exit 7' USR1; echo ready; while :; do sleep 0.05; done"),
                .terminal = true,
                .stop_signal = SIGUSR1,
        };
        _cleanup_terminal_test_ TerminalTest *t = NULL;
        Direct *d = *state;
        const char *path;
        int master;
        End end;

        path = must_run(d, d->bus, "good", &call, &master);
        t = terminal_test_attach(master, 24, 80);
        assert_true(terminal_test_expect(t, "ready", MS));
        must_call(d->bus, path, "Stop", "t", UINT64_MAX);
        assert_string_equal(get_s(d->bus, path, "State"), "exited");
        end = must_wait(d->bus, path);
        assert_int_equal(end.code, CLD_EXITED);
        assert_int_equal(end.status, 7);
        assert_string_equal(end.result, "exit-code");
        /* One that is over already. */
        must_call(d->bus, path, "Stop", "t", (uint64_t) 0);
}

static void expect_stopped_by_force(Direct *d, const char *path, Stops *stops, uint64_t begin,
                                    uint64_t least, uint64_t most) {
        uint64_t took;
        End end;

        assert_true(bus_until(d->bus, &stops->done, MS));
        took = now_usec() - begin;
        if (took < least || took > most)
                fail_msg("the stop took %llu µs", (unsigned long long) took);
        end = must_wait(d->bus, path);
        assert_int_equal(end.code, CLD_KILLED);
        assert_int_equal(end.status, SIGKILL);
        assert_string_equal(end.result, "timeout");
        must_remove(d->bus, path);
}

static void test_stop_escalates_and_a_second_one_only_shortens(void **state) {
        const Call call = { .command = WORDS("sleep", "100"), .timeout_stop_usec = 300000 };
        const uint64_t minute = 60000000;
        Direct *d = *state;
        const char *path;
        Stops stops;
        uint64_t begin;

        path = must_run(d, d->bus, "escalate", &call, NULL);
        begin = now_usec();
        stops = (Stops) {};
        stop_later(d->bus, path, UINT64_MAX, &stops);
        expect_stopped_by_force(d, path, &stops, begin, 300000, 5000000);

        path = must_run(d, d->bus, "shorten", &call, NULL);
        begin = now_usec();
        stops = (Stops) {};
        stop_later(d->bus, path, minute, &stops);
        stop_later(d->bus, path, 200000, &stops);
        expect_stopped_by_force(d, path, &stops, begin, 200000, 5000000);

        path = must_run(d, d->bus, "lengthen", &call, NULL);
        begin = now_usec();
        stops = (Stops) {};
        stop_later(d->bus, path, 200000, &stops);
        stop_later(d->bus, path, minute, &stops);
        expect_stopped_by_force(d, path, &stops, begin, 200000, 5000000);

        path = must_run(d, d->bus, "now", &call, NULL);
        begin = now_usec();
        stops = (Stops) {};
        stop_later(d->bus, path, minute, &stops);
        stop_later(d->bus, path, 0, &stops);
        expect_stopped_by_force(d, path, &stops, begin, 0, 5000000);
}

static void test_an_exited_container_runs_again_and_its_status_is_reset(void **state) {
        const Call call = { .command = SH("[ -e /tmp/once ] && sleep 100; touch /tmp/once; exit 9") };
        Direct *d = *state;
        const char *path;

        path = must_create(d, d->bus, "twice", &call);
        (void) must_start(d->bus, path);
        assert_int_equal(must_wait(d->bus, path).status, 9);
        (void) must_start(d->bus, path);
        assert_string_equal(get_s(d->bus, path, "State"), "running");
        assert_string_equal(get_s(d->bus, path, "Result"), "");
        assert_int_equal(get_i(d->bus, path, "ExitCode"), 0);
        assert_int_equal(get_i(d->bus, path, "ExitStatus"), 0);
        must_call(d->bus, path, "Stop", "t", (uint64_t) 0);
        assert_int_equal(must_wait(d->bus, path).status, SIGKILL);
        must_remove(d->bus, path);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                direct_test(test_statuses_arrive_unchanged),
                direct_test(test_signals_arrive_unchanged),
                direct_test(test_case_11_sigterm_to_a_plain_pid_1_does_nothing),
                direct_test(test_signal_refuses_what_is_no_signal),
                direct_test(test_case_16_not_found_not_executable_and_failure_are_told_apart),
                direct_test(test_case_17_killed_by_a_signal_is_not_exit_137),
                direct_test(test_stop_sends_the_stop_signal_and_waits_for_the_program),
                direct_test(test_stop_escalates_and_a_second_one_only_shortens),
                direct_test(test_an_exited_container_runs_again_and_its_status_is_reset),
        };

        return cmocka_run_group_tests(tests, direct_group_setup, NULL);
}
