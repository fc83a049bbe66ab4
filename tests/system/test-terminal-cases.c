/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The terminal in the reply: what the program sees of it, sizes, job control, hang-ups. The numbers are those of the
 * list of cases from other engines' trackers. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/pidfd.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "interfaces/names.h"
#include "tests/system/direct-call.h"
#include "util/fd.h"

#define MS 15000U

static TerminalTest *terminal_of(int master) {
        return terminal_test_attach(master, 24, 80);
}

static void test_case_01_output_of_a_command_that_ends_at_once_is_delivered(void **state) {
        Direct *d = *state;

        for (unsigned i = 0; i < 200; i++) {
                const Call call = { .command = WORDS("echo", "hoge"), .terminal = true };
                _cleanup_free_ char *output = NULL;
                _cleanup_fd_ int master = -EBADF;
                const char *path;
                End end;

                path = must_run(d, d->bus, "hoge", &call, &master);
                end = must_wait(d->bus, path);
                assert_int_equal(end.code, CLD_EXITED);
                assert_int_equal(end.status, 0);
                output = read_to_end(master, MS);
                assert_string_equal(output, "hoge\r\n");
                must_remove(d->bus, path);
        }
}

static void check_names(const Direct *d, const char *root, bool ephemeral) {
        const Call call = {
                .root = root,
                .ephemeral = ephemeral,
                .command = SH(
                        "tty; stat -c %i/%r \"$(tty)\" 2>/dev/null || ls -l \"$(tty)\"; "
                        "ls -l /dev/console /proc/self/fd/0; [ -t 0 ] && echo isatty; "
                        "[ -c \"$(readlink /proc/self/fd/0)\" ] && echo exists; echo hello >/dev/console"),
                .terminal = true,
        };
        _cleanup_free_ char *output = NULL;
        _cleanup_fd_ int master = -EBADF;
        const char *path;
        End end;

        path = must_run(d, d->bus, "", &call, &master);
        output = read_to_end(master, MS);
        end = must_wait(d->bus, path);
        assert_int_equal(end.status, 0);
        if (strncmp(output, "/dev/pts/0\r\n", 12) != 0 && strncmp(output, "/dev/console\r\n", 14) != 0)
                fail_msg("the terminal's name is wrong: %s", output);
        assert_null(strstr(output, "deleted"));
        assert_null(strstr(output, "not a tty"));
        assert_null(strstr(output, "No such"));
        assert_non_null(strstr(output, "isatty\r\n"));
        assert_non_null(strstr(output, "exists\r\n"));
        assert_non_null(strstr(output, "hello\r\n"));
        must_remove(d->bus, path);
}

static void test_case_04_the_slave_has_a_name_and_is_the_console(void **state) {
        Direct *d = *state;

        check_names(d, NULL, false);
        check_names(d, "/", true);
}

/* Waits until a job of the shell is in the foreground, or the shell itself. */
static bool await_foreground(const Direct *d, const char *path, bool job, unsigned deadline_ms) {
        uint64_t end = now_usec() + deadline_ms * 1000ULL;

        while ((get_u(d->bus, path, "ForegroundPID") != get_u(d->bus, path, "PID")) != job)
                if (now_usec() > end)
                        return false;
        return true;
}

static void test_case_05_job_control_works(void **state) {
        Direct *d = *state;
        const Call call = {
                .command = WORDS("/bin/sh", "-i"),
                .terminal = true,
                .environment = WORDS("PS1=ready> "),
        };
        _cleanup_terminal_test_ TerminalTest *t = NULL;
        const char *path;
        int master;

        path = must_run(d, d->bus, "jobs", &call, &master);
        t = terminal_of(master);
        assert_true(terminal_test_expect(t, "ready> ", MS));
        assert_null(strstr(terminal_test_output(t, NULL), "job control turned off"));
        terminal_test_type(t, "sleep 100 &\n");
        assert_true(terminal_test_expect(t, "ready> ", MS));
        terminal_test_type(t, "jobs\n");
        assert_true(terminal_test_expect(t, "Running", MS));
        assert_true(terminal_test_expect(t, "ready> ", MS));
        terminal_test_type(t, "fg\n");
        assert_true(terminal_test_expect(t, "sleep 100", MS));
        assert_true(await_foreground(d, path, true, MS));
        /* The shell's own SIGCONT of `fg` may come after this and undo it. */
        do
                terminal_test_type(t, "\032");
        while (!await_foreground(d, path, false, 500));
        assert_true(terminal_test_expect(t, "Stopped", MS));
        assert_true(terminal_test_expect(t, "ready> ", MS));
        terminal_test_type(t, "jobs; echo do''ne\n");
        assert_true(terminal_test_expect(t, "Stopped", MS));
        assert_true(terminal_test_expect(t, "done", MS));
        terminal_test_type(t, "echo o''k >/dev/tty\n");
        assert_true(terminal_test_expect(t, "ok", MS));
        /* In `read` and not at the prompt, where the line editor takes the signal for itself. */
        terminal_test_type(t, "trap 'echo W''W' WINCH; echo s''et; read x\n");
        assert_true(terminal_test_expect(t, "set\r\n", MS));
        must_call(d->bus, path, "Resize", "qq", 30, 100);
        assert_true(terminal_test_expect(t, "WW", MS));
        terminal_test_type(t, "\nstty size\n");
        assert_true(terminal_test_expect(t, "30 100", MS));
        must_remove(d->bus, path);
        assert_true(terminal_test_expect_end(t, MS));
}

static void test_case_07_size_is_in_force_before_the_first_instruction(void **state) {
        Direct *d = *state;

        for (unsigned i = 0; i < 100; i++) {
                const Call call = {
                        .command = i % 2 ? WORDS("stty", "size") : WORDS("payload", "size"),
                        .terminal = true,
                        .rows = 43,
                        .columns = 132,
                        .auto_remove = true,
                };
                _cleanup_free_ char *output = NULL;
                _cleanup_fd_ int master = -EBADF;
                const char *path;

                path = must_run(d, d->bus, "size", &call, &master);
                output = read_to_end(master, MS);
                assert_string_equal(output, "43 132\r\n");
                assert_int_equal(must_wait(d->bus, path).status, 0);
        }
}

static void expect_size(const Direct *d, const Call *call, const char *size) {
        _cleanup_free_ char *output = NULL;
        _cleanup_fd_ int master = -EBADF;
        const char *path;

        path = must_run(d, d->bus, "size", call, &master);
        output = read_to_end(master, MS);
        assert_string_equal(output, size);
        (void) must_wait(d->bus, path);
        must_remove(d->bus, path);
}

static void test_no_program_sees_0_by_0(void **state) {
        Direct *d = *state;
        Call call = { .command = WORDS("payload", "size"), .terminal = true };

        expect_size(d, &call, "24 80\r\n");
        call.sized = true;
        expect_size(d, &call, "24 80\r\n");
        call.rows = 50;
        expect_size(d, &call, "24 80\r\n");
        call.rows = 0;
        call.columns = 50;
        expect_size(d, &call, "24 80\r\n");
}

static void test_resize_before_start_is_in_force_in_the_first_instruction(void **state) {
        Direct *d = *state;
        const Call call = { .command = WORDS("payload", "size"), .terminal = true };

        for (unsigned i = 0; i < 20; i++) {
                _cleanup_free_ char *output = NULL;
                _cleanup_fd_ int master = -EBADF;
                const char *path;

                path = must_create(d, d->bus, "later", &call);
                must_call(d->bus, path, "Resize", "qq", 51, 151);
                assert_int_equal(get_q(d->bus, path, "Rows"), 51);
                master = must_start(d->bus, path);
                output = read_to_end(master, MS);
                assert_string_equal(output, "51 151\r\n");
                must_remove(d->bus, path);
        }
}

static void test_resize_reaches_the_program_by_ioctl_and_by_call(void **state) {
        Direct *d = *state;
        const Call call = { .command = WORDS("payload", "follow-size"), .terminal = true };
        _cleanup_terminal_test_ TerminalTest *t = NULL;
        const char *path;
        int master;
        End end;

        path = must_run(d, d->bus, "winch", &call, &master);
        t = terminal_of(master);
        assert_true(terminal_test_expect(t, "ready 24 80", MS));
        for (unsigned i = 1; i <= 20; i++) {
                unsigned rows = 24 + i, columns = 80 + i;

                if (i % 2)
                        terminal_test_resize(t, rows, columns);
                else
                        must_call(d->bus, path, "Resize", "qq", rows, columns);
                assert_true(terminal_test_expect(t, text("winch %u %u\r\n", rows, columns), MS));
                assert_int_equal(get_q(d->bus, path, "Rows"), rows);
                assert_int_equal(get_q(d->bus, path, "Columns"), columns);
        }
        must_call(d->bus, path, "Signal", "i", SIGTERM);
        end = must_wait(d->bus, path);
        assert_int_equal(end.code, CLD_EXITED);
        assert_int_equal(end.status, 0);
}

static void test_resize_reaches_the_foreground_group(void **state) {
        Direct *d = *state;
        const Call call = {
                .command = WORDS("/bin/sh", "-i"),
                .terminal = true,
                .environment = WORDS("PS1=ready> "),
        };
        _cleanup_terminal_test_ TerminalTest *t = NULL;
        uint32_t init, foreground;
        const char *path;
        int master;

        path = must_run(d, d->bus, "group", &call, &master);
        t = terminal_of(master);
        assert_true(terminal_test_expect(t, "ready> ", MS));
        init = get_u(d->bus, path, "PID");
        terminal_test_type(t, "payload follow-size\n");
        assert_true(terminal_test_expect(t, "ready 24 80", MS));
        foreground = get_u(d->bus, path, "ForegroundPID");
        assert_int_not_equal(foreground, 0);
        assert_int_not_equal(foreground, init);
        must_call(d->bus, path, "Resize", "qq", 33, 99);
        assert_true(terminal_test_expect(t, "winch 33 99", MS));
        must_remove(d->bus, path);
        assert_true(terminal_test_expect_end(t, MS));
}

typedef struct Answers {
        unsigned pending, n_ok, n_not_running;
        bool done;
} Answers;

static int on_resized(sd_bus_message *reply, void *userdata, sd_bus_error *unused) {
        const sd_bus_error *error = sd_bus_message_get_error(reply);
        Answers *answers = userdata;

        if (!error)
                answers->n_ok++;
        else if (strcmp(error->name, BERTH_ERROR_NOT_RUNNING) == 0)
                answers->n_not_running++;
        answers->done = --answers->pending == 0;
        return 0;
}

static void test_case_09_resize_of_a_process_that_has_ended(void **state) {
        const Call ended = { .command = WORDS("true"), .terminal = true };
        const Call ending = { .command = WORDS("sleep", "0.05"), .terminal = true };
        Answers answers = { .pending = 500 };
        Direct *d = *state;
        const char *path;
        size_t n_fds;
        int master;
        End end;

        path = must_run(d, d->bus, "ended", &ended, &master);
        end = must_wait(d->bus, path);
        must_call(d->bus, path, "Resize", "qq", 30, 90);
        assert_int_equal(get_i(d->bus, path, "ExitCode"), CLD_EXITED);
        assert_int_equal(get_i(d->bus, path, "ExitStatus"), 0);
        must_remove(d->bus, path);
        (void) fd_close(master);

        n_fds = direct_count_fds(d);
        path = must_run(d, d->bus, "ending", &ending, &master);
        for (unsigned i = 0; i < 500; i++)
                assert_true(sd_bus_call_method_async(d->bus, NULL, BERTH_BUS_NAME, path,
                                                     BERTH_INTERFACE_CONTAINER, "Resize", on_resized,
                                                     &answers, "qq", 20 + i % 50, 90 + i % 50) >= 0);
        assert_true(bus_until(d->bus, &answers.done, MS));
        assert_int_equal(answers.n_ok + answers.n_not_running, 500);
        end = must_wait(d->bus, path);
        assert_int_equal(end.code, CLD_EXITED);
        assert_int_equal(end.status, 0);
        must_remove(d->bus, path);
        (void) fd_close(master);
        direct_expect_fds(d, n_fds);
}

static void test_a_vhangup_from_inside_does_not_end_the_session(void **state) {
        Direct *d = *state;
        const Call call = {
                .command = WORDS("payload", "hang-up"),
                .terminal = true,
                .add_capabilities = WORDS("SYS_TTY_CONFIG"),
                .seccomp = "unconfined",
                .timeout_stop_usec = 1,
        };
        _cleanup_terminal_test_ TerminalTest *t = NULL;
        const char *path;
        int master;
        End end;

        path = must_run(d, d->bus, "login", &call, &master);
        t = terminal_of(master);
        assert_true(terminal_test_expect(t, "after\r\n", MS));
        must_call(d->bus, path, "Resize", "qq", 40, 140);
        assert_string_equal(get_s(d->bus, path, "State"), "running");
        terminal_test_type(t, "line\n");
        assert_true(terminal_test_expect(t, "got line", MS));
        assert_true(terminal_test_expect(t, "size 40 140", MS));
        end = must_wait(d->bus, path);
        assert_int_equal(end.code, CLD_EXITED);
        assert_int_equal(end.status, 0);
        assert_true(terminal_test_expect_end(t, MS));
}

static void test_much_output_comes_whole_and_ends_with_eio(void **state) {
        Direct *d = *state;
        const Call call = {
                .command = SH("i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done"),
                .terminal = true,
        };
        _cleanup_free_ char *output = NULL;
        _cleanup_fd_ int master = -EBADF;
        const char *path, *p;

        path = must_run(d, d->bus, "much", &call, &master);
        output = read_to_end(master, MS);
        p = output;
        for (unsigned i = 0; i < 20000; i++) {
                const char *line = text("line %u\r\n", i);

                assert_memory_equal(p, line, strlen(line));
                p += strlen(line);
        }
        assert_int_equal(*p, 0);
        assert_int_equal(must_wait(d->bus, path).status, 0);
}

/* ---- the client goes ------------------------------------------------------------------------------------------ */

typedef struct Victim {
        pid_t pid;
        int ready; /* a byte comes when it holds the master and has seen `expect` */
} Victim;

/* A client in a process of its own, which runs `call` and then holds the master until it is killed. */
static Victim victim_new(const Direct *d, const char *name, const Call *call, const char *type,
                         const char *expect) {
        Victim victim;
        int pair[2];

        assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
        victim.pid = fork();
        assert_true(victim.pid >= 0);
        if (victim.pid == 0) {
                TerminalTest *t;
                sd_bus *bus;
                int master;

                bus = direct_connect_own(d);
                if (call_run(d, bus, name, call, &master, NULL, NULL) < 0)
                        _exit(1);
                t = terminal_test_attach(master, 24, 80);
                if (type)
                        terminal_test_type(t, type);
                if (expect && !terminal_test_expect(t, expect, MS))
                        _exit(2);
                if (write(pair[1], "x", 1) != 1)
                        _exit(3);
                for (;;)
                        (void) pause();
        }
        (void) close(pair[1]);
        victim.ready = pair[0];
        return victim;
}

static void victim_kill(Victim *victim) {
        siginfo_t si;
        char byte;

        assert_int_equal(read(victim->ready, &byte, 1), 1);
        (void) close(victim->ready);
        assert_int_equal(kill(victim->pid, SIGKILL), 0);
        assert_int_equal(waitid(P_PID, (id_t) victim->pid, &si, WEXITED), 0);
}

static void test_case_37_caller_vanishes(void **state) {
        const Call shell = {
                .command = WORDS("/bin/sh", "-i"),
                .terminal = true,
                .environment = WORDS("PS1=ready> "),
                .timeout_stop_usec = 200000,
        };
        const Call plain = { .command = WORDS("sleep", "300"),
                             .terminal = true,
                             .timeout_stop_usec = 200000 };
        Direct *d = *state;
        Victim victims[2];
        uint64_t begin;
        End end;

        victims[0] = victim_new(d, "shell", &shell, "sleep 300\n", "sleep 300");
        victims[1] = victim_new(d, "plain", &plain, NULL, NULL);
        for (size_t i = 0; i < 2; i++)
                victim_kill(&victims[i]);
        begin = now_usec();
        (void) must_wait(d->bus, path_of("shell"));
        end = must_wait(d->bus, path_of("plain"));
        /* PID 1 with default actions hears neither SIGHUP nor SIGTERM. */
        assert_string_equal(end.result, "timeout");
        assert_true(now_usec() - begin < 3000000);
        must_remove(d->bus, path_of("shell"));
        must_remove(d->bus, path_of("plain"));
        direct_expect_idle(d);
}

static void test_hangup_alone_leaves_it_to_the_program(void **state) {
        const Call call = {
                .command = SH("trap 'exit 5' HUP; echo ready; while :; do read x; done"),
                .terminal = true,
                .on_disconnect = "hangup",
        };
        Direct *d = *state;
        Victim victim;
        End end;

        victim = victim_new(d, "hangup", &call, NULL, "ready");
        victim_kill(&victim);
        end = must_wait(d->bus, path_of("hangup"));
        assert_int_equal(end.code, CLD_EXITED);
        assert_int_equal(end.status, 5);
        must_remove(d->bus, path_of("hangup"));
}

static void test_the_client_is_the_only_holder_of_the_master(void **state) {
        const Call call = { .command = WORDS("sleep", "300"),
                            .terminal = true,
                            .timeout_stop_usec = 100000 };
        Direct *d = *state;
        const char *path;
        int master;
        End end;

        path = must_run(d, d->bus, "closed", &call, &master);
        (void) fd_close(master);
        end = must_wait(d->bus, path);
        assert_string_equal(end.result, "timeout");
        assert_int_equal(end.status, SIGKILL);
}

/* ---- what a container may do to the caller's terminal ---------------------------------------------------------- */

static void test_case_83_nothing_is_typed_into_the_callers_terminal(void **state) {
        Direct *d = *state;
        const char *mark = text("%s/tmp/pwned", d->root);
        _cleanup_terminal_test_ TerminalTest *t = NULL;

        t = terminal_test_spawn(WORDS("env", "PS1=ready> ", "sh", "-i"), 24, 200);
        assert_true(terminal_test_expect(t, "ready> ", MS));
        for (unsigned i = 0; i < 4; i++) {
                const char *how = i % 2 ? "-T" : "-t", *extra = i / 2 ? "--seccomp=unconfined" : "";

                terminal_test_type(
                        t, text("%s --direct run %s %s %s -- payload inject 'touch %s\n'; echo en''d\n",
                                path_of_berthctl(), how, extra, d->root, mark));
                /* By its own terminal it may do as it likes: the caller is not there. */
                assert_true(terminal_test_expect(t, i % 2 ? "2:refused" : "2:", MS));
                assert_true(terminal_test_expect(t, "end\r\n", MS));
                terminal_test_type(t, "echo still''here\n");
                assert_true(terminal_test_expect(t, "stillhere", MS));
        }
        assert_int_not_equal(access(mark, F_OK), 0);
        terminal_test_type(t, "exit\n");
        assert_int_equal(terminal_test_wait(t, MS), 0);
        assert_int_not_equal(access(mark, F_OK), 0);
}

static void test_berthctl_passes_the_callers_size(void **state) {
        static const struct {
                unsigned rows, columns;
                const char *expected;
        } sizes[] = { { 43, 132, "43 132" }, { 0, 0, "24 80" } };
        Direct *d = *state;

        for (size_t i = 0; i < ELEMENTSOF(sizes); i++) {
                _cleanup_terminal_test_ TerminalTest *t = NULL;

                t = terminal_test_spawn(WORDS("env", "PS1=ready> ", "sh", "-i"), 24, 200);
                assert_true(terminal_test_expect(t, "ready> ", MS));
                terminal_test_type(t, text("stty rows %u columns %u; %s --direct run -t %s -- sh -c "
                                           "'tty; stty size'; echo e''nd\n",
                                           sizes[i].rows, sizes[i].columns, path_of_berthctl(), d->root));
                assert_true(terminal_test_expect(t, sizes[i].expected, MS));
                assert_true(terminal_test_expect(t, "end", MS));
                terminal_test_type(t, "exit\n");
                assert_int_equal(terminal_test_wait(t, MS), 0);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                direct_test(test_case_01_output_of_a_command_that_ends_at_once_is_delivered),
                direct_test(test_case_04_the_slave_has_a_name_and_is_the_console),
                direct_test(test_case_05_job_control_works),
                direct_test(test_case_07_size_is_in_force_before_the_first_instruction),
                direct_test(test_no_program_sees_0_by_0),
                direct_test(test_resize_before_start_is_in_force_in_the_first_instruction),
                direct_test(test_resize_reaches_the_program_by_ioctl_and_by_call),
                direct_test(test_resize_reaches_the_foreground_group),
                direct_test(test_case_09_resize_of_a_process_that_has_ended),
                direct_test(test_a_vhangup_from_inside_does_not_end_the_session),
                direct_test(test_much_output_comes_whole_and_ends_with_eio),
                direct_listen_test(test_case_37_caller_vanishes),
                direct_listen_test(test_hangup_alone_leaves_it_to_the_program),
                direct_test(test_the_client_is_the_only_holder_of_the_master),
                direct_test(test_case_83_nothing_is_typed_into_the_callers_terminal),
                direct_test(test_berthctl_passes_the_callers_size),
        };

        return cmocka_run_group_tests(tests, direct_group_setup, NULL);
}
