/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* org.berth1.Container: reads arguments, calls the container, replies. */
#include <errno.h>
#include <stdlib.h>

#include "interfaces/names.h"
#include "service/authorize.h"
#include "service/bus-faces.h"
#include "service/command-lines.h"
#include "service/manager.h"
#include "service/spec-bus.h"
#include "util/strv.h"

int container_bus_path(const Container *container, char **ret) {
        return sd_bus_path_encode(BERTH_CONTAINER_PREFIX, container->name, ret);
}

void bus_reply_error(sd_bus_message *call, const sd_bus_error *error) {
        (void) sd_bus_reply_method_error(call, error);
}

static int append_stdio(sd_bus_message *reply, Process *process) {
        static const char *const names[] = { "stdin", "stdout", "stderr" };
        _cleanup_fd_ int master = process_take_master(process);
        int r;

        r = sd_bus_message_open_container(reply, 'a', "{sh}");
        /* sd-bus sends duplicates; ours are closed here. */
        if (r >= 0 && master >= 0)
                r = sd_bus_message_append(reply, "{sh}", "terminal", master);
        for (unsigned i = 0; i < ELEMENTSOF(names); i++) {
                _cleanup_fd_ int fd = process_take_stream(process, i);

                if (r >= 0 && fd >= 0)
                        r = sd_bus_message_append(reply, "{sh}", names[i], fd);
        }
        return r < 0 ? r : sd_bus_message_close_container(reply);
}

/* ---- calls that are answered later ----------------------------------------------------------------------------- */

void process_bus_reply_started(sd_bus_message *message, Process *process, const sd_bus_error *error,
                               int (*path_of)(Process *process, char **ret)) {
        _cleanup_bus_message_ sd_bus_message *call = message, *reply = NULL;
        _cleanup_free_ char *path = NULL;
        int r;

        if (error) {
                bus_reply_error(call, error);
                return;
        }
        r = sd_bus_message_new_method_return(call, &reply);
        if (r >= 0 && path_of)
                r = path_of(process, &path);
        if (r >= 0 && path)
                r = sd_bus_message_append(reply, "o", path);
        if (r >= 0)
                r = append_stdio(reply, process);
        if (r >= 0)
                r = sd_bus_message_send(reply);
        if (r < 0)
                (void) sd_bus_reply_method_errno(call, r, NULL);
}

static void start_done(Process *process, const sd_bus_error *error, void *userdata) {
        process_bus_reply_started(userdata, process, error, NULL);
}

static void empty_done(Container *container, const sd_bus_error *error, void *userdata) {
        _cleanup_bus_message_ sd_bus_message *call = userdata;

        if (error)
                bus_reply_error(call, error);
        else
                (void) sd_bus_reply_method_return(call, NULL);
}

void process_bus_wait_done(Process *process, const sd_bus_error *error, void *userdata) {
        _cleanup_bus_message_ sd_bus_message *call = userdata;

        if (error)
                bus_reply_error(call, error);
        else
                (void) sd_bus_reply_method_return(call, "iis", process->exit_code, process->exit_status,
                                                  process_result_to_string(process->result));
}

/* What every handler needs first: who calls, and whether they may. */
int bus_begin(sd_bus_message *message, Action action, Client **ret, sd_bus_error *error) {
        *ret = connection_client(connection_of_call(message), message);
        return authorize(*ret, action, error);
}

/* What every handler does last: an accepted call keeps its message until `done`. */
int bus_accepted(sd_bus_message *message, int r) {
        if (r < 0) {
                (void) sd_bus_message_unref(message);
                return r;
        }
        return 1;
}

static int method_start(sd_bus_message *message, void *userdata, sd_bus_error *error) {
        _cleanup_options_ StartOptions options = START_OPTIONS_INIT;
        Container *container = userdata;
        Client *client;
        int r;

        r = options_bus_read(message, &options, error);
        if (r < 0)
                return r;
        r = bus_begin(message, ACTION_RUN, &client, error);
        if (r < 0)
                return r;
        return bus_accepted(message, container_start(container, &options, client, start_done,
                                                     sd_bus_message_ref(message), error));
}

static int exec_path(Process *process, char **ret) {
        return process_bus_path(exec_of(process), ret);
}

static void exec_done(Process *process, const sd_bus_error *error, void *userdata) {
        process_bus_reply_started(userdata, process, error, exec_path);
}

static int method_exec(sd_bus_message *message, void *userdata, sd_bus_error *error) {
        _cleanup_options_ StartOptions options = START_OPTIONS_INIT;
        Container *container = userdata;
        _cleanup_spec_ Spec *spec = NULL;
        Client *client;
        int r;

        r = spec_bus_read_exec(message, container->spec, NULL, NULL, &spec, &options, error);
        if (r < 0)
                return r;
        r = bus_begin(message, ACTION_RUN, &client, error);
        if (r < 0)
                return r;
        return bus_accepted(message, exec_start(container, TAKE_PTR(spec), &options, client, exec_done,
                                                sd_bus_message_ref(message), error));
}

static int method_stop(sd_bus_message *message, void *userdata, sd_bus_error *error) {
        Container *container = userdata;
        uint64_t timeout_usec;
        Client *client;
        int r;

        r = sd_bus_message_read(message, "t", &timeout_usec);
        if (r < 0)
                return r;
        r = bus_begin(message, ACTION_MANAGE, &client, error);
        if (r < 0)
                return r;
        return bus_accepted(message, container_stop(container, timeout_usec, client, empty_done,
                                                    sd_bus_message_ref(message), error));
}

static int method_wait(sd_bus_message *message, void *userdata, sd_bus_error *error) {
        Container *container = userdata;
        Client *client;
        int r;

        r = bus_begin(message, ACTION_WATCH, &client, error);
        if (r < 0)
                return r;
        return bus_accepted(message, container_wait(container, client, process_bus_wait_done,
                                                    sd_bus_message_ref(message), error));
}

static int method_remove(sd_bus_message *message, void *userdata, sd_bus_error *error) {
        Container *container = userdata;
        Client *client;
        int force, r;

        r = sd_bus_message_read(message, "b", &force);
        if (r < 0)
                return r;
        r = bus_begin(message, ACTION_MANAGE, &client, error);
        if (r < 0)
                return r;
        return bus_accepted(message, container_remove(container, force, client, empty_done,
                                                      sd_bus_message_ref(message), error));
}

static int method_pause(sd_bus_message *message, void *userdata, sd_bus_error *error) {
        Container *container = userdata;
        Client *client;
        int r;

        r = bus_begin(message, ACTION_MANAGE, &client, error);
        if (r < 0)
                return r;
        return bus_accepted(
                message, container_pause(container, client, empty_done, sd_bus_message_ref(message), error));
}

static int method_resume(sd_bus_message *message, void *userdata, sd_bus_error *error) {
        Container *container = userdata;
        Client *client;
        int r;

        r = bus_begin(message, ACTION_MANAGE, &client, error);
        if (r < 0)
                return r;
        return bus_accepted(message, container_resume(container, client, empty_done,
                                                      sd_bus_message_ref(message), error));
}

static int method_update(sd_bus_message *message, void *userdata, sd_bus_error *error) {
        Container *container = userdata;
        _cleanup_spec_ Spec *limits = NULL;
        Client *client;
        int r;

        r = spec_bus_read_resources(message, &limits, error);
        if (r < 0)
                return r;
        r = bus_begin(message, ACTION_RUN, &client, error);
        if (r < 0)
                return r;
        return bus_accepted(message, container_update(container, TAKE_PTR(limits), client, empty_done,
                                                      sd_bus_message_ref(message), error));
}

/* ---- calls that are answered at once ---------------------------------------------------------------------------- */

static int method_signal(sd_bus_message *message, void *userdata, sd_bus_error *error) {
        Container *container = userdata;
        Client *client;
        int signal, r;

        r = sd_bus_message_read(message, "i", &signal);
        if (r < 0)
                return r;
        r = bus_begin(message, ACTION_MANAGE, &client, error);
        if (r < 0)
                return r;
        r = container_signal(container, signal, error);
        if (r < 0)
                return r;
        return sd_bus_reply_method_return(message, NULL);
}

static int method_resize(sd_bus_message *message, void *userdata, sd_bus_error *error) {
        Container *container = userdata;
        uint16_t rows, columns;
        Client *client;
        int r;

        r = sd_bus_message_read(message, "qq", &rows, &columns);
        if (r < 0)
                return r;
        r = bus_begin(message, ACTION_MANAGE, &client, error);
        if (r < 0)
                return r;
        r = container_resize(container, rows, columns, error);
        if (r < 0)
                return r;
        return sd_bus_reply_method_return(message, NULL);
}

static int method_signal_all(sd_bus_message *message, void *userdata, sd_bus_error *error) {
        Container *container = userdata;
        Client *client;
        int signal, r;

        r = sd_bus_message_read(message, "i", &signal);
        if (r < 0)
                return r;
        r = bus_begin(message, ACTION_MANAGE, &client, error);
        if (r < 0)
                return r;
        r = container_signal_all(container, signal, error);
        if (r < 0)
                return r;
        return sd_bus_reply_method_return(message, NULL);
}

static int append_processes(sd_bus_message *reply, const Members *members, char *const *lines) {
        int r;

        r = sd_bus_message_open_container(reply, 'a', "(us)");
        for (size_t i = 0; r >= 0 && i < members->n; i++)
                r = sd_bus_message_append(reply, "(us)", (uint32_t) members->pids[i], lines[i] ?: "");
        return r < 0 ? r : sd_bus_message_close_container(reply);
}

static void list_processes_done(const Members *members, char *const *lines, void *userdata) {
        _cleanup_bus_message_ sd_bus_message *call = userdata, *reply = NULL;
        int r;

        r = sd_bus_message_new_method_return(call, &reply);
        if (r >= 0)
                r = append_processes(reply, members, lines);
        if (r >= 0)
                r = sd_bus_message_send(reply);
        if (r < 0)
                (void) sd_bus_reply_method_errno(call, r, NULL);
}

static int method_list_processes(sd_bus_message *message, void *userdata, sd_bus_error *error) {
        _cleanup_members_ Members members = {};
        Container *container = userdata;
        Client *client;
        int r;

        r = bus_begin(message, ACTION_WATCH, &client, error);
        if (r < 0)
                return r;
        r = container_members(container, &members, error);
        if (r < 0)
                return r;
        return bus_accepted(message, command_lines_read(container->manager->event, &members,
                                                        list_processes_done, sd_bus_message_ref(message)));
}

static int method_get_statistics(sd_bus_message *message, void *userdata, sd_bus_error *error) {
        _cleanup_bus_message_ sd_bus_message *reply = NULL;
        Statistic statistics[STATISTICS_MAX];
        Container *container = userdata;
        Client *client;
        size_t n;
        int r;

        r = bus_begin(message, ACTION_WATCH, &client, error);
        if (r < 0)
                return r;
        r = container_statistics(container, statistics, &n, error);
        if (r < 0)
                return r;
        r = sd_bus_message_new_method_return(message, &reply);
        if (r < 0)
                return r;
        r = sd_bus_message_open_container(reply, 'a', "{sv}");
        for (size_t i = 0; r >= 0 && i < n; i++)
                r = sd_bus_message_append(reply, "{sv}", statistics[i].name, "t", statistics[i].value);
        if (r >= 0)
                r = sd_bus_message_close_container(reply);
        return r < 0 ? r : sd_bus_message_send(reply);
}

/* ---- properties ------------------------------------------------------------------------------------------------- */

#define PROPERTY_GETTER(name, signature, ...)                                                       \
        static int name(sd_bus *bus, const char *path, const char *interface, const char *property, \
                        sd_bus_message *reply, void *userdata, sd_bus_error *error) {               \
                Container *container = userdata;                                                    \
                                                                                                    \
                return sd_bus_message_append(reply, signature, __VA_ARGS__);                        \
        }

PROPERTY_GETTER(get_name, "s", container->name)
PROPERTY_GETTER(get_state, "s", container_state_to_string(container->state))
PROPERTY_GETTER(get_result, "s", process_result_to_string(container->init->result))
PROPERTY_GETTER(get_failed_stage, "s", launch_stage_to_string(container->init->failed_stage))
PROPERTY_GETTER(get_exit_code, "i", container->init->exit_code)
PROPERTY_GETTER(get_exit_status, "i", container->init->exit_status)
PROPERTY_GETTER(get_pid, "u", (uint32_t) container_pid(container))
PROPERTY_GETTER(get_unit, "s", container_unit(container))
PROPERTY_GETTER(get_control_group, "s", container->control_group ?: "")
PROPERTY_GETTER(get_owner, "u", (uint32_t) container->owner)
PROPERTY_GETTER(get_terminal, "b", (int) container->spec->terminal)
PROPERTY_GETTER(get_root_directory, "s", container->spec->root_directory)
PROPERTY_GETTER(get_created, "t", container->created_usec)
PROPERTY_GETTER(get_started, "t", container->init->started_usec)
PROPERTY_GETTER(get_exited, "t", container->init->exited_usec)
PROPERTY_GETTER(get_rows, "q", process_size(container->init).rows)
PROPERTY_GETTER(get_columns, "q", process_size(container->init).columns)
PROPERTY_GETTER(get_foreground_pid, "u", (uint32_t) process_foreground(container->init))

static int get_command(sd_bus *bus, const char *path, const char *interface, const char *property,
                       sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        Container *container = userdata;

        return sd_bus_message_append_strv(reply, container->spec->command);
}

static int get_annotations(sd_bus *bus, const char *path, const char *interface, const char *property,
                           sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        const Spec *spec = ((Container *) userdata)->spec;
        int r;

        r = sd_bus_message_open_container(reply, 'a', "{ss}");
        if (r < 0)
                return r;
        for (size_t i = 0; i < spec->n_annotations; i++) {
                r = sd_bus_message_append(reply, "{ss}", spec->annotations[i].key,
                                          spec->annotations[i].value);
                if (r < 0)
                        return r;
        }
        return sd_bus_message_close_container(reply);
}

static int get_processes(sd_bus *bus, const char *path, const char *interface, const char *property,
                         sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        Container *container = userdata;
        Exec *exec;
        int r;

        r = sd_bus_message_open_container(reply, 'a', "o");
        if (r < 0)
                return r;
        TAILQ_FOREACH(exec, &container->execs, link) {
                _cleanup_free_ char *process = NULL;

                if (!exec->shown)
                        continue;
                r = process_bus_path(exec, &process);
                if (r < 0)
                        return r;
                r = sd_bus_message_append(reply, "o", process);
                if (r < 0)
                        return r;
        }
        return sd_bus_message_close_container(reply);
}

static const sd_bus_vtable container_vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_METHOD_WITH_ARGS("Start", SD_BUS_ARGS("a{sv}", options), SD_BUS_RESULT("a{sh}", stdio),
                                method_start, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("Exec", SD_BUS_ARGS("a{sv}", process),
                                SD_BUS_RESULT("o", process, "a{sh}", stdio), method_exec,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("Capture", SD_BUS_ARGS("as", command, "a{sv}", options),
                                SD_BUS_RESULT("i", code, "i", status, "ay", stdout, "ay", stderr),
                                capture_bus_method_capture, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("Resize", SD_BUS_ARGS("q", rows, "q", columns), SD_BUS_NO_RESULT,
                                method_resize, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("Signal", SD_BUS_ARGS("i", signal), SD_BUS_NO_RESULT, method_signal,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("SignalAll", SD_BUS_ARGS("i", signal), SD_BUS_NO_RESULT, method_signal_all,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("Pause", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, method_pause,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("Resume", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, method_resume,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("Update", SD_BUS_ARGS("a{sv}", limits), SD_BUS_NO_RESULT, method_update,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("ListProcesses", SD_BUS_NO_ARGS, SD_BUS_RESULT("a(us)", processes),
                                method_list_processes, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("GetStatistics", SD_BUS_NO_ARGS, SD_BUS_RESULT("a{sv}", statistics),
                                method_get_statistics, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("Stop", SD_BUS_ARGS("t", timeout_usec), SD_BUS_NO_RESULT, method_stop,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("Wait", SD_BUS_NO_ARGS, SD_BUS_RESULT("i", code, "i", status, "s", result),
                                method_wait, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("Remove", SD_BUS_ARGS("b", force), SD_BUS_NO_RESULT, method_remove,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_PROPERTY("Name", "s", get_name, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("State", "s", get_state, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
        SD_BUS_PROPERTY("Result", "s", get_result, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
        SD_BUS_PROPERTY("FailedStage", "s", get_failed_stage, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
        SD_BUS_PROPERTY("ExitCode", "i", get_exit_code, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
        SD_BUS_PROPERTY("ExitStatus", "i", get_exit_status, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
        SD_BUS_PROPERTY("PID", "u", get_pid, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
        SD_BUS_PROPERTY("Unit", "s", get_unit, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
        SD_BUS_PROPERTY("ControlGroup", "s", get_control_group, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
        SD_BUS_PROPERTY("Owner", "u", get_owner, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("Terminal", "b", get_terminal, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("Command", "as", get_command, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("RootDirectory", "s", get_root_directory, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("CreatedUSec", "t", get_created, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("StartedUSec", "t", get_started, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
        SD_BUS_PROPERTY("ExitedUSec", "t", get_exited, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
        SD_BUS_PROPERTY("Processes", "ao", get_processes, 0, SD_BUS_VTABLE_PROPERTY_EMITS_INVALIDATION),
        SD_BUS_PROPERTY("Annotations", "a{ss}", get_annotations, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("Rows", "q", get_rows, 0, 0),
        SD_BUS_PROPERTY("Columns", "q", get_columns, 0, 0),
        SD_BUS_PROPERTY("ForegroundPID", "u", get_foreground_pid, 0, 0),
        SD_BUS_SIGNAL_WITH_ARGS("Started", SD_BUS_ARGS("u", pid), 0),
        SD_BUS_SIGNAL_WITH_ARGS("Exited", SD_BUS_ARGS("i", code, "i", status, "s", result), 0),
        SD_BUS_VTABLE_END,
};

static int find(sd_bus *bus, const char *path, const char *interface, void *userdata, void **ret_found,
                sd_bus_error *error) {
        Connection *connection = userdata;
        _cleanup_free_ char *name = NULL;
        Container *container;
        int r;

        r = sd_bus_path_decode(path, BERTH_CONTAINER_PREFIX, &name);
        if (r <= 0)
                return r;
        container = manager_get(connection_manager(connection), name);
        if (!container)
                return 0;
        *ret_found = container;
        return 1;
}

static int enumerate(sd_bus *bus, const char *prefix, void *userdata, char ***ret_nodes,
                     sd_bus_error *error) {
        Connection *connection = userdata;
        _cleanup_strv_ char **nodes = NULL;
        Container *c;
        int r;

        TAILQ_FOREACH(c, &connection_manager(connection)->containers, link) {
                _cleanup_free_ char *path = NULL;

                if (!c->linked)
                        continue;
                r = container_bus_path(c, &path);
                if (r < 0)
                        return r;
                r = strv_append(&nodes, path);
                if (r < 0)
                        return r;
        }
        *ret_nodes = TAKE_PTR(nodes);
        return 1;
}

int container_bus_attach(Connection *connection) {
        sd_bus *bus = connection_bus(connection);
        int r;

        r = sd_bus_add_fallback_vtable(bus, NULL, BERTH_CONTAINER_PREFIX, BERTH_INTERFACE_CONTAINER,
                                       container_vtable, find, connection);
        if (r < 0)
                return r;
        return sd_bus_add_node_enumerator(bus, NULL, BERTH_CONTAINER_PREFIX, enumerate, connection);
}

/* ---- signals ---------------------------------------------------------------------------------------------------- */

void container_bus_changed(Connection *connection, Container *container, const char *const *properties) {
        _cleanup_free_ char *path = NULL;

        if (container->linked && container_bus_path(container, &path) >= 0)
                (void) sd_bus_emit_properties_changed_strv(connection_bus(connection), path,
                                                           BERTH_INTERFACE_CONTAINER, (char **) properties);
}

void container_bus_started(Connection *connection, Container *container) {
        _cleanup_free_ char *path = NULL;

        if (container_bus_path(container, &path) >= 0)
                (void) sd_bus_emit_signal(connection_bus(connection), path, BERTH_INTERFACE_CONTAINER,
                                          "Started", "u", (uint32_t) container_pid(container));
}

void container_bus_exited(Connection *connection, Container *container) {
        _cleanup_free_ char *path = NULL;

        if (container_bus_path(container, &path) >= 0)
                (void) sd_bus_emit_signal(connection_bus(connection), path, BERTH_INTERFACE_CONTAINER,
                                          "Exited", "iis", container->init->exit_code,
                                          container->init->exit_status,
                                          process_result_to_string(container->init->result));
}
