/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A container as a whole: pausing, signals to all, who is in it and what it uses. The numbers are those of the list of
 * cases from other engines' trackers. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "interfaces/names.h"
#include "service/cgroup-control.h"
#include "service/cgroup.h"
#include "tests/system/direct-call.h"
#include "util/fd.h"
#include "util/strv.h"

#define MS 15000U
#define AT_ONCE_USEC 100000U

static const Call sleeper = { .command = WORDS("sleep", "1000") };

/* Waits where TERM and USR1 end it. */
static const Call ends_by_signal = {
        .command = SH("trap 'exit 7' TERM; >/data/ready; while :; do sleep 1000 & wait; done"),
};

static void expect_file(const Direct *d, const char *name) {
        const char *path = text("%s/data/%s", d->root, name);
        uint64_t deadline = now_usec() + MS * 1000U;

        while (unlink(path) < 0) {
                assert_true(now_usec() < deadline);
                bus_until_usec(d->bus, now_usec() + 1000);
        }
}

static const char *run_ends_by_signal(const Direct *d) {
        const char *path = must_run(d, d->bus, "p", &ends_by_signal, NULL);

        expect_file(d, "ready");
        return path;
}

/* ---- helpers -------------------------------------------------------------------------------------------------- */

static void must_refuse(sd_bus *bus, const char *path, const char *member, const char *error_name) {
        _cleanup_bus_error_ sd_bus_error error = SD_BUS_ERROR_NULL;

        if (call_container(bus, path, member, &error, "") >= 0)
                fail_msg("%s was to fail with %s", member, error_name);
        assert_string_equal(error.name, error_name);
}

static bool is_state(sd_bus *bus, const char *path, const char *state) {
        return strcmp(get_s(bus, path, "State"), state) == 0;
}

static void expect_state(sd_bus *bus, const char *path, const char *state) {
        uint64_t deadline = now_usec() + MS * 1000U;

        while (!is_state(bus, path, state)) {
                if (now_usec() > deadline)
                        fail_msg("%s is %s, not %s", path, get_s(bus, path, "State"), state);
                bus_until_usec(bus, now_usec() + 1000);
        }
}

/* Exec of `echo`: negative with *error, or 0. */
static int exec_echo(sd_bus *bus, const char *path, sd_bus_error *error) {
        return sd_bus_call_method(bus, BERTH_BUS_NAME, path, BERTH_INTERFACE_CONTAINER, "Exec", error, NULL,
                                  "a{sv}", 1, "Command", "as", 2, "echo", "yes");
}

/* The path of the process, malloced. */
static char *must_exec_sleep(sd_bus *bus, const char *path) {
        _cleanup_bus_message_ sd_bus_message *reply = NULL;
        _cleanup_bus_error_ sd_bus_error error = SD_BUS_ERROR_NULL;
        const char *process;
        char *copy;

        if (sd_bus_call_method(bus, BERTH_BUS_NAME, path, BERTH_INTERFACE_CONTAINER, "Exec", &error, &reply,
                               "a{sv}", 1, "Command", "as", 2, "sleep", "2000") < 0)
                fail_msg("Exec: %s: %s", error.name, error.message);
        assert_true(sd_bus_message_read(reply, "o", &process) > 0);
        copy = strdup(process);
        assert_non_null(copy);
        return copy;
}

static void expect_paused_at_once(sd_bus *bus, const char *path) {
        _cleanup_bus_error_ sd_bus_error error = SD_BUS_ERROR_NULL;
        uint64_t begin = now_usec();

        assert_true(exec_echo(bus, path, &error) < 0);
        assert_string_equal(error.name, BERTH_ERROR_PAUSED);
        assert_true(now_usec() - begin < AT_ONCE_USEC);
}

static int open_group(sd_bus *bus, const char *path) {
        int fd = cgroup_open(get_s(bus, path, "ControlGroup"));

        assert_true(fd >= 0);
        return fd;
}

/* The states that PropertiesChanged told, one after the other. */
static int on_changed(sd_bus_message *m, void *userdata, sd_bus_error *unused) {
        const char *interface, *key, *value;
        char ***states = userdata;

        if (!sd_bus_message_is_signal(m, "org.freedesktop.DBus.Properties", "PropertiesChanged"))
                return 0;
        assert_true(sd_bus_message_read(m, "s", &interface) > 0);
        assert_true(sd_bus_message_enter_container(m, 'a', "{sv}") >= 0);
        while (sd_bus_message_enter_container(m, 'e', "sv") > 0) {
                assert_true(sd_bus_message_read(m, "s", &key) > 0);
                if (strcmp(key, "State") == 0) {
                        assert_true(sd_bus_message_read(m, "v", "s", &value) > 0);
                        assert_int_equal(strv_append(states, value), 0);
                } else
                        assert_true(sd_bus_message_skip(m, "v") >= 0);
                assert_true(sd_bus_message_exit_container(m) >= 0);
        }
        return 0;
}

typedef struct Answer {
        bool done;
        char error[128];
} Answer;

static int on_answer(sd_bus_message *reply, void *userdata, sd_bus_error *unused) {
        const sd_bus_error *error = sd_bus_message_get_error(reply);
        Answer *answer = userdata;

        answer->done = true;
        (void) snprintf(answer->error, sizeof(answer->error), "%s", error ? error->name : "");
        return 0;
}

static void send_call(sd_bus *bus, const char *path, const char *member, Answer *answer) {
        *answer = (Answer) {};
        assert_true(sd_bus_call_method_async(bus, NULL, BERTH_BUS_NAME, path, BERTH_INTERFACE_CONTAINER,
                                             member, on_answer, answer, "") >= 0);
        assert_true(sd_bus_flush(bus) >= 0);
}

/* ---- pausing -------------------------------------------------------------------------------------------------- */

static void test_pause_and_resume_are_seen_and_told(void **state) {
        _cleanup_strv_ char **states = NULL;
        _cleanup_fd_ int group = -EBADF;
        Direct *d = *state;
        const char *path;

        assert_true(sd_bus_add_filter(d->bus, NULL, on_changed, &states) >= 0);
        path = run_ends_by_signal(d);
        group = open_group(d->bus, path);
        must_call(d->bus, path, "Resume", "");
        assert_false(cgroup_is_freezing(group));
        must_call(d->bus, path, "Pause", "");
        assert_true(cgroup_is_freezing(group));
        assert_true(is_state(d->bus, path, "paused"));
        assert_true(get_u(d->bus, path, "PID") > 0);
        must_call(d->bus, path, "Pause", "");
        must_call(d->bus, path, "Resume", "");
        assert_false(cgroup_is_freezing(group));
        assert_true(is_state(d->bus, path, "running"));
        must_remove(d->bus, path);
        bus_until_usec(d->bus, now_usec() + 20000);
        assert_non_null(states);
        for (const char *const *
                     expected = WORDS("starting", "running", "paused", "running", "stopping", "exited"),
                    *const *got = (const char *const *) states;
             *expected || *got; expected++, got++) {
                assert_non_null(*expected);
                assert_non_null(*got);
                assert_string_equal(*got, *expected);
        }
}

static void test_a_freeze_by_somebody_else_is_followed(void **state) {
        _cleanup_fd_ int group = -EBADF;
        Direct *d = *state;
        const char *path;

        path = must_run(d, d->bus, "p", &sleeper, NULL);
        group = open_group(d->bus, path);
        assert_int_equal(fd_write_file(group, "cgroup.freeze", "1"), 0);
        /* Even before the service has heard of it. */
        expect_paused_at_once(d->bus, path);
        expect_state(d->bus, path, "paused");
        assert_int_equal(fd_write_file(group, "cgroup.freeze", "0"), 0);
        expect_state(d->bus, path, "running");
        assert_int_equal(exec_echo(d->bus, path, NULL) < 0, 0);
        must_remove(d->bus, path);
}

static void test_pause_only_where_something_runs(void **state) {
        const Call ends = { .command = WORDS("true") };
        Direct *d = *state;
        const char *path;

        path = must_create(d, d->bus, "p", &ends);
        must_refuse(d->bus, path, "Pause", BERTH_ERROR_NOT_RUNNING);
        must_refuse(d->bus, path, "Resume", BERTH_ERROR_NOT_RUNNING);
        must_refuse(d->bus, path, "GetStatistics", BERTH_ERROR_NOT_RUNNING);
        (void) must_start(d->bus, path);
        (void) must_wait(d->bus, path);
        must_refuse(d->bus, path, "Pause", BERTH_ERROR_NOT_RUNNING);
        must_refuse(d->bus, path, "Resume", BERTH_ERROR_NOT_RUNNING);
        must_refuse(d->bus, path, "GetStatistics", BERTH_ERROR_NOT_RUNNING);
        must_remove(d->bus, path);
}

static void test_case_21_exec_into_a_paused_container(void **state) {
        _cleanup_bus_error_ sd_bus_error error = SD_BUS_ERROR_NULL;
        Direct *d = *state;
        const char *path;

        path = must_run(d, d->bus, "p", &sleeper, NULL);
        must_call(d->bus, path, "Pause", "");
        expect_paused_at_once(d->bus, path);
        assert_true(is_state(d->bus, path, "paused"));
        must_call(d->bus, path, "Resume", "");
        if (exec_echo(d->bus, path, &error) < 0)
                fail_msg("Exec: %s: %s", error.name, error.message);
        must_remove(d->bus, path);
}

static void test_case_41_signal_and_cancel_while_paused(void **state) {
        Direct *d = *state;
        const char *path;
        End end;

        /* The signal waits for the thaw. */
        path = run_ends_by_signal(d);
        must_call(d->bus, path, "Pause", "");
        must_call(d->bus, path, "Signal", "i", SIGTERM);
        bus_until_usec(d->bus, now_usec() + 50000);
        assert_true(is_state(d->bus, path, "paused"));
        must_call(d->bus, path, "Resume", "");
        end = must_wait(d->bus, path);
        assert_int_equal(end.code, CLD_EXITED);
        assert_int_equal(end.status, 7);
        must_remove(d->bus, path);

        /* Stop thaws, so that the program can end by itself. */
        path = run_ends_by_signal(d);
        must_call(d->bus, path, "Pause", "");
        must_call(d->bus, path, "Stop", "t", (uint64_t) MS * 1000U);
        end = must_wait(d->bus, path);
        assert_int_equal(end.code, CLD_EXITED);
        assert_int_equal(end.status, 7);
        must_remove(d->bus, path);

        /* By force. */
        path = must_run(d, d->bus, "p", &sleeper, NULL);
        must_call(d->bus, path, "Pause", "");
        must_remove(d->bus, path);
        path = must_run(d, d->bus, "p", &sleeper, NULL);
        must_call(d->bus, path, "Pause", "");
        must_call(d->bus, path, "SignalAll", "i", SIGKILL);
        end = must_wait(d->bus, path);
        assert_int_equal(end.code, CLD_KILLED);
        assert_string_equal(end.result, "signal");
        must_remove(d->bus, path);
        direct_expect_idle(d);
}

static void test_case_41_a_nested_group_that_is_frozen(void **state) {
        _cleanup_fd_ int group = -EBADF, nested = -EBADF;
        Direct *d = *state;
        const char *path;
        End end;

        for (unsigned i = 0; i < 2; i++) {
                path = run_ends_by_signal(d);
                group = open_group(d->bus, path);
                assert_int_equal(mkdirat(group, "nested", 0755), 0);
                nested = openat(group, "nested", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
                assert_true(nested >= 0);
                assert_int_equal(
                        fd_write_file(nested, "cgroup.procs", text("%u", get_u(d->bus, path, "PID"))), 0);
                assert_int_equal(fd_write_file(nested, "cgroup.freeze", "1"), 0);
                assert_true(cgroup_is_freezing(nested));
                /* Not the container as a whole, but a program would go there. */
                assert_true(is_state(d->bus, path, "running"));
                expect_paused_at_once(d->bus, path);
                must_call(d->bus, path, "Signal", "i", SIGTERM);
                if (i == 0)
                        must_call(d->bus, path, "Stop", "t", (uint64_t) 100000);
                else
                        must_call(d->bus, path, "SignalAll", "i", SIGKILL);
                end = must_wait(d->bus, path);
                assert_int_equal(end.code, CLD_KILLED);
                assert_int_equal(end.status, SIGKILL);
                must_remove(d->bus, path);
                group = fd_close(group);
                nested = fd_close(nested);
                direct_expect_idle(d);
        }
}

static void test_calls_that_wait_for_a_thaw_are_answered(void **state) {
        _cleanup_fd_ int group = -EBADF, above = -EBADF;
        Answer resume, pause;
        Direct *d = *state;
        const char *path;

        path = must_run(d, d->bus, "p", &sleeper, NULL);
        group = open_group(d->bus, path);
        above = openat(group, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(above >= 0);
        assert_int_equal(fd_write_file(above, "cgroup.freeze", "1"), 0);
        expect_state(d->bus, path, "paused");
        send_call(d->bus, path, "Resume", &resume);
        bus_until_usec(d->bus, now_usec() + 20000);
        assert_false(resume.done);
        /* The opposite call ends it. */
        send_call(d->bus, path, "Pause", &pause);
        assert_true(bus_until(d->bus, &pause.done, MS));
        assert_string_equal(pause.error, "");
        assert_true(bus_until(d->bus, &resume.done, MS));
        assert_string_equal(resume.error, BERTH_ERROR_CANCELLED);
        /* So does Stop; and the thaw that it waits for answers it. */
        send_call(d->bus, path, "Resume", &resume);
        assert_int_equal(fd_write_file(above, "cgroup.freeze", "0"), 0);
        assert_true(bus_until(d->bus, &resume.done, MS));
        assert_string_equal(resume.error, "");
        assert_int_equal(fd_write_file(above, "cgroup.freeze", "1"), 0);
        expect_state(d->bus, path, "paused");
        send_call(d->bus, path, "Resume", &resume);
        must_remove(d->bus, path);
        assert_true(bus_until(d->bus, &resume.done, MS));
        assert_string_equal(resume.error, BERTH_ERROR_CANCELLED);
        assert_int_equal(fd_write_file(above, "cgroup.freeze", "0"), 0);
}

/* ---- all processes --------------------------------------------------------------------------------------------- */

static void test_signal_all_reaches_every_process(void **state) {
        char *processes[3];
        Direct *d = *state;
        const char *path;
        End end;

        /* The init has no handler, so a signal from inside or outside but SIGKILL does nothing to it. */
        path = must_run(d, d->bus, "s", &sleeper, NULL);
        for (unsigned i = 0; i < 3; i++)
                processes[i] = must_exec_sleep(d->bus, path);
        must_call(d->bus, path, "SignalAll", "i", SIGUSR1);
        for (unsigned i = 0; i < 3; i++) {
                _cleanup_bus_message_ sd_bus_message *reply = NULL;
                int32_t code, status;

                assert_true(sd_bus_call_method(d->bus, BERTH_BUS_NAME, processes[i], BERTH_INTERFACE_PROCESS,
                                               "Wait", NULL, &reply, "") >= 0);
                assert_true(sd_bus_message_read(reply, "ii", &code, &status) > 0);
                assert_int_equal(code, CLD_KILLED);
                assert_int_equal(status, SIGUSR1);
                free(processes[i]);
        }
        assert_true(is_state(d->bus, path, "running"));
        free(must_exec_sleep(d->bus, path));
        must_call(d->bus, path, "SignalAll", "i", SIGKILL);
        end = must_wait(d->bus, path);
        assert_int_equal(end.code, CLD_KILLED);
        assert_int_equal(end.status, SIGKILL);
        must_remove(d->bus, path);
}

static void test_signal_all_checks_number_and_state(void **state) {
        Direct *d = *state;
        const char *path;

        path = must_run(d, d->bus, "s", &sleeper, NULL);
        for (int bad = 0; bad <= 65; bad += 65) {
                _cleanup_bus_error_ sd_bus_error error = SD_BUS_ERROR_NULL;

                assert_true(call_container(d->bus, path, "SignalAll", &error, "i", bad) < 0);
                assert_string_equal(error.name, BERTH_ERROR_INVALID_ARGS);
        }
        must_call(d->bus, path, "Stop", "t", (uint64_t) 0);
        {
                _cleanup_bus_error_ sd_bus_error error = SD_BUS_ERROR_NULL;

                assert_true(call_container(d->bus, path, "SignalAll", &error, "i", SIGTERM) < 0);
                assert_string_equal(error.name, BERTH_ERROR_NOT_RUNNING);
        }
        must_remove(d->bus, path);
}

/* The path of the container that a process is in, malloced, or NULL. */
static char *find_by_pid(sd_bus *bus, uint32_t pid) {
        _cleanup_bus_message_ sd_bus_message *reply = NULL;
        _cleanup_bus_error_ sd_bus_error error = SD_BUS_ERROR_NULL;
        const char *path;
        char *copy;

        if (sd_bus_call_method(bus, BERTH_BUS_NAME, BERTH_PATH, BERTH_INTERFACE_MANAGER, "GetContainerByPID",
                               &error, &reply, "u", pid) < 0) {
                assert_string_equal(error.name, BERTH_ERROR_NO_SUCH_CONTAINER);
                return NULL;
        }
        assert_true(sd_bus_message_read(reply, "o", &path) > 0);
        copy = strdup(path);
        assert_non_null(copy);
        return copy;
}

/* The first child of a process. */
static uint32_t child_of(const Direct *d, uint32_t pid) {
        uint64_t deadline = now_usec() + MS * 1000U;

        for (;;) {
                _cleanup_free_ char *children = NULL;
                uint32_t child;

                assert_true(now_usec() < deadline);
                assert_int_equal(
                        run_command(WORDS("cat", text("/proc/%u/task/%u/children", pid, pid)), &children),
                        0);
                child = (uint32_t) strtoul(children, NULL, 10);
                if (child > 0)
                        return child;
                bus_until_usec(d->bus, now_usec() + 1000);
        }
}

static void expect_found_by_pid(const Direct *d) {
        _cleanup_free_ char *by_init = NULL, *by_child = NULL, *by_exec = NULL, *process = NULL;
        const Call parent = { .command = SH("sleep 1000 & wait") };
        const char *one, *two;
        uint32_t pid;

        one = must_run(d, d->bus, "one", &sleeper, NULL);
        two = must_run(d, d->bus, "two", &parent, NULL);
        pid = get_u(d->bus, two, "PID");
        by_init = find_by_pid(d->bus, pid);
        assert_string_equal(by_init, two);
        by_child = find_by_pid(d->bus, child_of(d, pid));
        assert_string_equal(by_child, two);
        process = must_exec_sleep(d->bus, one);
        assert_true(sd_bus_get_property_trivial(d->bus, BERTH_BUS_NAME, process, BERTH_INTERFACE_PROCESS,
                                                "PID", NULL, 'u', &pid) >= 0);
        by_exec = find_by_pid(d->bus, pid);
        assert_string_equal(by_exec, one);
        assert_null(find_by_pid(d->bus, (uint32_t) d->pid));
        assert_null(find_by_pid(d->bus, 1));
        assert_null(find_by_pid(d->bus, 0));
        assert_null(find_by_pid(d->bus, UINT32_MAX));
        must_remove(d->bus, two);
        must_remove(d->bus, one);
        assert_null(find_by_pid(d->bus, pid));
}

/* The processes of a container: their number, and how many have this command line. */
static size_t list_processes(sd_bus *bus, const char *path, const char *line, size_t *ret_with) {
        _cleanup_bus_message_ sd_bus_message *reply = NULL;
        _cleanup_bus_error_ sd_bus_error error = SD_BUS_ERROR_NULL;
        size_t n = 0, with = 0;
        const char *got;
        uint32_t pid;

        if (sd_bus_call_method(bus, BERTH_BUS_NAME, path, BERTH_INTERFACE_CONTAINER, "ListProcesses", &error,
                               &reply, "") < 0)
                fail_msg("ListProcesses: %s: %s", error.name, error.message);
        assert_true(sd_bus_message_enter_container(reply, 'a', "(us)") >= 0);
        for (; sd_bus_message_read(reply, "(us)", &pid, &got) > 0; n++) {
                _cleanup_free_ char *found = find_by_pid(bus, pid);

                assert_string_equal(found, path);
                with += strcmp(got, line) == 0;
        }
        *ret_with = with;
        return n;
}

static void expect_processes(const Direct *d) {
        size_t n_fds, n, with;
        const char *path;

        /* Some things are there from the first run on. */
        must_remove(d->bus, must_run(d, d->bus, "l", &sleeper, NULL));
        direct_expect_idle(d);
        n_fds = direct_count_fds(d);
        path = must_create(d, d->bus, "l", &sleeper);
        must_refuse(d->bus, path, "ListProcesses", BERTH_ERROR_NOT_RUNNING);
        (void) must_start(d->bus, path);
        n = list_processes(d->bus, path, "sleep 1000", &with);
        assert_int_equal(n, 1);
        assert_int_equal(with, 1);
        for (unsigned i = 0; i < 20; i++)
                free(must_exec_sleep(d->bus, path));
        n = list_processes(d->bus, path, "sleep 2000", &with);
        assert_int_equal(n, 21);
        assert_int_equal(with, 20);
        must_remove(d->bus, path);
        direct_expect_idle(d);
        direct_expect_fds(d, n_fds);
}

static void test_a_container_is_found_by_any_of_its_processes(void **state) {
        expect_found_by_pid(*state);
}

static void test_processes_are_listed_with_their_command_lines(void **state) {
        expect_processes(*state);
}

static void test_without_a_group_the_namespace_tells(void **state) {
        Direct *d = *state;
        const char *path;
        End end;

        expect_found_by_pid(d);
        expect_processes(d);
        path = must_run(d, d->bus, "p", &sleeper, NULL);
        must_refuse(d->bus, path, "Pause", BERTH_ERROR_NOT_SUPPORTED);
        must_refuse(d->bus, path, "Resume", BERTH_ERROR_NOT_SUPPORTED);
        must_refuse(d->bus, path, "GetStatistics", BERTH_ERROR_NOT_SUPPORTED);
        free(must_exec_sleep(d->bus, path));
        must_call(d->bus, path, "SignalAll", "i", SIGUSR1);
        assert_true(is_state(d->bus, path, "running"));
        must_call(d->bus, path, "SignalAll", "i", SIGKILL);
        end = must_wait(d->bus, path);
        assert_int_equal(end.code, CLD_KILLED);
        must_remove(d->bus, path);
}

/* ---- how it ends ----------------------------------------------------------------------------------------------- */

static void test_runtime_max_stops_with_result_timeout(void **state) {
        Call call = ends_by_signal, killed = sleeper, early = { .command = WORDS("true") };
        Direct *d = *state;
        uint64_t begin;
        const char *path;
        End end;

        call.runtime_max_usec = 1000000;
        begin = now_usec();
        path = must_run(d, d->bus, "r", &call, NULL);
        end = must_wait(d->bus, path);
        assert_true(now_usec() - begin >= 1000000);
        assert_string_equal(end.result, "timeout");
        assert_int_equal(end.code, CLD_EXITED);
        assert_int_equal(end.status, 7);
        /* For each run anew, and paused time counts. */
        expect_file(d, "ready");
        (void) must_start(d->bus, path);
        expect_file(d, "ready");
        must_call(d->bus, path, "Pause", "");
        end = must_wait(d->bus, path);
        assert_string_equal(end.result, "timeout");
        must_remove(d->bus, path);

        killed.runtime_max_usec = 1;
        killed.timeout_stop_usec = 1;
        path = must_run(d, d->bus, "r", &killed, NULL);
        end = must_wait(d->bus, path);
        assert_string_equal(end.result, "timeout");
        assert_int_equal(end.code, CLD_KILLED);
        must_remove(d->bus, path);

        early.runtime_max_usec = MS * 1000U;
        path = must_run(d, d->bus, "r", &early, NULL);
        end = must_wait(d->bus, path);
        assert_string_equal(end.result, "success");
        must_remove(d->bus, path);
}

/* A string that doubles for ever. */
#define EAT_MEMORY "x=xxxxxxxxxxxxxxxx; while :; do x=$x$x; done"

static void test_case_20_an_out_of_memory_kill_is_named(void **state) {
        const Call call = { .command = SH(EAT_MEMORY), .memory_max = 16U << 20 };
        const Call around = { .command = WORDS("sleep", "1000"), .memory_max = 16U << 20 };
        _cleanup_free_ char *has = NULL;
        Direct *d = *state;
        const char *path;
        End end;

        assert_int_equal(
                run_command(SH(text("grep -sw memory %s/cgroup.controllers || :", d->cgroup)), &has), 0);
        if (!*has) {
                free(TAKE_PTR(has));
                (void) printf("# not applicable: memory-controller\n");
                skip();
        }
        path = must_run(d, d->bus, "o", &call, NULL);
        end = must_wait(d->bus, path);
        assert_int_equal(end.code, CLD_KILLED);
        assert_int_equal(end.status, SIGKILL);
        assert_string_equal(end.result, "oom-kill");
        must_remove(d->bus, path);

        /* In an Exec the container goes on, and a later one is seen too. */
        path = must_run(d, d->bus, "o", &around, NULL);
        for (unsigned i = 0; i < 2; i++) {
                _cleanup_bus_message_ sd_bus_message *reply = NULL, *ended = NULL;
                const char *process, *result;
                int32_t code, status;

                assert_true(sd_bus_call_method(d->bus, BERTH_BUS_NAME, path, BERTH_INTERFACE_CONTAINER,
                                               "Exec", NULL, &reply, "a{sv}", 1, "Command", "as", 3, "sh",
                                               "-c", EAT_MEMORY) >= 0);
                assert_true(sd_bus_message_read(reply, "o", &process) > 0);
                assert_true(sd_bus_call_method(d->bus, BERTH_BUS_NAME, process, BERTH_INTERFACE_PROCESS,
                                               "Wait", NULL, &ended, "") >= 0);
                assert_true(sd_bus_message_read(ended, "iis", &code, &status, &result) > 0);
                assert_int_equal(status, SIGKILL);
                assert_string_equal(result, "oom-kill");
                assert_true(is_state(d->bus, path, "running"));
        }
        must_call(d->bus, path, "Stop", "t", (uint64_t) 0);
        end = must_wait(d->bus, path);
        assert_string_equal(end.result, "timeout");
        must_remove(d->bus, path);
}

/* ---- limits ---------------------------------------------------------------------------------------------------- */

/* Update of one limit; the name of the error, or "". */
static const char *update(sd_bus *bus, const char *path, const char *key, uint64_t value) {
        static char name[128];
        _cleanup_bus_error_ sd_bus_error error = SD_BUS_ERROR_NULL;

        name[0] = '\0';
        if (call_container(bus, path, "Update", &error, "a{sv}", 1, key, "t", value) < 0) {
                (void) snprintf(name, sizeof(name), "%s", error.name);
                assert_non_null(strstr(error.message, key));
        }
        return name;
}

static void test_limits_are_updated_where_there_is_a_controller(void **state) {
        _cleanup_bus_error_ sd_bus_error error = SD_BUS_ERROR_NULL;
        _cleanup_free_ char *has = NULL;
        Direct *d = *state;
        const char *path;

        assert_int_equal(run_command(SH(text("grep -sw pids %s/cgroup.controllers || :", d->cgroup)), &has),
                         0);
        path = must_create(d, d->bus, "u", &ends_by_signal);
        assert_string_equal(update(d->bus, path, "TasksMax", UINT64_MAX), "");
        assert_string_equal(update(d->bus, path, "TasksMax", 0), BERTH_ERROR_INVALID_SPEC);
        assert_string_equal(update(d->bus, path, "CPUWeight", 10001), BERTH_ERROR_INVALID_SPEC);
        assert_string_equal(update(d->bus, path, "Hostname", 1), BERTH_ERROR_INVALID_SPEC);
        assert_string_equal(update(d->bus, path, "TasksMax", 50), *has ? "" : BERTH_ERROR_NOT_SUPPORTED);
        (void) must_start(d->bus, path);
        if (*has) {
                _cleanup_fd_ int group = open_group(d->bus, path);
                _cleanup_free_ char *max = NULL, *after = NULL;

                assert_int_equal(fd_read_file(group, "pids.max", 0, 64, &max, NULL), 0);
                assert_string_equal(max, "50\n");
                assert_string_equal(update(d->bus, path, "TasksMax", 60), "");
                assert_int_equal(fd_read_file(group, "pids.max", 0, 64, &after, NULL), 0);
                assert_string_equal(after, "60\n");
        } else
                assert_string_equal(update(d->bus, path, "TasksMax", 60), BERTH_ERROR_NOT_SUPPORTED);
        assert_string_equal(update(d->bus, path, "TasksMax", UINT64_MAX), "");
        must_call(d->bus, path, "Pause", "");
        assert_string_equal(update(d->bus, path, "TasksMax", UINT64_MAX), "");
        assert_true(call_container(d->bus, path, "Update", &error, "a{sv}", 1, "AllowedCPUs", "s", "x") < 0);
        assert_string_equal(error.name, BERTH_ERROR_INVALID_SPEC);
        must_remove(d->bus, path);
}

/* ---- statistics ------------------------------------------------------------------------------------------------ */

static uint64_t statistic(sd_bus *bus, const char *path, const char *name) {
        _cleanup_bus_message_ sd_bus_message *reply = NULL;
        _cleanup_bus_error_ sd_bus_error error = SD_BUS_ERROR_NULL;
        uint64_t value, found = UINT64_MAX;
        const char *key;

        if (sd_bus_call_method(bus, BERTH_BUS_NAME, path, BERTH_INTERFACE_CONTAINER, "GetStatistics", &error,
                               &reply, "") < 0)
                fail_msg("GetStatistics: %s: %s", error.name, error.message);
        assert_true(sd_bus_message_enter_container(reply, 'a', "{sv}") >= 0);
        while (sd_bus_message_read(reply, "{sv}", &key, "t", &value) > 0)
                if (strcmp(key, name) == 0)
                        found = value;
        return found;
}

static void test_case_71_processor_time_never_goes_back(void **state) {
        const Call busy = { .command = SH(
                                    "while :; do (i=0; while [ $i -lt 2000 ]; do i=$((i+1)); done); done") };
        _cleanup_fd_ int group = -EBADF;
        uint64_t before = 0, now = 0, deadline;
        Direct *d = *state;
        const char *path;

        path = must_run(d, d->bus, "s", &busy, NULL);
        group = open_group(d->bus, path);
        deadline = now_usec() + MS * 1000U;
        for (unsigned i = 0; i < 50 || now < 20000000; i++) {
                assert_true(now_usec() < deadline);
                now = statistic(d->bus, path, "CPUUsageNSec");
                assert_true(now != UINT64_MAX);
                assert_true(now >= before);
                before = now;
                bus_until_usec(d->bus, now_usec() + 1000);
        }
        /* A group that the container made counts too, also after it has gone. */
        assert_int_equal(mkdirat(group, "sub", 0755), 0);
        assert_int_equal(unlinkat(group, "sub", AT_REMOVEDIR), 0);
        must_call(d->bus, path, "Pause", "");
        before = statistic(d->bus, path, "CPUUsageNSec");
        assert_true(before >= now);
        bus_until_usec(d->bus, now_usec() + 50000);
        assert_true(statistic(d->bus, path, "CPUUsageNSec") - before < 5000000);
        must_call(d->bus, path, "Resume", "");
        must_remove(d->bus, path);
}

static void test_statistics_are_those_the_host_has(void **state) {
        _cleanup_fd_ int group = -EBADF;
        Direct *d = *state;
        const char *path;

        path = must_run(d, d->bus, "s", &sleeper, NULL);
        group = open_group(d->bus, path);
        assert_int_equal(statistic(d->bus, path, "MemoryCurrent") == UINT64_MAX,
                         faccessat(group, "memory.current", F_OK, 0) < 0);
        assert_int_equal(statistic(d->bus, path, "OOMKills") == UINT64_MAX,
                         faccessat(group, "memory.events", F_OK, 0) < 0);
        assert_int_equal(statistic(d->bus, path, "TasksCurrent") == UINT64_MAX,
                         faccessat(group, "pids.current", F_OK, 0) < 0);
        assert_int_equal(statistic(d->bus, path, "CPUPressureSomeUSec") == UINT64_MAX,
                         faccessat(group, "cpu.pressure", F_OK, 0) < 0);
        must_remove(d->bus, path);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                direct_test(test_pause_and_resume_are_seen_and_told),
                direct_test(test_a_freeze_by_somebody_else_is_followed),
                direct_test(test_pause_only_where_something_runs),
                direct_test(test_case_21_exec_into_a_paused_container),
                direct_test(test_case_41_signal_and_cancel_while_paused),
                direct_test(test_case_41_a_nested_group_that_is_frozen),
                direct_test(test_calls_that_wait_for_a_thaw_are_answered),
                direct_test(test_signal_all_reaches_every_process),
                direct_test(test_signal_all_checks_number_and_state),
                direct_test(test_a_container_is_found_by_any_of_its_processes),
                direct_test(test_processes_are_listed_with_their_command_lines),
                direct_user_test(test_without_a_group_the_namespace_tells),
                direct_test(test_runtime_max_stops_with_result_timeout),
                direct_test(test_case_20_an_out_of_memory_kill_is_named),
                direct_test(test_limits_are_updated_where_there_is_a_controller),
                direct_test(test_case_71_processor_time_never_goes_back),
                direct_test(test_statistics_are_those_the_host_has),
        };

        return cmocka_run_group_tests(tests, direct_group_setup, NULL);
}
