/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The client's half of the fixture: calls, specs, properties. */
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <setjmp.h>

#include <cmocka.h>

#include "interfaces/names.h"
#include "tests/bus/fixture.h"
#include "tests/system/launch-fixture.h"
#include "util/cleanup.h"

static int on_reply(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Call *call = userdata;

        call->reply = sd_bus_message_ref(m);
        call->number = ++call->f->n_replies;
        return 0;
}

sd_bus_message *call_new(sd_bus *bus, const char *container, const char *member) {
        _cleanup_free_ char *path = NULL;
        sd_bus_message *m;

        if (container)
                assert_true(sd_bus_path_encode(BERTH_CONTAINER_PREFIX, container, &path) >= 0);
        assert_true(sd_bus_message_new_method_call(
                            bus, &m, BERTH_BUS_NAME, path ?: BERTH_PATH,
                            path ? BERTH_INTERFACE_CONTAINER : BERTH_INTERFACE_MANAGER, member) >= 0);
        return m;
}

Call *call_send(Fixture *f, sd_bus_message *m) {
        Call *call;

        call = calloc(1, sizeof(*call));
        assert_non_null(call);
        call->f = f;
        assert_true(sd_bus_call_async(sd_bus_message_get_bus(m), &call->slot, m, on_reply, call, 0) >= 0);
        (void) sd_bus_message_unref(m);
        return call;
}

Call *call_begin(Fixture *f, sd_bus *bus, const char *container, const char *member, const char *types,
                 ...) {
        sd_bus_message *m = call_new(bus, container, member);
        va_list ap;

        va_start(ap, types);
        assert_true(sd_bus_message_appendv(m, types, ap) >= 0);
        va_end(ap);
        return call_send(f, m);
}

Call *call_free(Call *call) {
        if (!call)
                return NULL;
        (void) sd_bus_slot_unref(call->slot);
        (void) sd_bus_message_unref(call->reply);
        free(call);
        return NULL;
}

const char *call_wait(Call *call) {
        const sd_bus_error *error;

        fixture_until(call->f, call->reply);
        error = sd_bus_message_get_error(call->reply);
        return error ? error->name : NULL;
}

const char *call_error_message(Call *call) {
        return sd_bus_message_get_error(call->reply)->message;
}

void call_succeed(Call *call) {
        if (call_wait(call))
                fail_msg("%s: %s", call_wait(call), call_error_message(call));
        (void) call_free(call);
}

void call_fail(Call *call, const char *name, const char *part) {
        if (!call_wait(call))
                fail_msg("succeeded instead of %s", name);
        if (strcmp(call_wait(call), name) != 0 || !strstr(call_error_message(call), part))
                fail_msg("%s: %s; wanted: %s: %s", call_wait(call), call_error_message(call), name, part);
        (void) call_free(call);
}

static void append_time(sd_bus_message *m, const char *key, uint64_t usec) {
        if (usec > 0)
                assert_true(sd_bus_message_append(m, "{sv}", key, "t", usec) >= 0);
}

static void append_string(sd_bus_message *m, const char *key, const char *value) {
        if (value)
                assert_true(sd_bus_message_append(m, "{sv}", key, "s", value) >= 0);
}

static void append_true(sd_bus_message *m, const char *key, bool value) {
        if (value)
                assert_true(sd_bus_message_append(m, "{sv}", key, "b", 1) >= 0);
}

static void append_spec(Fixture *f, sd_bus_message *m, const TestSpec *spec) {
        assert_true(sd_bus_message_open_container(m, 'a', "{sv}") >= 0);
        append_string(m, "RootDirectory", f->root);
        if (spec->program)
                assert_true(sd_bus_message_append(m, "{sv}", "Command", "as", 1, spec->program) >= 0);
        else
                assert_true(sd_bus_message_append(m, "{sv}", "Command", "as", 3, "/bin/sh", "-c",
                                                  spec->script) >= 0);
        append_true(m, "Terminal", spec->terminal);
        append_true(m, "AutoRemove", spec->auto_remove);
        append_time(m, "TimeoutStartUSec", spec->timeout_start_usec);
        append_time(m, "TimeoutStopUSec", spec->timeout_stop_usec);
        append_string(m, "Slice", spec->slice);
        if (spec->stop_signal > 0)
                assert_true(sd_bus_message_append(m, "{sv}", "StopSignal", "i", spec->stop_signal) >= 0);
        assert_true(sd_bus_message_close_container(m) >= 0);
}

static void append_options(sd_bus_message *m, const TestSpec *spec) {
        assert_true(sd_bus_message_open_container(m, 'a', "{sv}") >= 0);
        append_string(m, "OnDisconnect", spec->on_disconnect);
        if (spec->output > 0)
                assert_true(sd_bus_message_append(m, "{sv}", "StandardOutput", "h", spec->output) >= 0);
        assert_true(sd_bus_message_close_container(m) >= 0);
}

Call *call_run(Fixture *f, sd_bus *bus, const TestSpec *spec) {
        sd_bus_message *m = call_new(bus, NULL, "RunContainer");

        assert_true(sd_bus_message_append(m, "s", spec->name) >= 0);
        append_spec(f, m, spec);
        append_options(m, spec);
        return call_send(f, m);
}

Call *call_create(Fixture *f, sd_bus *bus, const TestSpec *spec) {
        sd_bus_message *m = call_new(bus, NULL, "CreateContainer");

        assert_true(sd_bus_message_append(m, "s", spec->name) >= 0);
        append_spec(f, m, spec);
        return call_send(f, m);
}

Call *call_start(Fixture *f, sd_bus *bus, const TestSpec *spec) {
        sd_bus_message *m = call_new(bus, spec->name, "Start");

        append_options(m, spec);
        return call_send(f, m);
}

char *container_property(Fixture *f, const char *container, const char *property) {
        _cleanup_free_ char *path = NULL;
        const char *contents, *s;
        char *value = NULL;
        sd_bus_message *m;
        uint32_t u;
        Call *call;

        assert_true(sd_bus_path_encode(BERTH_CONTAINER_PREFIX, container, &path) >= 0);
        assert_true(sd_bus_message_new_method_call(f->client, &m, BERTH_BUS_NAME, path,
                                                   "org.freedesktop.DBus.Properties", "Get") >= 0);
        assert_true(sd_bus_message_append(m, "ss", BERTH_INTERFACE_CONTAINER, property) >= 0);
        call = call_send(f, m);
        assert_null(call_wait(call));
        assert_true(sd_bus_message_peek_type(call->reply, NULL, &contents) > 0);
        if (strcmp(contents, "s") == 0) {
                assert_true(sd_bus_message_read(call->reply, "v", "s", &s) > 0);
                text_append(&value, "%s", s);
        } else {
                assert_true(sd_bus_message_read(call->reply, "v", contents, &u) > 0);
                text_append(&value, "%u", u);
        }
        (void) call_free(call);
        return value;
}

bool container_exists(Fixture *f, const char *container) {
        Call *call = call_begin(f, f->client, NULL, "GetContainer", "s", container);
        bool exists = !call_wait(call);

        (void) call_free(call);
        return exists;
}

void container_ready(Fixture *f) {
        const char *path = text("%s/data/ready", f->root);

        fixture_until(f, access(path, F_OK) == 0);
        assert_int_equal(unlink(path), 0);
}

void container_wait(Fixture *f, const char *container, int code, int status, const char *result) {
        Call *call = call_begin(f, f->client, container, "Wait", "");
        const char *got_result;
        int got_code, got_status;

        if (call_wait(call))
                fail_msg("%s: %s", call_wait(call), call_error_message(call));
        assert_true(sd_bus_message_read(call->reply, "iis", &got_code, &got_status, &got_result) > 0);
        assert_int_equal(got_code, code);
        assert_int_equal(got_status, status);
        assert_string_equal(got_result, result);
        (void) call_free(call);
}
