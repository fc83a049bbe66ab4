/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Starts that are cancelled, ends that come together, names that are wanted twice. The numbers are those of the list
 * of cases from other engines' trackers. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "interfaces/names.h"
#include "tests/system/direct-call.h"
#include "util/fd.h"

#define MS 20000U
#define ROUNDS 400U
#define CASE_MOUNTS 20U

/* ---- cancelling ----------------------------------------------------------------------------------------------- */

/* The answer to one call that was sent. */
typedef struct Answer {
        bool done, failed;
        char name[128], message[512], path[256];
} Answer;

static int on_answer(sd_bus_message *reply, void *userdata, sd_bus_error *unused) {
        const sd_bus_error *error = sd_bus_message_get_error(reply);
        Answer *answer = userdata;
        const char *path;

        answer->done = true;
        answer->failed = error;
        if (error) {
                (void) snprintf(answer->name, sizeof(answer->name), "%s", error->name);
                (void) snprintf(answer->message, sizeof(answer->message), "%s", error->message);
        } else if (sd_bus_message_read(reply, "o", &path) > 0)
                (void) snprintf(answer->path, sizeof(answer->path), "%s", path);
        return 0;
}

static void send_run(const Direct *d, sd_bus *bus, const char *name, const Call *call, Answer *answer) {
        _cleanup_bus_message_ sd_bus_message *m = NULL;

        *answer = (Answer) {};
        m = call_new(d, bus, "RunContainer", name, call);
        assert_true(sd_bus_call_async(bus, NULL, m, on_answer, answer, 0) >= 0);
        assert_true(sd_bus_flush(bus) >= 0);
}

static void fill_mounts(CallMount mounts[static CASE_MOUNTS]) {
        static const char *const options[] = { "size=64k", "mode=755", NULL };
        static char destinations[CASE_MOUNTS][16];

        for (unsigned i = 0; i < CASE_MOUNTS; i++) {
                (void) snprintf(destinations[i], sizeof(destinations[i]), "/data/%u", i);
                mounts[i] = (CallMount) {
                        .destination = destinations[i],
                        .type = "tmpfs",
                        .options = options,
                };
        }
}

/* How long a start takes here and now. */
static uint64_t start_usec(const Direct *d, sd_bus *bus, const Call *call) {
        uint64_t least = UINT64_MAX;

        for (unsigned i = 0; i < 5; i++) {
                uint64_t begin = now_usec(), took;

                (void) must_run(d, bus, "measure", call, NULL);
                took = now_usec() - begin;
                must_remove(bus, path_of("measure"));
                if (took < least)
                        least = took;
        }
        return least;
}

static void check_outcome(const Answer *answer, unsigned counts[static 2]) {
        if (!answer->failed)
                counts[0]++;
        else {
                if (strcmp(answer->name, BERTH_ERROR_CANCELLED) != 0)
                        fail_msg("neither run nor cancelled: %s: %s", answer->name, answer->message);
                counts[1]++;
        }
}

/* 400 rounds: by force, by Stop, by the end of the connection, at any point of the start and a little later. */
static void test_case_39_cancel_at_every_point_of_start(void **state) {
        CallMount mounts[CASE_MOUNTS];
        const Call call = {
                .command = WORDS("sleep", "1000"),
                .mounts = mounts,
                .n_mounts = CASE_MOUNTS,
                .on_disconnect = "kill",
                .timeout_stop_usec = 1,
        };
        unsigned counts[2] = {}, by_connection = 0;
        Direct *d = *state;
        uint64_t range, ticks;
        size_t n_fds;

        fill_mounts(mounts);
        range = start_usec(d, d->bus, &call) * 3 / 2;
        direct_expect_idle(d);
        n_fds = direct_count_fds(d);
        srand(39);
        for (unsigned i = 0; i < ROUNDS; i++) {
                uint64_t at = now_usec() + (uint64_t) rand() % (range + 1);
                _cleanup_bus_ sd_bus *caller = NULL;
                const char *path = path_of("cancel");
                sd_bus_error error = SD_BUS_ERROR_NULL;
                Answer answer;

                caller = direct_connect_own(d);
                send_run(d, caller, "cancel", &call, &answer);
                bus_until_usec(caller, at);
                if (i % 3 == 2) {
                        by_connection++;
                        caller = sd_bus_close_unref(caller);
                } else {
                        int r;

                        /* It can come before the call was even read: then there is no such object. */
                        do {
                                bus_until_usec(caller, 0);
                                if (answer.failed)
                                        fail_msg("not cancelled yet, and %s: %s", answer.name,
                                                 answer.message);
                                sd_bus_error_free(&error);
                                r = i % 3 == 0 ? call_container(d->bus, path, "Remove", &error, "b", 1)
                                               : call_container(d->bus, path, "Stop", &error, "t",
                                                                (uint64_t) 0);
                        } while (r < 0 && strcmp(error.name, SD_BUS_ERROR_UNKNOWN_OBJECT) == 0);
                        if (r < 0)
                                fail_msg("cannot cancel: %s: %s", error.name, error.message);
                        assert_true(bus_until(caller, &answer.done, MS));
                        check_outcome(&answer, counts);
                        /* The aim follows the load of the machine. */
                        range = answer.failed ? range + range / 20 + 1 : range - range / 10;
                        /* One that had started and was stopped stays, as exited. */
                        if (i % 3 == 1 && !answer.failed) {
                                assert_string_equal(get_s(d->bus, path, "State"), "exited");
                                must_remove(d->bus, path);
                        }
                }
                if (i % 3 == 2) {
                        /* Until the end of the connection has been seen, and what it ended has ended: a start that
                         * came to be leaves an exited container. */
                        direct_expect_fds(d, n_fds);
                        (void) call_container(d->bus, path, "Remove", NULL, "b", 0);
                }
                assert_int_equal(count_containers(d->bus), 0);
        }
        assert_int_equal(counts[0] + counts[1] + by_connection, ROUNDS);
        /* The moments were spread over the start, else this test shows nothing. */
        if (counts[0] < 10 || counts[1] < 10)
                fail_msg("%u started and %u were cancelled: badly aimed", counts[0], counts[1]);
        direct_expect_idle(d);
        direct_expect_fds(d, n_fds);
        ticks = direct_cpu_ticks(d);
        bus_until_usec(d->bus, now_usec() + 300000);
        /* It has nothing to do, and does that. */
        assert_true(direct_cpu_ticks(d) - ticks <= 2);
}

static void test_a_client_killed_at_any_moment_of_start_leaves_nothing(void **state) {
        CallMount mounts[CASE_MOUNTS];
        const Call call = {
                .command = WORDS("sleep", "1000"),
                .mounts = mounts,
                .n_mounts = CASE_MOUNTS,
                .terminal = true,
                .timeout_stop_usec = 1,
                .auto_remove = true,
        };
        Direct *d = *state;
        uint64_t start;
        size_t n_fds;

        fill_mounts(mounts);
        start = start_usec(d, d->bus, &call);
        direct_expect_idle(d);
        n_fds = direct_count_fds(d);
        srand(37);
        for (unsigned i = 0; i < 100; i++) {
                uint64_t at = now_usec() + (uint64_t) rand() % (start * 2);
                siginfo_t si;
                pid_t pid;

                pid = fork();
                assert_true(pid >= 0);
                if (pid == 0) {
                        sd_bus *bus = direct_connect_own(d);

                        (void) call_run(d, bus, text("victim-%u", i), &call, NULL, NULL, NULL);
                        for (;;)
                                (void) pause();
                }
                bus_until_usec(d->bus, at);
                assert_int_equal(kill(pid, SIGKILL), 0);
                assert_int_equal(waitid(P_PID, (id_t) pid, &si, WEXITED), 0);
        }
        direct_expect_fds(d, n_fds);
        direct_expect_idle(d);
        while (count_containers(d->bus) > 0)
                for (unsigned i = 0; i < 100; i++)
                        (void) call_container(d->bus, path_of(text("victim-%u", i)), "Remove", NULL, "b", 0);
        direct_expect_fds(d, n_fds);
}

static void test_a_launch_over_its_time_ends_and_names_the_stage(void **state) {
        const Call call = { .command = WORDS("sleep", "1000"), .timeout_start_usec = 1 };
        Direct *d = *state;
        const char *message;

        for (unsigned i = 0; i < 20; i++) {
                message = must_fail(d, d->bus, "late", &call, BERTH_ERROR_TIMEOUT);
                assert_non_null(strstr(
                        message, "container late: the start took longer than TimeoutStartUSec, at stage "));
                assert_int_equal(count_containers(d->bus), 0);
        }
        direct_expect_idle(d);
}

/* ---- many at once --------------------------------------------------------------------------------------------- */

#define DEATHS 200U

typedef struct Deaths {
        bool seen[DEATHS], done;
        unsigned n, n_answers;
} Deaths;

static int on_message(sd_bus_message *m, void *userdata, sd_bus_error *unused) {
        _cleanup_free_ char *name = NULL;
        Deaths *deaths = userdata;
        int code, status;
        unsigned i;

        if (!sd_bus_message_is_signal(m, BERTH_INTERFACE_CONTAINER, "Exited"))
                return 0;
        assert_true(sd_bus_message_read(m, "ii", &code, &status) > 0);
        assert_int_equal(code, CLD_KILLED);
        assert_int_equal(status, SIGKILL);
        assert_true(sd_bus_path_decode(sd_bus_message_get_path(m), BERTH_CONTAINER_PREFIX, &name) > 0);
        assert_int_equal(sscanf(name, "death-%u", &i), 1);
        assert_true(i < DEATHS);
        assert_false(deaths->seen[i]);
        deaths->seen[i] = true;
        deaths->done = ++deaths->n == DEATHS;
        return 0;
}

static int on_killed(sd_bus_message *reply, void *userdata, sd_bus_error *unused) {
        Deaths *deaths = userdata;

        assert_null(sd_bus_message_get_error(reply));
        deaths->n_answers++;
        return 0;
}

static void test_case_42_two_hundred_deaths_in_one_tick(void **state) {
        const Call call = { .command = WORDS("sleep", "1000") };
        Answer *answers;
        Direct *d = *state;
        Deaths deaths = {};
        uint64_t begin;

        answers = calloc(DEATHS, sizeof(*answers));
        assert_non_null(answers);
        /* They are told of everything from here on, and never read a byte of it. */
        for (unsigned i = 0; i < 20; i++)
                (void) count_containers(direct_connect(d));
        for (unsigned i = 0; i < DEATHS; i++)
                send_run(d, d->bus, text("death-%u", i), &call, &answers[i]);
        for (unsigned i = 0; i < DEATHS; i++) {
                assert_true(bus_until(d->bus, &answers[i].done, MS));
                if (answers[i].failed)
                        fail_msg("%s: %s", answers[i].name, answers[i].message);
        }
        assert_true(sd_bus_add_filter(d->bus, NULL, on_message, &deaths) >= 0);
        begin = now_usec();
        for (unsigned i = 0; i < DEATHS; i++)
                assert_true(sd_bus_call_method_async(d->bus, NULL, BERTH_BUS_NAME,
                                                     path_of(text("death-%u", i)), BERTH_INTERFACE_CONTAINER,
                                                     "Signal", on_killed, &deaths, "i", SIGKILL) >= 0);
        assert_true(bus_until(d->bus, &deaths.done, MS));
        assert_true(now_usec() - begin < 5000000);
        assert_int_equal(deaths.n_answers, DEATHS);
        direct_expect_idle(d);
        for (unsigned i = 0; i < DEATHS; i++)
                must_remove(d->bus, answers[i].path);
        free(answers);
}

static void test_case_44_every_process_is_reaped(void **state) {
        static const char *const bind[] = { "bind", NULL };
        const CallMount no_source = { "/data", "bind", "/no/such/source", bind };
        const CallMount on_a_file = { "/etc/passwd/x", "tmpfs", "tmpfs", (const char *const[]) { NULL } };
        const struct {
                Call call;
                const char *error, *message;
        } failing[] = {
                { { .command = WORDS("true"), .working_directory = "/no/such/directory" },
                  BERTH_ERROR_LAUNCH_FAILED,
                  "working directory /no/such/directory: No such file" },
                { { .command = WORDS("true"), .user = "nosuchuser" },
                  BERTH_ERROR_LAUNCH_FAILED,
                  "nosuchuser" },
                { { .command = WORDS("true"), .groups = WORDS("nosuchgroup") },
                  BERTH_ERROR_LAUNCH_FAILED,
                  "nosuchgroup" },
                { { .command = WORDS("nosuchcmd") }, BERTH_ERROR_COMMAND_NOT_FOUND, "exec nosuchcmd" },
                { { .command = WORDS("/etc/passwd") },
                  BERTH_ERROR_COMMAND_NOT_EXECUTABLE,
                  "exec /etc/passwd" },
                { { .command = WORDS("true"), .mounts = &no_source, .n_mounts = 1 },
                  BERTH_ERROR_LAUNCH_FAILED,
                  "mount" },
                { { .command = WORDS("true"), .mounts = &on_a_file, .n_mounts = 1 },
                  BERTH_ERROR_LAUNCH_FAILED,
                  "mount" },
                { { .command = WORDS("true"),
                    .limit = "NOFILE",
                    .limit_soft = 1ULL << 40,
                    .limit_hard = 1ULL << 40 },
                  BERTH_ERROR_LAUNCH_FAILED,
                  "limits" },
                { { .command = WORDS("true"), .root = "/no/such/root" },
                  BERTH_ERROR_LAUNCH_FAILED,
                  "rootfs /no/such/root" },
        };
        const Call good = { .command = WORDS("true") };
        Direct *d = *state;
        size_t n_fds = 0;

        for (unsigned i = 0; i < 1000; i++) {
                const char *path;
                End end;

                if (i % 4 == 3) {
                        size_t k = i / 4 % ELEMENTSOF(failing);
                        const char *message;

                        message = must_fail(d, d->bus, "stage", &failing[k].call, failing[k].error);
                        if (!strstr(message, failing[k].message) || !strstr(message, "container stage: "))
                                fail_msg("%s, and not %s", message, failing[k].message);
                        continue;
                }
                path = must_run(d, d->bus, "good", &good, NULL);
                end = must_wait(d->bus, path);
                assert_int_equal(end.code, CLD_EXITED);
                assert_int_equal(end.status, 0);
                must_remove(d->bus, path);
                if (i == 4)
                        n_fds = direct_count_fds(d);
        }
        /* berth-launch; neither a running child nor a zombie. */
        assert_int_equal(direct_count_children(d), 1);
        direct_expect_fds(d, n_fds);
        assert_int_equal(direct_count_cgroups(d), 0);
}

static void race_for_a_name(Direct *d, const Call *call) {
        unsigned n_won = 0, n_lost = 0;
        Answer answers[50];
        size_t n_fds;

        n_fds = direct_count_fds(d);
        for (unsigned i = 0; i < ELEMENTSOF(answers); i++)
                send_run(d, d->bus, "x", call, &answers[i]);
        for (unsigned i = 0; i < ELEMENTSOF(answers); i++) {
                assert_true(bus_until(d->bus, &answers[i].done, MS));
                if (answers[i].failed) {
                        assert_string_equal(answers[i].name, BERTH_ERROR_NAME_IN_USE);
                        assert_string_equal(answers[i].message, "container x exists already");
                        n_lost++;
                } else
                        n_won++;
        }
        assert_int_equal(n_won, 1);
        assert_int_equal(n_lost, 49);
        assert_int_equal(count_containers(d->bus), 1);
        assert_int_equal(direct_count_children(d), 2);
        must_remove(d->bus, path_of("x"));
        direct_expect_idle(d);
        direct_expect_fds(d, n_fds);
}

static void test_case_45_the_same_name_twice_at_once(void **state) {
        const Call call = { .command = WORDS("sleep", "1000") };
        Direct *d = *state;

        must_remove(d->bus, must_run(d, d->bus, "first", &call, NULL));
        race_for_a_name(d, &call);
        race_for_a_name(d, &call);
        /* After Remove has been answered the name is free, and case counts. */
        for (unsigned i = 0; i < 20; i++) {
                const char *small, *big;

                small = must_run(d, d->bus, "name", &call, NULL);
                big = must_run(d, d->bus, "NAME", &call, NULL);
                must_remove(d->bus, small);
                must_remove(d->bus, big);
        }
}

/* A service that is killed can't remove its group; the next one does. */
static void test_the_group_of_a_killed_service_is_removed(void **state) {
        const char *command[] = { path_of_berthctl(), "--direct", "run", NULL, "--", "true", NULL };
        _cleanup_free_ char *output = NULL;
        Direct *d = *state;
        char stale[4200];

        if (!*d->cgroup)
                return;
        /* Numbers end before this one. */
        (void) snprintf(stale, sizeof(stale), "%.*s/berth-2147483647",
                        (int) (strrchr(d->cgroup, '/') - d->cgroup), d->cgroup);
        assert_int_equal(mkdir(stale, 0755), 0);
        assert_int_equal(mkdir(text("%s/inner", stale), 0755), 0);
        command[3] = d->root;
        assert_int_equal(run_command(command, &output), 0);
        assert_int_equal(access(stale, F_OK), -1);
        assert_int_equal(access(d->cgroup, F_OK), 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                direct_listen_test(test_case_39_cancel_at_every_point_of_start),
                direct_listen_test(test_a_client_killed_at_any_moment_of_start_leaves_nothing),
                direct_test(test_a_launch_over_its_time_ends_and_names_the_stage),
                direct_listen_test(test_case_42_two_hundred_deaths_in_one_tick),
                direct_test(test_case_44_every_process_is_reaped),
                direct_test(test_case_45_the_same_name_twice_at_once),
                direct_test(test_the_group_of_a_killed_service_is_removed),
        };

        return cmocka_run_group_tests(tests, direct_group_setup, NULL);
}
