/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A service that was killed leaves containers and records: the next one ends the former by the latter, and by nothing
 * else. */
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>

#include <setjmp.h>

#include <cmocka.h>

#include "interfaces/names.h"
#include "tests/bus/fixture.h"
#include "tests/system/launch-fixture.h"
#include "util/cleanup.h"

#define RECORD(unit) "berth-container 1\nunit=" unit "\nend\n"

/* Into systemd's book, so that the order can be seen. */
static int on_owner_changed(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        const char *name, *before, *after;
        Fixture *f = userdata;

        if (sd_bus_message_read(m, "sss", &name, &before, &after) > 0 && *after)
                text_append(&f->systemd->log, "NAMED\n");
        return 0;
}

static void note_name(Fixture *f) {
        assert_true(sd_bus_add_match(f->systemd->bus, NULL,
                                     "type='signal',sender='org.freedesktop.DBus',member='NameOwnerChanged',"
                                     "arg0='" BERTH_BUS_NAME "'",
                                     on_owner_changed, f) >= 0);
}

static void crash(Fixture *f) {
        assert_int_equal(kill(f->service.pid, SIGKILL), 0);
        fixture_until(f, f->service.ended);
        free(f->systemd->log);
        f->systemd->log = NULL;
}

static void test_left_overs_are_ended(void **state) {
        static const char *const names[] = { "a", "b-c", "d.e" }, *const units[] = { "a", "b\\x2dc", "d.e" };
        Fixture *f = *state;
        _cleanup_free_ char *before = NULL, *after = NULL;
        int pidfds[3];

        for (size_t i = 0; i < ELEMENTSOF(names); i++) {
                call_succeed(
                        call_run(f, f->client, &(TestSpec) { .name = names[i], .script = "sleep 1000" }));
                pidfds[i] = fd_dup(fake_systemd_unit(f->systemd, text("berth-%s.scope", units[i]))->pidfd);
        }
        before = records();
        assert_int_equal(strlen(before), strlen("a b-c d.e"));
        note_name(f);
        crash(f);

        service_start(f, NULL);
        fixture_until(f, fake_systemd_count(f->systemd, "NAMED") == 1);
        assert_string_equal(strstr(f->systemd->log, "NAMED"), "NAMED\n");
        for (size_t i = 0; i < ELEMENTSOF(names); i++) {
                const char *kill_line = text("KillUnit berth-%s.scope\n", units[i]),
                           *stop_line = text("StopUnit berth-%s.scope\n", units[i]);

                fixture_until(f, readable(pidfds[i]));
                (void) close(pidfds[i]);
                assert_int_equal(fake_systemd_count(f->systemd, kill_line), 1);
                assert_int_equal(fake_systemd_count(f->systemd, stop_line), 1);
                assert_true(strstr(f->systemd->log, kill_line) < strstr(f->systemd->log, stop_line));
                fixture_until(f, service_said(f, text("Container %s was left by a service", names[i])));
                assert_false(container_exists(f, names[i]));
        }
        after = records();
        assert_string_equal(after, "");
        /* The names can be used again. */
        call_succeed(call_run(f, f->client, &(TestSpec) { .name = "a", .script = "exit 0" }));
        container_wait(f, "a", CLD_EXITED, 0, "success");
        call_succeed(call_begin(f, f->client, "a", "Remove", "b", 0));
}

/* A launch that was in course. */
static void test_killed_during_a_start(void **state) {
        Fixture *f = *state;
        Call *call;
        int pidfd;

        f->systemd->hold_jobs = true;
        call = call_run(f, f->client, &(TestSpec) { .name = "a", .script = "sleep 1000" });
        fixture_until(f, fake_systemd_unit(f->systemd, "berth-a.scope"));
        pidfd = fd_dup(fake_systemd_unit(f->systemd, "berth-a.scope")->pidfd);
        crash(f);
        call_fail(call, SD_BUS_ERROR_NO_REPLY, "");
        /* It never becomes the program: nobody is there who could let it. */
        fixture_until(f, readable(pidfd));
        (void) close(pidfd);
        service_start(f, NULL);
        assert_int_equal(fake_systemd_count(f->systemd, "StopUnit berth-a.scope"), 1);
        assert_null(fake_systemd_unit(f->systemd, "berth-a.scope"));
}

static void write_record(const char *name, const char *data) {
        _cleanup_fd_ int fd = -EBADF;

        (void) mkdir("/run/berth", 0755);
        (void) mkdir(RECORDS, 0700);
        fd = open(text(RECORDS "/%s", name), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        assert_true(fd >= 0);
        assert_int_equal(fd_write_all(fd, data, strlen(data)), 0);
}

/* systemd has collected the scope, or never heard of it. */
static void test_unit_is_unknown(void **state) {
        Fixture *f = *state;
        char *left;

        write_record("gone", RECORD("berth-gone.scope"));
        service_start(f, NULL);
        fixture_until(f, service_said(f, "Container gone was left"));
        assert_int_equal(fake_systemd_count(f->systemd, "KillUnit berth-gone.scope"), 1);
        left = records();
        assert_string_equal(left, "");
        free(left);
}

static void test_foreign_records_are_removed(void **state) {
        static const struct {
                const char *name, *data;
        } foreign[] = {
                { "torn", "berth-container 1\nunit=berth-torn.sc" },
                { "cut", "berth-container 1\nunit=berth-cut.scope\n" },
                { "empty", "" },
                { "ssh", RECORD("ssh.service") },
                { "other", RECORD("berth-another.scope") },
                { "future", "berth-container 2\nunit=berth-future.scope\nend\n" },
                { "more", RECORD("berth-more.scope") "more\n" },
                { "twice", RECORD("berth-twice.scope") RECORD("berth-twice.scope") },
                { ".half.tmp", RECORD("berth-half.scope") },
                { "bad name", RECORD("berth-bad\\x20name.scope") },
                { "nobodys", RECORD("berth-nobodys.scope") },
        };
        static const char *const others[] = { "big", "fifo", "directory", "link" };
        Fixture *f = *state;
        char *left, big[8192];

        for (size_t i = 0; i < ELEMENTSOF(foreign); i++)
                write_record(foreign[i].name, foreign[i].data);
        assert_int_equal(chown(RECORDS "/nobodys", 65534, 65534), 0);
        memset(big, '\n', sizeof(big) - 1);
        big[sizeof(big) - 1] = 0;
        write_record("big", big);
        assert_int_equal(mkfifo(RECORDS "/fifo", 0600), 0);
        assert_int_equal(mkdir(RECORDS "/directory", 0700), 0);
        assert_int_equal(symlink("/run/elsewhere", RECORDS "/link"), 0);
        {
                _cleanup_fd_ int fd = open("/run/elsewhere", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

                assert_int_equal(
                        fd_write_all(fd, RECORD("berth-link.scope"), strlen(RECORD("berth-link.scope"))), 0);
        }

        service_start(f, NULL);
        assert_string_equal(f->systemd->log, "Get org.freedesktop.systemd1.Manager\n");
        for (size_t i = 0; i < ELEMENTSOF(foreign); i++)
                fixture_until(f, service_said(f, text("Record %s is not one of berth's, removed\n",
                                                      foreign[i].name)));
        for (size_t i = 0; i < ELEMENTSOF(others); i++)
                fixture_until(
                        f, service_said(f, text("Record %s is not one of berth's, removed\n", others[i])));
        left = records();
        assert_string_equal(left, "");
        free(left);
        assert_int_equal(unlink("/run/elsewhere"), 0);
}

/* systemd does not end them in time: that is said, and others are served meanwhile. */
static void test_systemd_does_not_stop_them(void **state) {
        Fixture *f = *state;

        write_record("slow", RECORD("berth-slow.scope"));
        f->systemd->mute_stop = true;
        service_launch(f, NULL);
        fixture_until(f, fake_systemd_count(f->systemd, "StopUnit berth-slow.scope") == 1);
        assert_false(service_is_named(f));
        fixture_until(f, service_is_named(f));
        fixture_until(f, service_said(f, "systemd has not stopped berth-slow.scope yet"));
        assert_false(container_exists(f, "slow"));
}

/* Told to end while it still ends what was left. */
static void test_sigterm_meanwhile(void **state) {
        Fixture *f = *state;

        write_record("slow", RECORD("berth-slow.scope"));
        f->systemd->mute_stop = true;
        service_launch(f, NULL);
        fixture_until(f, fake_systemd_count(f->systemd, "StopUnit berth-slow.scope") == 1);
        service_stop(f);
        assert_false(service_is_named(f));
}

static int run(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
#define BARE(name) cmocka_unit_test_setup_teardown(name, fixture_setup_bare, fixture_teardown)
        const struct CMUnitTest tests[] = {
                TEST(test_left_overs_are_ended),
                TEST(test_killed_during_a_start),
                BARE(test_unit_is_unknown),
                BARE(test_foreign_records_are_removed),
                BARE(test_systemd_does_not_stop_them),
                BARE(test_sigterm_meanwhile),
        };

        return cmocka_run_group_tests_name("recovery", tests, NULL, NULL);
}

int main(void) {
        return fixture_main(run);
}
