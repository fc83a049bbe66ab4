/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/system/direct-call.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "interfaces/names.h"

#define PATHS_KEPT 64

#define append(...) assert_true(sd_bus_message_append(__VA_ARGS__) >= 0)

/* ---- building ------------------------------------------------------------------------------------------------- */

static void append_words(sd_bus_message *m, const char *key, const char *const *words) {
        if (!words)
                return;
        assert_true(sd_bus_message_open_container(m, 'e', "sv") >= 0);
        append(m, "s", key);
        assert_true(sd_bus_message_open_container(m, 'v', "as") >= 0);
        assert_true(sd_bus_message_append_strv(m, (char **) words) >= 0);
        assert_true(sd_bus_message_close_container(m) >= 0);
        assert_true(sd_bus_message_close_container(m) >= 0);
}

static void append_text(sd_bus_message *m, const char *key, const char *value) {
        if (value)
                append(m, "{sv}", key, "s", value);
}

static void append_flag(sd_bus_message *m, const char *key, bool value) {
        if (value)
                append(m, "{sv}", key, "b", 1);
}

static void append_number(sd_bus_message *m, const char *key, uint64_t value) {
        if (value)
                append(m, "{sv}", key, "t", value);
}

static void append_mounts(sd_bus_message *m, const Call *call) {
        if (call->n_mounts == 0)
                return;
        assert_true(sd_bus_message_open_container(m, 'e', "sv") >= 0);
        append(m, "s", "Mounts");
        assert_true(sd_bus_message_open_container(m, 'v', "a(sssas)") >= 0);
        assert_true(sd_bus_message_open_container(m, 'a', "(sssas)") >= 0);
        for (size_t i = 0; i < call->n_mounts; i++) {
                const CallMount *mount = &call->mounts[i];

                assert_true(sd_bus_message_open_container(m, 'r', "sssas") >= 0);
                append(m, "sss", mount->destination, mount->type ?: "", mount->source ?: "");
                assert_true(sd_bus_message_append_strv(m, (char **) mount->options) >= 0);
                assert_true(sd_bus_message_close_container(m) >= 0);
        }
        assert_true(sd_bus_message_close_container(m) >= 0);
        assert_true(sd_bus_message_close_container(m) >= 0);
        assert_true(sd_bus_message_close_container(m) >= 0);
}

static void append_annotations(sd_bus_message *m, const Call *call) {
        if (!call->annotations)
                return;
        assert_true(sd_bus_message_open_container(m, 'e', "sv") >= 0);
        append(m, "s", "Annotations");
        assert_true(sd_bus_message_open_container(m, 'v', "a{ss}") >= 0);
        assert_true(sd_bus_message_open_container(m, 'a', "{ss}") >= 0);
        for (const char *const *p = call->annotations; *p; p += 2)
                append(m, "{ss}", p[0], p[1]);
        assert_true(sd_bus_message_close_container(m) >= 0);
        assert_true(sd_bus_message_close_container(m) >= 0);
        assert_true(sd_bus_message_close_container(m) >= 0);
}

/* What is a process', of init as of Exec's. */
static void append_process(sd_bus_message *m, const Call *call) {
        append_words(m, "Command", call->command);
        append_words(m, "Environment", call->environment);
        append_words(m, "SupplementaryGroups", call->groups);
        append_words(m, "Capabilities", call->capabilities);
        append_words(m, "AddCapabilities", call->add_capabilities);
        append_words(m, "DropCapabilities", call->drop_capabilities);
        append_text(m, "User", call->user);
        append_text(m, "WorkingDirectory", call->working_directory);
        append_text(m, "SeccompProfile", call->seccomp);
        append_flag(m, "Terminal", call->terminal);
        append_flag(m, "NoNewPrivileges", call->no_new_privileges);
        if (call->limit)
                append(m, "{sv}", "ResourceLimits", "a{s(tt)}", 1, call->limit, call->limit_soft,
                       call->limit_hard);
        if (call->oom_score_adjust)
                append(m, "{sv}", "OOMScoreAdjust", "i", *call->oom_score_adjust);
        if (call->stop_signal)
                append(m, "{sv}", "StopSignal", "i", call->stop_signal);
        append_number(m, "TimeoutStartUSec", call->timeout_start_usec);
        append_number(m, "TimeoutStopUSec", call->timeout_stop_usec);
}

static void append_spec(sd_bus_message *m, const Direct *d, const Call *call) {
        assert_true(sd_bus_message_open_container(m, 'a', "{sv}") >= 0);
        append_text(m, "RootDirectory", call->root ?: d->root);
        append_process(m, call);
        append_text(m, "Hostname", call->hostname);
        append_text(m, "Network", call->network);
        append_text(m, "Slice", call->slice);
        append_flag(m, "ReadOnly", call->read_only);
        append_flag(m, "Ephemeral", call->ephemeral);
        append_flag(m, "AutoRemove", call->auto_remove);
        append_mounts(m, call);
        append_number(m, "RuntimeMaxUSec", call->runtime_max_usec);
        append_number(m, "MemoryMax", call->memory_max);
        append_number(m, "TasksMax", call->tasks_max);
        append_annotations(m, call);
        assert_true(sd_bus_message_close_container(m) >= 0);
}

static void append_option_entries(sd_bus_message *m, const Call *call) {
        static const char *const streams[] = { "StandardInput", "StandardOutput", "StandardError" };

        if (call->rows || call->columns || call->sized)
                append(m, "{sv}{sv}", "Rows", "q", call->rows, "Columns", "q", call->columns);
        append_text(m, "OnDisconnect", call->on_disconnect);
        for (size_t i = 0; call->stdio && i < 3; i++)
                if (call->stdio[i] >= 0)
                        append(m, "{sv}", streams[i], "h", call->stdio[i]);
        for (size_t i = 0; call->streams && i < 3; i++)
                append_text(m, streams[i], call->streams[i]);
        if (call->numbered) {
                assert_true(sd_bus_message_open_container(m, 'e', "sv") >= 0);
                append(m, "s", "FileDescriptors");
                assert_true(sd_bus_message_open_container(m, 'v', "a(uh)") >= 0);
                assert_true(sd_bus_message_open_container(m, 'a', "(uh)") >= 0);
                for (const int *n = call->numbered; *n >= 0; n += 2)
                        append(m, "(uh)", (uint32_t) n[0], n[1]);
                for (size_t i = 0; i < 3; i++)
                        assert_true(sd_bus_message_close_container(m) >= 0);
        }
}

static void append_options(sd_bus_message *m, const Call *call) {
        assert_true(sd_bus_message_open_container(m, 'a', "{sv}") >= 0);
        append_option_entries(m, call);
        assert_true(sd_bus_message_close_container(m) >= 0);
}

sd_bus_message *call_new(const Direct *d, sd_bus *bus, const char *member, const char *name,
                         const Call *call) {
        sd_bus_message *m;

        assert_true(sd_bus_message_new_method_call(bus, &m, BERTH_BUS_NAME, BERTH_PATH,
                                                   BERTH_INTERFACE_MANAGER, member) >= 0);
        append(m, "s", name);
        append_spec(m, d, call);
        if (strcmp(member, "RunContainer") == 0)
                append_options(m, call);
        return m;
}

sd_bus_message *exec_new(sd_bus *bus, const char *path, const Call *call) {
        sd_bus_message *m;

        assert_true(sd_bus_message_new_method_call(bus, &m, BERTH_BUS_NAME, path, BERTH_INTERFACE_CONTAINER,
                                                   "Exec") >= 0);
        assert_true(sd_bus_message_open_container(m, 'a', "{sv}") >= 0);
        append_process(m, call);
        append_option_entries(m, call);
        assert_true(sd_bus_message_close_container(m) >= 0);
        return m;
}

/* ---- calling -------------------------------------------------------------------------------------------------- */

/* The terminal of an a{sh}, -EBADF when it is empty. */
static int read_master(sd_bus_message *reply) {
        int master = -EBADF, fd;
        const char *key;

        assert_true(sd_bus_message_enter_container(reply, 'a', "{sh}") > 0);
        while (sd_bus_message_enter_container(reply, 'e', "sh") > 0) {
                assert_true(sd_bus_message_read(reply, "sh", &key, &fd) > 0);
                assert_string_equal(key, "terminal");
                assert_int_equal(master, -EBADF);
                master = fd_dup(fd);
                assert_true(master >= 0);
                assert_true(sd_bus_message_exit_container(reply) >= 0);
        }
        assert_true(sd_bus_message_exit_container(reply) >= 0);
        return master;
}

int call_run(const Direct *d, sd_bus *bus, const char *name, const Call *call, int *ret_master,
             char **ret_path, sd_bus_error *error) {
        _cleanup_bus_message_ sd_bus_message *m = NULL, *reply = NULL;
        const char *path;
        int r;

        m = call_new(d, bus, "RunContainer", name, call);
        r = sd_bus_call(bus, m, 0, error, &reply);
        if (r < 0)
                return r;
        assert_true(sd_bus_message_read(reply, "o", &path) > 0);
        if (ret_path) {
                *ret_path = strdup(path);
                assert_non_null(*ret_path);
        }
        if (ret_master)
                *ret_master = read_master(reply);
        return 0;
}

static const char *keep_path(const char *path) {
        static char paths[PATHS_KEPT][256];
        static unsigned next;
        char *kept = paths[next++ % PATHS_KEPT];

        (void) snprintf(kept, sizeof(paths[0]), "%s", path);
        return kept;
}

const char *must_run(const Direct *d, sd_bus *bus, const char *name, const Call *call, int *ret_master) {
        _cleanup_bus_error_ sd_bus_error error = SD_BUS_ERROR_NULL;
        _cleanup_free_ char *path = NULL;
        int r;

        r = call_run(d, bus, name, call, ret_master, &path, &error);
        if (r < 0)
                fail_msg("cannot run: %s: %s", error.name, error.message);
        if (ret_master)
                assert_int_equal(*ret_master >= 0, call->terminal);
        return keep_path(path);
}

/* Sends a call whose reply is `oa{sh}`, keeps the path and duplicates of the descriptors. */
static const char *call_piped(sd_bus *bus, sd_bus_message *m, int ret_ends[3]) {
        static const char *const names[] = { "stdin", "stdout", "stderr" };
        _cleanup_bus_message_ sd_bus_message *reply = NULL;
        _cleanup_bus_error_ sd_bus_error error = SD_BUS_ERROR_NULL;
        const char *path, *key;
        int fd;

        if (sd_bus_call(bus, m, 0, &error, &reply) < 0)
                fail_msg("%s: %s", error.name, error.message);
        ret_ends[0] = ret_ends[1] = ret_ends[2] = -EBADF;
        assert_true(sd_bus_message_read(reply, "o", &path) >= 0);
        assert_true(sd_bus_message_enter_container(reply, 'a', "{sh}") >= 0);
        while (sd_bus_message_read(reply, "{sh}", &key, &fd) > 0) {
                size_t i = 0;

                while (i < 3 && strcmp(names[i], key) != 0)
                        i++;
                assert_true(i < 3);
                ret_ends[i] = fd_dup(fd);
                assert_true(ret_ends[i] >= 0);
        }
        return keep_path(path);
}

const char *must_run_piped(const Direct *d, sd_bus *bus, const char *name, const Call *call,
                           int ret_ends[3]) {
        _cleanup_bus_message_ sd_bus_message *m = call_new(d, bus, "RunContainer", name, call);

        return call_piped(bus, m, ret_ends);
}

const char *must_exec_piped(sd_bus *bus, const char *container, const Call *call, int ret_ends[3]) {
        _cleanup_bus_message_ sd_bus_message *m = exec_new(bus, container, call);

        return call_piped(bus, m, ret_ends);
}

const char *must_fail(const Direct *d, sd_bus *bus, const char *name, const Call *call,
                      const char *error_name) {
        _cleanup_bus_error_ sd_bus_error error = SD_BUS_ERROR_NULL;
        static char message[4096];
        int r;

        r = call_run(d, bus, name, call, NULL, NULL, &error);
        if (r >= 0)
                fail_msg("%s was to fail with %s", name, error_name);
        assert_non_null(error.name);
        if (strcmp(error.name, error_name) != 0)
                fail_msg("%s: %s, and not %s", error.name, error.message, error_name);
        (void) snprintf(message, sizeof(message), "%s", error.message);
        return message;
}

const char *must_exec(sd_bus *bus, const char *path, const Call *call, int *ret_master) {
        _cleanup_bus_message_ sd_bus_message *m = NULL, *reply = NULL;
        _cleanup_bus_error_ sd_bus_error error = SD_BUS_ERROR_NULL;
        const char *process;

        m = exec_new(bus, path, call);
        if (sd_bus_call(bus, m, 0, &error, &reply) < 0)
                fail_msg("cannot exec: %s: %s", error.name, error.message);
        assert_true(sd_bus_message_read(reply, "o", &process) > 0);
        if (ret_master)
                *ret_master = read_master(reply);
        return keep_path(process);
}

const char *exec_must_fail(sd_bus *bus, const char *path, const Call *call, const char *error_name) {
        _cleanup_bus_message_ sd_bus_message *m = NULL;
        _cleanup_bus_error_ sd_bus_error error = SD_BUS_ERROR_NULL;
        static char message[4096];

        m = exec_new(bus, path, call);
        if (sd_bus_call(bus, m, 0, &error, NULL) >= 0)
                fail_msg("Exec was to fail with %s", error_name);
        if (!sd_bus_error_has_name(&error, error_name))
                fail_msg("%s: %s, and not %s", error.name, error.message, error_name);
        (void) snprintf(message, sizeof(message), "%s", error.message);
        return message;
}

static End wait_for(sd_bus *bus, const char *path, const char *interface) {
        _cleanup_bus_message_ sd_bus_message *reply = NULL;
        _cleanup_bus_error_ sd_bus_error error = SD_BUS_ERROR_NULL;
        const char *result;
        End end;

        if (sd_bus_call_method(bus, BERTH_BUS_NAME, path, interface, "Wait", &error, &reply, "") < 0)
                fail_msg("Wait of %s: %s: %s", path, error.name, error.message);
        assert_true(sd_bus_message_read(reply, "iis", &end.code, &end.status, &result) > 0);
        (void) snprintf(end.result, sizeof(end.result), "%s", result);
        return end;
}

End process_must_wait(sd_bus *bus, const char *path) {
        return wait_for(bus, path, BERTH_INTERFACE_PROCESS);
}

const char *must_create(const Direct *d, sd_bus *bus, const char *name, const Call *call) {
        _cleanup_bus_message_ sd_bus_message *m = NULL, *reply = NULL;
        _cleanup_bus_error_ sd_bus_error error = SD_BUS_ERROR_NULL;
        const char *path;

        m = call_new(d, bus, "CreateContainer", name, call);
        if (sd_bus_call(bus, m, 0, &error, &reply) < 0)
                fail_msg("cannot create: %s: %s", error.name, error.message);
        assert_true(sd_bus_message_read(reply, "o", &path) > 0);
        return keep_path(path);
}

const char *path_of(const char *name) {
        _cleanup_free_ char *path = NULL;

        assert_true(sd_bus_path_encode(BERTH_CONTAINER_PREFIX, name, &path) >= 0);
        return keep_path(path);
}

static int call_va(sd_bus *bus, const char *path, const char *member, sd_bus_error *error,
                   sd_bus_message **ret, const char *types, va_list arguments) {
        _cleanup_bus_message_ sd_bus_message *m = NULL;

        assert_true(sd_bus_message_new_method_call(bus, &m, BERTH_BUS_NAME, path, BERTH_INTERFACE_CONTAINER,
                                                   member) >= 0);
        assert_true(sd_bus_message_appendv(m, types, arguments) >= 0);
        return sd_bus_call(bus, m, 0, error, ret);
}

int call_container(sd_bus *bus, const char *path, const char *member, sd_bus_error *error, const char *types,
                   ...) {
        va_list arguments;
        int r;

        va_start(arguments, types);
        r = call_va(bus, path, member, error, NULL, types, arguments);
        va_end(arguments);
        return r;
}

void must_call(sd_bus *bus, const char *path, const char *member, const char *types, ...) {
        _cleanup_bus_error_ sd_bus_error error = SD_BUS_ERROR_NULL;
        va_list arguments;
        int r;

        va_start(arguments, types);
        r = call_va(bus, path, member, &error, NULL, types, arguments);
        va_end(arguments);
        if (r < 0)
                fail_msg("%s of %s: %s: %s", member, path, error.name, error.message);
}

int must_start(sd_bus *bus, const char *path) {
        return must_start_sized(bus, path, 0, 0);
}

int must_start_sized(sd_bus *bus, const char *path, unsigned rows, unsigned columns) {
        _cleanup_bus_message_ sd_bus_message *reply = NULL;
        _cleanup_bus_error_ sd_bus_error error = SD_BUS_ERROR_NULL;

        if (sd_bus_call_method(bus, BERTH_BUS_NAME, path, BERTH_INTERFACE_CONTAINER, "Start", &error, &reply,
                               "a{sv}", 2, "Rows", "q", rows, "Columns", "q", columns) < 0)
                fail_msg("Start of %s: %s: %s", path, error.name, error.message);
        return read_master(reply);
}

End must_wait(sd_bus *bus, const char *path) {
        return wait_for(bus, path, BERTH_INTERFACE_CONTAINER);
}

void must_remove(sd_bus *bus, const char *path) {
        must_call(bus, path, "Remove", "b", 1);
}

/* ---- properties ----------------------------------------------------------------------------------------------- */

static void get(sd_bus *bus, const char *path, const char *property, char type, void *ret) {
        _cleanup_bus_error_ sd_bus_error error = SD_BUS_ERROR_NULL;

        if (sd_bus_get_property_trivial(bus, BERTH_BUS_NAME, path, BERTH_INTERFACE_CONTAINER, property,
                                        &error, type, ret) < 0)
                fail_msg("%s of %s: %s: %s", property, path, error.name, error.message);
}

int get_i(sd_bus *bus, const char *path, const char *property) {
        int32_t value;

        get(bus, path, property, 'i', &value);
        return value;
}

uint32_t get_u(sd_bus *bus, const char *path, const char *property) {
        uint32_t value;

        get(bus, path, property, 'u', &value);
        return value;
}

uint16_t get_q(sd_bus *bus, const char *path, const char *property) {
        uint16_t value;

        get(bus, path, property, 'q', &value);
        return value;
}

const char *get_s(sd_bus *bus, const char *path, const char *property) {
        _cleanup_bus_error_ sd_bus_error error = SD_BUS_ERROR_NULL;
        _cleanup_free_ char *value = NULL;
        static char kept[4096];

        if (sd_bus_get_property_string(bus, BERTH_BUS_NAME, path, BERTH_INTERFACE_CONTAINER, property,
                                       &error, &value) < 0)
                fail_msg("%s of %s: %s: %s", property, path, error.name, error.message);
        (void) snprintf(kept, sizeof(kept), "%s", value);
        return kept;
}

size_t count_containers(sd_bus *bus) {
        _cleanup_bus_message_ sd_bus_message *reply = NULL;
        size_t n = 0;

        assert_true(sd_bus_call_method(bus, BERTH_BUS_NAME, BERTH_PATH, BERTH_INTERFACE_MANAGER,
                                       "ListContainers", NULL, &reply, "") >= 0);
        assert_true(sd_bus_message_enter_container(reply, 'a', "(sssuo)") >= 0);
        while (sd_bus_message_skip(reply, "(sssuo)") > 0)
                n++;
        return n;
}

/* ---- whole runs ----------------------------------------------------------------------------------------------- */

char *capture(const Direct *d, sd_bus *bus, const Call *call, End *ret_end) {
        Call with = *call;
        const char *path;
        char *output;
        int pair[2];

        assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
        with.stdio = (const int[]) { -1, pair[1], pair[1] };
        with.auto_remove = true;
        path = must_run(d, bus, "", &with, NULL);
        (void) close(pair[1]);
        output = read_to_end(pair[0], DIRECT_MS);
        (void) close(pair[0]);
        *ret_end = must_wait(bus, path);
        return output;
}

char *capture_sh(const Direct *d, const Call *call, const char *command) {
        Call with = *call;
        char *output;
        End end;

        with.command = SH(command);
        output = capture(d, d->bus, &with, &end);
        if (end.code != CLD_EXITED || end.status != 0)
                fail_msg("%s: %s %d: %s", command, end.result, end.status, output);
        return output;
}
