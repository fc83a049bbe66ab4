/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/bus/fake-systemd.h"

#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>

#include <setjmp.h>

#include <cmocka.h>

#include "util/cleanup.h"

#define NAME "org.freedesktop.systemd1"
#define PATH "/org/freedesktop/systemd1"
#define MANAGER "org.freedesktop.systemd1.Manager"

/* What 252 refuses. */
static const struct {
        const char *property;
        unsigned since;
} newer[] = {
        { "OOMPolicy", 253 },
        { "PIDFDs", 255 },
};

__attribute__((format(printf, 2, 3))) static void append(char **text, const char *format, ...) {
        char *added, *all;
        va_list ap;

        va_start(ap, format);
        assert_true(vasprintf(&added, format, ap) >= 0);
        va_end(ap);
        assert_true(asprintf(&all, "%s%s", *text ?: "", added) >= 0);
        free(added);
        free(*text);
        *text = all;
}

static FakeUnit *unit_free(FakeSystemd *fake, FakeUnit *unit) {
        TAILQ_REMOVE(&fake->units, unit, link);
        (void) fd_close(unit->pidfd);
        free(unit->name);
        free(unit->properties);
        free(unit->client);
        free(unit);
        return NULL;
}

FakeUnit *fake_systemd_unit(FakeSystemd *fake, const char *name) {
        FakeUnit *unit;

        TAILQ_FOREACH(unit, &fake->units, link)
        if (strcmp(unit->name, name) == 0)
                return unit;
        return NULL;
}

unsigned fake_systemd_count(const FakeSystemd *fake, const char *beginning) {
        size_t length = strlen(beginning);
        unsigned n = 0;

        for (const char *line = fake->log; line && *line; line = strchr(line, '\n') + 1)
                n += strncmp(line, beginning, length) == 0;
        return n;
}

/* systemd tells whoever queued the job, who needs no Subscribe for that. */
static void job_removed(FakeSystemd *fake, const char *client, const char *job, const char *unit,
                        const char *result) {
        _cleanup_bus_message_ sd_bus_message *m = NULL;

        assert_true(sd_bus_message_new_signal(fake->bus, &m, PATH, MANAGER, "JobRemoved") >= 0);
        assert_true(sd_bus_message_append(m, "uoss", fake->n_jobs, job, unit, result) >= 0);
        assert_true(sd_bus_message_set_destination(m, client) >= 0);
        assert_true(sd_bus_send(fake->bus, m, NULL) >= 0);
}

static void start_job_over(FakeSystemd *fake, FakeUnit *unit, const char *result) {
        job_removed(fake, unit->client, unit->job, unit->name, result);
        unit->job[0] = 0;
        /* A job that failed leaves no unit, CollectMode= sees to that. */
        if (strcmp(result, "done") != 0)
                (void) unit_free(fake, unit);
}

void fake_systemd_release(FakeSystemd *fake, const char *result) {
        FakeUnit *unit, *next;

        fake->hold_jobs = false;
        for (unit = TAILQ_FIRST(&fake->units); unit; unit = next) {
                next = TAILQ_NEXT(unit, link);
                if (unit->job[0])
                        start_job_over(fake, unit, result);
        }
}

void fake_systemd_request_stop(FakeSystemd *fake, const char *name) {
        FakeUnit *unit = fake_systemd_unit(fake, name);
        _cleanup_bus_message_ sd_bus_message *m = NULL;
        _cleanup_free_ char *path = NULL;

        assert_non_null(unit);
        assert_true(sd_bus_path_encode(PATH "/unit", name, &path) >= 0);
        assert_true(sd_bus_message_new_signal(fake->bus, &m, path, NAME ".Scope", "RequestStop") >= 0);
        assert_true(sd_bus_message_set_destination(m, unit->client) >= 0);
        assert_true(sd_bus_send(fake->bus, m, NULL) >= 0);
}

static pid_t pid_of_pidfd(int fd) {
        _cleanup_free_ char *path = NULL, *line = NULL;
        size_t size = 0;
        int pid = 0;
        FILE *file;

        assert_true(asprintf(&path, "/proc/self/fdinfo/%d", fd) > 0);
        file = fopen(path, "re");
        assert_non_null(file);
        while (getline(&line, &size, file) > 0)
                (void) sscanf(line, "Pid: %d", &pid);
        (void) fclose(file);
        assert_true(pid > 0);
        return pid;
}

/* One property's value into the unit's text. */
static void read_value(sd_bus_message *m, FakeUnit *unit, const char *name) {
        const char *contents, *text;
        uint64_t t;
        uint32_t u;
        int i;

        assert_true(sd_bus_message_peek_type(m, NULL, &contents) > 0);
        append(&unit->properties, "%s=%s ", name, contents);
        if (strcmp(contents, "s") == 0) {
                assert_true(sd_bus_message_read(m, "v", "s", &text) >= 0);
                append(&unit->properties, "%s", text);
        } else if (strcmp(contents, "t") == 0) {
                assert_true(sd_bus_message_read(m, "v", "t", &t) >= 0);
                append(&unit->properties, "%" PRIu64, t);
        } else if (strcmp(contents, "b") == 0 || strcmp(contents, "i") == 0) {
                assert_true(sd_bus_message_read(m, "v", contents, &i) >= 0);
                append(&unit->properties, "%d", i);
        } else if (strcmp(contents, "as") == 0) {
                assert_true(sd_bus_message_read(m, "v", "as", 1, &text) >= 0);
                append(&unit->properties, "%s", text);
        } else if (strcmp(contents, "a(ss)") == 0) {
                const char *access;

                assert_true(sd_bus_message_enter_container(m, 'v', contents) > 0);
                assert_true(sd_bus_message_enter_container(m, 'a', "(ss)") > 0);
                while (sd_bus_message_read(m, "(ss)", &text, &access) > 0)
                        append(&unit->properties, "%s %s,", text, access);
                assert_true(sd_bus_message_exit_container(m) >= 0);
                assert_true(sd_bus_message_exit_container(m) >= 0);
        } else if (strcmp(contents, "au") == 0) {
                assert_true(sd_bus_message_read(m, "v", "au", 1, &u) >= 0);
                unit->pid = (pid_t) u;
                unit->pidfd = pidfd_open(unit->pid, 0);
        } else if (strcmp(contents, "ah") == 0) {
                assert_true(sd_bus_message_read(m, "v", "ah", 1, &i) >= 0);
                unit->pidfd = fd_dup(i);
                unit->pid = pid_of_pidfd(i);
        } else
                fail_msg("property %s has the type %s", name, contents);
        append(&unit->properties, "\n");
}

static int read_properties(FakeSystemd *fake, sd_bus_message *m, FakeUnit *unit, sd_bus_error *error) {
        assert_true(sd_bus_message_enter_container(m, 'a', "(sv)") > 0);
        while (sd_bus_message_enter_container(m, 'r', "sv") > 0) {
                const char *name;

                assert_true(sd_bus_message_read(m, "s", &name) > 0);
                for (size_t i = 0; i < ELEMENTSOF(newer); i++)
                        if (strcmp(newer[i].property, name) == 0 && fake->version < newer[i].since)
                                return sd_bus_error_setf(error, SD_BUS_ERROR_PROPERTY_READ_ONLY,
                                                         "Cannot set property %s, or unknown property.",
                                                         name);
                read_value(m, unit, name);
                assert_true(sd_bus_message_exit_container(m) >= 0);
        }
        assert_true(sd_bus_message_exit_container(m) >= 0);
        return 0;
}

/* An empty scope is collected. */
static bool ended(const FakeUnit *unit) {
        struct pollfd p = { .fd = unit->pidfd, .events = POLLIN };

        return unit->pidfd < 0 || poll(&p, 1, 0) > 0;
}

static int method_start(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        FakeSystemd *fake = userdata;
        const char *name, *mode;
        FakeUnit *unit;
        int r;

        assert_true(sd_bus_message_read(m, "ss", &name, &mode) >= 0);
        assert_string_equal(mode, "fail");
        if (fake->mute)
                return 1;
        if (fake->start_error)
                return sd_bus_error_set(error, SD_BUS_ERROR_INVALID_ARGS, fake->start_error);
        unit = fake_systemd_unit(fake, name);
        if (unit && ended(unit))
                (void) unit_free(fake, unit);
        if (fake->exists > 0 || fake_systemd_unit(fake, name)) {
                fake->exists -= fake->exists > 0;
                return sd_bus_error_setf(error, NAME ".UnitExists", "Unit %s already exists.", name);
        }
        unit = calloc(1, sizeof(*unit));
        assert_non_null(unit);
        unit->pidfd = -EBADF;
        unit->name = strdup(name);
        unit->client = strdup(sd_bus_message_get_sender(m));
        TAILQ_INSERT_TAIL(&fake->units, unit, link);
        r = read_properties(fake, m, unit, error);
        if (r < 0) {
                (void) unit_free(fake, unit);
                return r;
        }
        (void) snprintf(unit->job, sizeof(unit->job), PATH "/job/%u", ++fake->n_jobs);
        assert_true(sd_bus_reply_method_return(m, "o", unit->job) >= 0);
        if (!fake->hold_jobs)
                start_job_over(fake, unit, fake->job_result);
        return 1;
}

static int method_set(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        FakeSystemd *fake = userdata;
        const char *name;
        FakeUnit *unit;
        int runtime, r;

        assert_true(sd_bus_message_read(m, "sb", &name, &runtime) >= 0);
        assert_true(runtime);
        unit = fake_systemd_unit(fake, name);
        if (!unit)
                return sd_bus_error_setf(error, NAME ".NoSuchUnit", "Unit %s not loaded.", name);
        if (fake->set_error)
                return sd_bus_error_set(error, SD_BUS_ERROR_INVALID_ARGS, fake->set_error);
        r = read_properties(fake, m, unit, error);
        return r < 0 ? r : sd_bus_reply_method_return(m, NULL);
}

static int method_stop(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        FakeSystemd *fake = userdata;
        const char *name, *mode;
        FakeUnit *unit;
        char job[64];

        assert_true(sd_bus_message_read(m, "ss", &name, &mode) >= 0);
        assert_string_equal(mode, "replace");
        if (fake->mute_stop)
                return 1;
        unit = fake_systemd_unit(fake, name);
        /* One that has a controller would ask it, and then wait for processes that are dead already. */
        assert_true(!unit || unit->job[0] || unit->abandoned);
        if (unit && unit->job[0])
                start_job_over(fake, unit, "canceled");
        else if (unit)
                (void) unit_free(fake, unit);
        (void) snprintf(job, sizeof(job), PATH "/job/%u", ++fake->n_jobs);
        assert_true(sd_bus_reply_method_return(m, "o", job) >= 0);
        job_removed(fake, sd_bus_message_get_sender(m), job, name, "done");
        return 1;
}

/* Whoever abandons a scope wants no answer. */
static int method_abandon(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        FakeSystemd *fake = userdata;
        const char *name;
        FakeUnit *unit;

        assert_true(sd_bus_message_read(m, "s", &name) >= 0);
        assert_false(sd_bus_message_get_expect_reply(m));
        unit = fake_systemd_unit(fake, name);
        if (unit && !unit->job[0])
                unit->abandoned = true;
        return 1;
}

static int method_kill(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        FakeSystemd *fake = userdata;
        const char *name, *whom;
        FakeUnit *unit;
        int signal;

        assert_true(sd_bus_message_read(m, "ssi", &name, &whom, &signal) >= 0);
        assert_string_equal(whom, "all");
        unit = fake_systemd_unit(fake, name);
        if (!unit)
                return sd_bus_error_setf(error, NAME ".NoSuchUnit", "Unit %s not loaded.", name);
        (void) pidfd_send_signal(unit->pidfd, signal, NULL, 0);
        return sd_bus_reply_method_return(m, NULL);
}

static int get_version(sd_bus *bus, const char *path, const char *interface, const char *property,
                       sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        FakeSystemd *fake = userdata;
        char version[32];

        (void) snprintf(version, sizeof(version), "%u.39-1~deb12u1", fake->version);
        return sd_bus_message_append(reply, "s", version);
}

/* clang-format off */
static const sd_bus_vtable vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_METHOD("StartTransientUnit", "ssa(sv)a(sa(sv))", "o", method_start, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("SetUnitProperties", "sba(sv)", NULL, method_set, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("StopUnit", "ss", "o", method_stop, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("AbandonScope", "s", NULL, method_abandon, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("KillUnit", "ssi", NULL, method_kill, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_PROPERTY("Version", "s", get_version, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_VTABLE_END,
};
/* clang-format on */

static int on_message(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        const char *sender = sd_bus_message_get_sender(m), *argument = NULL;
        FakeSystemd *fake = userdata;
        uint8_t type;

        if (sd_bus_message_get_type(m, &type) < 0 || type != SD_BUS_MESSAGE_METHOD_CALL)
                return 0;
        if (sd_bus_message_is_method_call(m, "org.freedesktop.DBus.Properties", "Get")) {
                free(fake->service);
                fake->service = strdup(sender);
        }
        if (fake->service && strcmp(fake->service, sender) == 0) {
                (void) sd_bus_message_read(m, "s", &argument);
                append(&fake->log, "%s %s\n", sd_bus_message_get_member(m), argument ?: "");
                assert_true(sd_bus_message_rewind(m, 1) >= 0);
        }
        return 0;
}

FakeSystemd *fake_systemd_new(sd_event *event, const char *address, unsigned version) {
        FakeSystemd *fake;

        fake = calloc(1, sizeof(*fake));
        assert_non_null(fake);
        TAILQ_INIT(&fake->units);
        fake->version = version;
        fake->job_result = "done";
        assert_true(sd_bus_new(&fake->bus) >= 0);
        assert_true(sd_bus_set_address(fake->bus, address) >= 0);
        assert_true(sd_bus_set_bus_client(fake->bus, 1) >= 0);
        assert_true(sd_bus_negotiate_fds(fake->bus, 1) >= 0);
        assert_true(sd_bus_start(fake->bus) >= 0);
        assert_true(sd_bus_add_filter(fake->bus, NULL, on_message, fake) >= 0);
        assert_true(sd_bus_add_object_vtable(fake->bus, NULL, PATH, MANAGER, vtable, fake) >= 0);
        assert_return_code(sd_bus_request_name(fake->bus, NAME, 0), 0);
        assert_true(sd_bus_attach_event(fake->bus, event, SD_EVENT_PRIORITY_NORMAL) >= 0);
        return fake;
}

FakeSystemd *fake_systemd_free(FakeSystemd *fake) {
        if (!fake)
                return NULL;
        while (!TAILQ_EMPTY(&fake->units))
                (void) unit_free(fake, TAILQ_FIRST(&fake->units));
        (void) sd_bus_flush_close_unref(fake->bus);
        free(fake->service);
        free(fake->log);
        free(fake);
        return NULL;
}
