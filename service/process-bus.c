/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* org.berth1.Process: reads arguments, calls the process of an Exec, replies. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "interfaces/names.h"
#include "service/authorize.h"
#include "service/bus-faces.h"
#include "util/strv.h"

#define PROCESS_PATH BERTH_CONTAINER_PREFIX "/%/process/%"

int process_bus_path(const Exec *exec, char **ret) {
        _cleanup_free_ char *container = NULL;
        int r;

        r = container_bus_path(exec->container, &container);
        if (r < 0)
                return r;
        /* The number as it is: the library's escaping would hide its first digit. */
        return asprintf(ret, "%s/process/%llu", container, (unsigned long long) exec->number) < 0 ? -ENOMEM
                                                                                                  : 0;
}

static int method_signal(sd_bus_message *message, void *userdata, sd_bus_error *error) {
        Client *client;
        int signal, r;

        r = sd_bus_message_read(message, "i", &signal);
        if (r < 0)
                return r;
        r = bus_begin(message, ACTION_MANAGE, &client, error);
        if (r < 0)
                return r;
        r = exec_signal(userdata, signal, error);
        if (r < 0)
                return r;
        return sd_bus_reply_method_return(message, NULL);
}

static int method_resize(sd_bus_message *message, void *userdata, sd_bus_error *error) {
        uint16_t rows, columns;
        Client *client;
        int r;

        r = sd_bus_message_read(message, "qq", &rows, &columns);
        if (r < 0)
                return r;
        r = bus_begin(message, ACTION_MANAGE, &client, error);
        if (r < 0)
                return r;
        r = exec_resize(userdata, rows, columns, error);
        if (r < 0)
                return r;
        return sd_bus_reply_method_return(message, NULL);
}

static int method_wait(sd_bus_message *message, void *userdata, sd_bus_error *error) {
        Client *client;
        int r;

        r = bus_begin(message, ACTION_WATCH, &client, error);
        if (r < 0)
                return r;
        return bus_accepted(message, exec_wait(userdata, client, process_bus_wait_done,
                                               sd_bus_message_ref(message), error));
}

static int method_remove(sd_bus_message *message, void *userdata, sd_bus_error *error) {
        Client *client;
        int r;

        r = bus_begin(message, ACTION_MANAGE, &client, error);
        if (r < 0)
                return r;
        r = exec_remove(userdata, error);
        if (r < 0)
                return r;
        return sd_bus_reply_method_return(message, NULL);
}

#define PROPERTY_GETTER(name, signature, ...)                                                       \
        static int name(sd_bus *bus, const char *path, const char *interface, const char *property, \
                        sd_bus_message *reply, void *userdata, sd_bus_error *error) {               \
                const Exec *exec = userdata;                                                        \
                                                                                                    \
                return sd_bus_message_append(reply, signature, __VA_ARGS__);                        \
        }

PROPERTY_GETTER(get_state, "s", process_state_to_string(exec->process->state))
PROPERTY_GETTER(get_result, "s", process_result_to_string(exec->process->result))
PROPERTY_GETTER(get_exit_code, "i", exec->process->exit_code)
PROPERTY_GETTER(get_exit_status, "i", exec->process->exit_status)
PROPERTY_GETTER(get_pid, "u", (uint32_t) exec->process->pid)
PROPERTY_GETTER(get_terminal, "b", (int) exec->spec->terminal)
PROPERTY_GETTER(get_started, "t", exec->process->started_usec)
PROPERTY_GETTER(get_exited, "t", exec->process->exited_usec)
PROPERTY_GETTER(get_rows, "q", process_size(exec->process).rows)
PROPERTY_GETTER(get_columns, "q", process_size(exec->process).columns)
PROPERTY_GETTER(get_foreground_pid, "u", (uint32_t) process_foreground(exec->process))

static int get_command(sd_bus *bus, const char *path, const char *interface, const char *property,
                       sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        const Exec *exec = userdata;

        return sd_bus_message_append_strv(reply, exec->spec->command);
}

static const sd_bus_vtable process_vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_METHOD_WITH_ARGS("Resize", SD_BUS_ARGS("q", rows, "q", columns), SD_BUS_NO_RESULT,
                                method_resize, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("Signal", SD_BUS_ARGS("i", signal), SD_BUS_NO_RESULT, method_signal,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("Wait", SD_BUS_NO_ARGS, SD_BUS_RESULT("i", code, "i", status, "s", result),
                                method_wait, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("Remove", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, method_remove,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_PROPERTY("State", "s", get_state, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
        SD_BUS_PROPERTY("Result", "s", get_result, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
        SD_BUS_PROPERTY("ExitCode", "i", get_exit_code, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
        SD_BUS_PROPERTY("ExitStatus", "i", get_exit_status, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
        SD_BUS_PROPERTY("PID", "u", get_pid, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
        SD_BUS_PROPERTY("Terminal", "b", get_terminal, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("Command", "as", get_command, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("StartedUSec", "t", get_started, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("ExitedUSec", "t", get_exited, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
        SD_BUS_PROPERTY("Rows", "q", get_rows, 0, 0),
        SD_BUS_PROPERTY("Columns", "q", get_columns, 0, 0),
        SD_BUS_PROPERTY("ForegroundPID", "u", get_foreground_pid, 0, 0),
        SD_BUS_SIGNAL_WITH_ARGS("Exited", SD_BUS_ARGS("i", code, "i", status, "s", result), 0),
        SD_BUS_VTABLE_END,
};

static int find(sd_bus *bus, const char *path, const char *interface, void *userdata, void **ret_found,
                sd_bus_error *error) {
        Connection *connection = userdata;
        _cleanup_free_ char *name = NULL, *number = NULL;
        Container *container;
        unsigned long long n;
        char *end;
        Exec *exec;
        int r;

        r = sd_bus_path_decode_many(path, PROCESS_PATH, &name, &number);
        if (r <= 0)
                return r;
        container = manager_get(connection_manager(connection), name);
        errno = 0;
        n = strtoull(number, &end, 10);
        if (!container || number[0] < '1' || number[0] > '9' || *end || errno != 0)
                return 0;
        exec = exec_find(container, n);
        if (!exec || !exec->shown)
                return 0;
        *ret_found = exec;
        return 1;
}

static int enumerate(sd_bus *bus, const char *prefix, void *userdata, char ***ret_nodes,
                     sd_bus_error *error) {
        Connection *connection = userdata;
        _cleanup_strv_ char **nodes = NULL;
        Container *c;
        Exec *exec;
        int r;

        TAILQ_FOREACH(c, &connection_manager(connection)->containers, link)
        TAILQ_FOREACH(exec, &c->execs, link) {
                _cleanup_free_ char *path = NULL;

                if (!c->linked || !exec->shown)
                        continue;
                r = process_bus_path(exec, &path);
                if (r >= 0)
                        r = strv_append(&nodes, path);
                if (r < 0)
                        return r;
        }
        *ret_nodes = TAKE_PTR(nodes);
        return 1;
}

int process_bus_attach(Connection *connection) {
        sd_bus *bus = connection_bus(connection);
        int r;

        r = sd_bus_add_fallback_vtable(bus, NULL, BERTH_CONTAINER_PREFIX, BERTH_INTERFACE_PROCESS,
                                       process_vtable, find, connection);
        if (r < 0)
                return r;
        return sd_bus_add_node_enumerator(bus, NULL, BERTH_CONTAINER_PREFIX, enumerate, connection);
}

static void container_changed(Connection *connection, const Exec *exec) {
        static const char *const changed[] = { "Processes", NULL };

        container_bus_changed(connection, exec->container, changed);
}

void process_bus_added(Connection *connection, Exec *exec) {
        _cleanup_free_ char *path = NULL;

        if (process_bus_path(exec, &path) >= 0)
                (void) sd_bus_emit_object_added(connection_bus(connection), path);
        container_changed(connection, exec);
}

void process_bus_exited(Connection *connection, Exec *exec) {
        sd_bus *bus = connection_bus(connection);
        _cleanup_free_ char *path = NULL;

        if (process_bus_path(exec, &path) < 0)
                return;
        (void) sd_bus_emit_properties_changed(bus, path, BERTH_INTERFACE_PROCESS, "State", "PID", "ExitCode",
                                              "ExitStatus", "Result", "ExitedUSec", NULL);
        (void) sd_bus_emit_signal(bus, path, BERTH_INTERFACE_PROCESS, "Exited", "iis",
                                  exec->process->exit_code, exec->process->exit_status,
                                  process_result_to_string(exec->process->result));
}

void process_bus_removed(Connection *connection, const Exec *exec) {
        _cleanup_free_ char *path = NULL;

        if (process_bus_path(exec, &path) >= 0)
                (void) sd_bus_emit_interfaces_removed(
                        connection_bus(connection), path, BERTH_INTERFACE_PROCESS,
                        "org.freedesktop.DBus.Properties", "org.freedesktop.DBus.Introspectable",
                        "org.freedesktop.DBus.Peer", NULL);
        container_changed(connection, exec);
}
