/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The scope of a container: the program is executed in it and never before, and systemd hears no more than it must. */
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <setjmp.h>

#include <cmocka.h>

#include "interfaces/names.h"
#include "tests/bus/fixture.h"
#include "tests/system/launch-fixture.h"
#include "util/cleanup.h"

/* The launching process has done all that comes before the gate: its root is the container's, and it waits. */
static bool at_gate(Fixture *f, pid_t pid) {
        char state = 0, line[512] = "";
        FILE *file;

        if (access(text("/proc/%d/root/etc/secret", pid), F_OK) < 0 ||
            access(text("/proc/%d/root/tmp/berth-launch", pid), F_OK) == 0)
                return false;
        file = fopen(text("/proc/%d/stat", pid), "re");
        if (!file)
                return false;
        (void) fgets(line, sizeof(line), file);
        (void) fclose(file);
        (void) sscanf(strrchr(line, ')') ?: "", ") %c", &state);
        return state == 'S';
}

static void test_program_waits_for_its_scope(void **state) {
        _cleanup_fd_ int output = -EBADF, writer = -EBADF;
        Fixture *f = *state;
        char exe[64] = "", byte;
        FakeUnit *unit;
        Call *call;

        make_pipe(&output, &writer);
        f->systemd->hold_jobs = true;
        call = call_run(f, f->client,
                        &(TestSpec) { .name = "a", .script = "echo x; exit 7", .output = writer });
        writer = fd_close(writer);
        fixture_until(f, fake_systemd_unit(f->systemd, "berth-a.scope"));
        unit = fake_systemd_unit(f->systemd, "berth-a.scope");
        fixture_until(f, at_gate(f, unit->pid));

        assert_true(readlink(text("/proc/%d/exe", unit->pid), exe, sizeof(exe) - 1) > 0);
        assert_non_null(strstr(exe, "berth-launch"));
        assert_false(readable(output));
        assert_null(call->reply);
        assert_null(strstr(f->signals, "Started"));

        fake_systemd_release(f->systemd, "done");
        call_succeed(call);
        fixture_until(f, readable(output));
        assert_int_equal(read(output, &byte, 1), 1);
        container_wait(f, "a", CLD_EXITED, 7, "exit-code");
        call_succeed(call_begin(f, f->client, "a", "Remove", "b", 0));
}

static void run_true(Fixture *f, const char *name) {
        call_succeed(call_run(f, f->client, &(TestSpec) { .name = name, .script = "exit 0" }));
        container_wait(f, name, CLD_EXITED, 0, "success");
        call_succeed(call_begin(f, f->client, name, "Remove", "b", 0));
}

static void test_one_message_per_run(void **state) {
        Fixture *f = *state;

        assert_string_equal(f->systemd->log, "Get org.freedesktop.systemd1.Manager\n");
        run_true(f, "one");
        run_true(f, "two");
        /* The same name again, whose scope systemd has collected. */
        run_true(f, "one");
        assert_string_equal(f->systemd->log, "Get org.freedesktop.systemd1.Manager\n"
                                             "StartTransientUnit berth-one.scope\n"
                                             "StartTransientUnit berth-two.scope\n"
                                             "StartTransientUnit berth-one.scope\n");
        assert_string_equal(f->service.text ?: "", "");
}

static FakeUnit *run_asleep(Fixture *f) {
        FakeUnit *unit;

        call_succeed(call_run(f, f->client,
                              &(TestSpec) { .name = "a-b",
                                            .script = "sleep 1000",
                                            .stop_signal = SIGINT,
                                            .timeout_stop_usec = 7000000,
                                            .slice = "machine-x.slice" }));
        unit = fake_systemd_unit(f->systemd, "berth-a\\x2db.scope");
        assert_non_null(unit);
        return unit;
}

static void end_asleep(Fixture *f, const FakeUnit *unit) {
        _cleanup_free_ char *pid = container_property(f, "a-b", "PID"),
                            *name = container_property(f, "a-b", "Unit");

        assert_int_equal(strtol(pid, NULL, 10), unit->pid);
        assert_string_equal(name, "berth-a\\x2db.scope");
        call_succeed(call_begin(f, f->client, "a-b", "Remove", "b", 1));
}

static void test_properties_252(void **state) {
        Fixture *f = *state;
        FakeUnit *unit = run_asleep(f);

        assert_string_equal(unit->properties,
                            "Description=s Container a-b\n"
                            "Slice=s machine-x.slice\n"
                            "Delegate=b 1\n"
                            "CollectMode=s inactive-or-failed\n"
                            "Controller=s org.berth1\n"
                            "KillSignal=i 2\n"
                            "TimeoutStopUSec=t 12000000\n"
                            "After=as berthd.service\n"
                            "DevicePolicy=s closed\n"
                            "DeviceAllow=a(ss) /dev/tty rw,/dev/ptmx rw,char-pts rw,char-* m,"
                            "block-* m,\n"
                            "PIDs=au \n");
        end_asleep(f, unit);
}

static void test_properties_255(void **state) {
        Fixture *f = *state;
        FakeUnit *unit;

        f->systemd->version = 255;
        service_start(f, NULL);
        unit = run_asleep(f);
        assert_non_null(strstr(unit->properties, "\nOOMPolicy=s continue\n"));
        assert_non_null(strstr(unit->properties, "\nPIDFDs=ah \n"));
        assert_null(strstr(unit->properties, "\nPIDs="));
        end_asleep(f, unit);
}

static void test_default_slice_and_description(void **state) {
        Fixture *f = *state;
        FakeUnit *unit;

        call_succeed(call_run(f, f->client, &(TestSpec) { .name = "a", .script = "sleep 1000" }));
        unit = fake_systemd_unit(f->systemd, "berth-a.scope");
        assert_non_null(strstr(unit->properties, "Slice=s berth.slice\n"));
        assert_non_null(strstr(unit->properties, "KillSignal=i 15\n"));
        assert_non_null(strstr(unit->properties, "TimeoutStopUSec=t 15000000\n"));
        call_succeed(call_begin(f, f->client, "a", "Remove", "b", 1));
}

/* `systemctl stop` of the scope. */
static void test_request_stop(void **state) {
        Fixture *f = *state;

        call_succeed(call_run(f, f->client, &(TestSpec) { .name = "hears", .script = AT_TERM("exit 9") }));
        container_ready(f);
        call_succeed(call_run(
                f, f->client,
                &(TestSpec) { .name = "deaf", .script = "sleep 1000", .timeout_stop_usec = 100000 }));
        fake_systemd_request_stop(f->systemd, "berth-hears.scope");
        container_wait(f, "hears", CLD_EXITED, 9, "exit-code");
        fake_systemd_request_stop(f->systemd, "berth-deaf.scope");
        container_wait(f, "deaf", CLD_KILLED, SIGKILL, "timeout");
        call_succeed(call_begin(f, f->client, "hears", "Remove", "b", 0));
        call_succeed(call_begin(f, f->client, "deaf", "Remove", "b", 0));
}

static Call *update(Fixture *f, const char *container, uint64_t tasks, uint64_t weight) {
        return call_begin(f, f->client, container, "Update", "a{sv}", 2, "TasksMax", "t", tasks, "CPUWeight",
                          "t", weight);
}

static bool has_feature(Fixture *f, const char *feature) {
        sd_bus_message *m;
        const char *word;
        bool has = false;
        Call *call;

        assert_true(sd_bus_message_new_method_call(f->client, &m, BERTH_BUS_NAME, BERTH_PATH,
                                                   "org.freedesktop.DBus.Properties", "Get") >= 0);
        assert_true(sd_bus_message_append(m, "ss", BERTH_INTERFACE_MANAGER, "Features") >= 0);
        call = call_send(f, m);
        assert_null(call_wait(call));
        assert_true(sd_bus_message_enter_container(call->reply, 'v', "as") > 0);
        assert_true(sd_bus_message_enter_container(call->reply, 'a', "s") > 0);
        while (sd_bus_message_read(call->reply, "s", &word) > 0)
                has = has || strcmp(word, feature) == 0;
        (void) call_free(call);
        return has;
}

static void test_update_is_one_call(void **state) {
        const TestSpec spec = { .name = "a", .script = "sleep 1000" };
        Fixture *f = *state;
        FakeUnit *unit;
        Call *start;

        call_succeed(call_create(f, f->client, &spec));
        if (!has_feature(f, "tasks") || !has_feature(f, "cpu")) {
                call_fail(update(f, "a", 50, 200), BERTH_ERROR_NOT_SUPPORTED, "controller");
                return;
        }
        /* Before the run: kept for it. */
        call_succeed(update(f, "a", 50, UINT64_MAX));
        f->systemd->hold_jobs = true;
        start = call_start(f, f->client, &spec);
        fixture_until(f, fake_systemd_unit(f->systemd, "berth-a.scope"));
        unit = fake_systemd_unit(f->systemd, "berth-a.scope");
        assert_non_null(strstr(unit->properties, "\nTasksMax=t 50\n"));
        assert_null(strstr(unit->properties, "MemoryMax"));

        /* While it starts: right after. */
        call_succeed(update(f, "a", 60, 300));
        assert_int_equal(fake_systemd_count(f->systemd, "SetUnitProperties"), 0);
        f->systemd->hold_jobs = false;
        fake_systemd_release(f->systemd, "done");
        call_succeed(start);
        fixture_until(f, strstr(unit->properties, "\nTasksMax=t 60\nCPUWeight=t 300\n"));
        assert_int_equal(fake_systemd_count(f->systemd, "SetUnitProperties berth-a.scope"), 1);

        /* While it runs: before the reply, and what was not given is not sent. */
        call_succeed(call_begin(f, f->client, "a", "Update", "a{sv}", 1, "TasksMax", "t", UINT64_C(70)));
        assert_non_null(strstr(unit->properties, "\nTasksMax=t 70\n"));
        assert_int_equal(fake_systemd_count(f->systemd, "SetUnitProperties berth-a.scope"), 2);

        /* What systemd refuses holds for no later run. */
        f->systemd->set_error = "Not today.";
        call_fail(update(f, "a", 80, 400), BERTH_ERROR_NOT_SUPPORTED, "Not today.");
        call_fail(call_begin(f, f->client, "a", "Update", "a{sv}", 1, "Slice", "s", "x.slice"),
                  BERTH_ERROR_INVALID_SPEC, "Slice");
        assert_int_equal(fake_systemd_count(f->systemd, "SetUnitProperties berth-a.scope"), 3);
        call_succeed(call_begin(f, f->client, "a", "Stop", "t", UINT64_C(0)));
        call_succeed(call_start(f, f->client, &spec));
        unit = fake_systemd_unit(f->systemd, "berth-a.scope");
        assert_non_null(strstr(unit->properties, "\nTasksMax=t 70\nCPUWeight=t 300\n"));
        call_succeed(call_begin(f, f->client, "a", "Remove", "b", 1));
}

static int run(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_program_waits_for_its_scope, fixture_setup,
                                                fixture_teardown),
                cmocka_unit_test_setup_teardown(test_one_message_per_run, fixture_setup, fixture_teardown),
                cmocka_unit_test_setup_teardown(test_properties_252, fixture_setup, fixture_teardown),
                cmocka_unit_test_setup_teardown(test_properties_255, fixture_setup_bare, fixture_teardown),
                cmocka_unit_test_setup_teardown(test_default_slice_and_description, fixture_setup,
                                                fixture_teardown),
                cmocka_unit_test_setup_teardown(test_update_is_one_call, fixture_setup, fixture_teardown),
                cmocka_unit_test_setup_teardown(test_request_stop, fixture_setup, fixture_teardown),
        };

        return cmocka_run_group_tests_name("scope", tests, NULL, NULL);
}

int main(void) {
        return fixture_main(run);
}
