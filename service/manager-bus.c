/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* org.berth1.Manager: reads arguments, calls the manager, replies. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>

#include "config.h"
#include "interfaces/names.h"
#include "service/authorize.h"
#include "service/bus-faces.h"
#include "service/spec-bus.h"
#include "util/strv.h"

static int method_create(sd_bus_message *message, void *userdata, sd_bus_error *error) {
        Connection *connection = userdata;
        Client *client = connection_client(connection, message);
        _cleanup_spec_ Spec *spec = NULL;
        _cleanup_free_ char *path = NULL;
        Container *container;
        const char *name;
        int r;

        r = sd_bus_message_read(message, "s", &name);
        if (r < 0)
                return r;
        r = spec_bus_read(message, &spec, error);
        if (r < 0)
                return r;
        r = authorize(client, ACTION_RUN, error);
        if (r < 0)
                return r;
        r = manager_create(connection_manager(connection), name, TAKE_PTR(spec), client, &container, error);
        if (r < 0)
                return r;
        r = container_bus_path(container, &path);
        if (r < 0)
                return r;
        return sd_bus_reply_method_return(message, "o", path);
}

static int run_path(Process *process, char **ret) {
        return container_bus_path(container_of(process), ret);
}

static void run_done(Process *process, const sd_bus_error *error, void *userdata) {
        process_bus_reply_started(userdata, process, error, run_path);
}

static int method_run(sd_bus_message *message, void *userdata, sd_bus_error *error) {
        Connection *connection = userdata;
        Client *client = connection_client(connection, message);
        _cleanup_options_ StartOptions options = START_OPTIONS_INIT;
        _cleanup_spec_ Spec *spec = NULL;
        const char *name;
        int r;

        r = sd_bus_message_read(message, "s", &name);
        if (r < 0)
                return r;
        r = spec_bus_read(message, &spec, error);
        if (r < 0)
                return r;
        r = options_bus_read(message, &options, error);
        if (r < 0)
                return r;
        r = authorize(client, ACTION_RUN, error);
        if (r < 0)
                return r;
        return bus_accepted(message,
                            manager_run(connection_manager(connection), name, TAKE_PTR(spec), &options,
                                        client, run_done, sd_bus_message_ref(message), NULL, error));
}

static int method_get(sd_bus_message *message, void *userdata, sd_bus_error *error) {
        Connection *connection = userdata;
        _cleanup_free_ char *path = NULL;
        Container *container;
        const char *name;
        int r;

        r = sd_bus_message_read(message, "s", &name);
        if (r < 0)
                return r;
        r = authorize(connection_client(connection, message), ACTION_WATCH, error);
        if (r < 0)
                return r;
        container = manager_get(connection_manager(connection), name);
        if (!container)
                return sd_bus_error_setf(error, BERTH_ERROR_NO_SUCH_CONTAINER, "there is no container '%s'",
                                         name);
        r = container_bus_path(container, &path);
        if (r < 0)
                return r;
        return sd_bus_reply_method_return(message, "o", path);
}

static int method_get_by_pid(sd_bus_message *message, void *userdata, sd_bus_error *error) {
        Connection *connection = userdata;
        _cleanup_free_ char *path = NULL;
        Container *container;
        uint32_t pid;
        int r;

        r = sd_bus_message_read(message, "u", &pid);
        if (r < 0)
                return r;
        r = authorize(connection_client(connection, message), ACTION_WATCH, error);
        if (r < 0)
                return r;
        container = pid > 0 && pid <= INT_MAX
                            ? manager_get_by_pid(connection_manager(connection), (pid_t) pid)
                            : NULL;
        if (!container)
                return sd_bus_error_setf(error, BERTH_ERROR_NO_SUCH_CONTAINER,
                                         "process %" PRIu32 " is in no container", pid);
        r = container_bus_path(container, &path);
        if (r < 0)
                return r;
        return sd_bus_reply_method_return(message, "o", path);
}

static int method_list(sd_bus_message *message, void *userdata, sd_bus_error *error) {
        Connection *connection = userdata;
        _cleanup_bus_message_ sd_bus_message *reply = NULL;
        Container *c;
        int r;

        r = authorize(connection_client(connection, message), ACTION_WATCH, error);
        if (r < 0)
                return r;
        r = sd_bus_message_new_method_return(message, &reply);
        if (r < 0)
                return r;
        r = sd_bus_message_open_container(reply, 'a', "(sssuo)");
        if (r < 0)
                return r;
        TAILQ_FOREACH(c, &connection_manager(connection)->containers, link) {
                _cleanup_free_ char *path = NULL;

                if (!c->linked)
                        continue;
                r = container_bus_path(c, &path);
                if (r < 0)
                        return r;
                r = sd_bus_message_append(reply, "(sssuo)", c->name, container_state_to_string(c->state),
                                          container_unit(c), (uint32_t) container_pid(c), path);
                if (r < 0)
                        return r;
        }
        r = sd_bus_message_close_container(reply);
        if (r < 0)
                return r;
        return sd_bus_message_send(reply);
}

static int get_version(sd_bus *bus, const char *path, const char *interface, const char *property,
                       sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        return sd_bus_message_append(reply, "s", BERTH_VERSION);
}

static int get_features(sd_bus *bus, const char *path, const char *interface, const char *property,
                        sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        _cleanup_strv_ char **features = NULL;
        int r;

        r = manager_features(connection_manager(userdata), &features);
        if (r < 0)
                return r;
        return sd_bus_message_append_strv(reply, features);
}

static const sd_bus_vtable manager_vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_METHOD_WITH_ARGS("CreateContainer", SD_BUS_ARGS("s", name, "a{sv}", spec),
                                SD_BUS_RESULT("o", container), method_create, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("RunContainer", SD_BUS_ARGS("s", name, "a{sv}", spec, "a{sv}", options),
                                SD_BUS_RESULT("o", container, "a{sh}", stdio), method_run,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("CaptureContainer", SD_BUS_ARGS("s", name, "a{sv}", spec, "a{sv}", options),
                                SD_BUS_RESULT("i", code, "i", status, "ay", stdout, "ay", stderr),
                                capture_bus_method_capture_container, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("GetContainer", SD_BUS_ARGS("s", name), SD_BUS_RESULT("o", container),
                                method_get, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("GetContainerByPID", SD_BUS_ARGS("u", pid), SD_BUS_RESULT("o", container),
                                method_get_by_pid, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("ListContainers", SD_BUS_NO_ARGS, SD_BUS_RESULT("a(sssuo)", containers),
                                method_list, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_PROPERTY("Version", "s", get_version, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("Features", "as", get_features, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_SIGNAL_WITH_ARGS("ContainerAdded", SD_BUS_ARGS("s", name, "o", path), 0),
        SD_BUS_SIGNAL_WITH_ARGS("ContainerRemoved", SD_BUS_ARGS("s", name, "o", path), 0),
        SD_BUS_VTABLE_END,
};

int manager_bus_attach(Connection *connection) {
        return sd_bus_add_object_vtable(connection_bus(connection), NULL, BERTH_PATH,
                                        BERTH_INTERFACE_MANAGER, manager_vtable, connection);
}

void manager_bus_added(Connection *connection, Container *container) {
        sd_bus *bus = connection_bus(connection);
        _cleanup_free_ char *path = NULL;

        if (container_bus_path(container, &path) < 0)
                return;
        (void) sd_bus_emit_object_added(bus, path);
        (void) sd_bus_emit_signal(bus, BERTH_PATH, BERTH_INTERFACE_MANAGER, "ContainerAdded", "so",
                                  container->name, path);
}

void manager_bus_removed(Connection *connection, const Container *container) {
        sd_bus *bus = connection_bus(connection);
        _cleanup_free_ char *path = NULL;

        if (container_bus_path(container, &path) < 0)
                return;
        /* The object is out of the tree already, so its interfaces are named here. */
        (void) sd_bus_emit_interfaces_removed(
                bus, path, BERTH_INTERFACE_CONTAINER, "org.freedesktop.DBus.Properties",
                "org.freedesktop.DBus.Introspectable", "org.freedesktop.DBus.Peer", NULL);
        (void) sd_bus_emit_signal(bus, BERTH_PATH, BERTH_INTERFACE_MANAGER, "ContainerRemoved", "so",
                                  container->name, path);
}
