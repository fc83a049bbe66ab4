/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/connection.h"
#include "client/foreground.h"
#include "client/globals.h"
#include "client/spec-args.h"
#include "interfaces/names.h"

/* One a{sv} for Exec: the process part of a spec and the options of a start. */
static int append_process(const SpecArgs *args, bool terminal, sd_bus_message *call) {
        int r;

        r = sd_bus_message_open_container(call, 'a', "{sv}");
        if (r < 0)
                return r;
        r = spec_args_append_process(args, terminal, call);
        if (r < 0)
                return r;
        r = foreground_append_entries(call, terminal);
        if (r < 0)
                return r;
        return sd_bus_message_close_container(call);
}

int verb_exec(Globals *globals, int argc, char *argv[], sd_bus_error *error) {
        _cleanup_bus_message_ sd_bus_message *call = NULL;
        _cleanup_connection_ Connection *connection = NULL;
        _cleanup_spec_args_ SpecArgs args = {};
        _cleanup_free_ char *path = NULL;
        bool terminal;
        int r;

        r = spec_args_parse(SPEC_ARGS_EXEC, globals, argc, argv, &args, error);
        if (r < 0)
                return r;
        terminal = args.terminal < 0 ? foreground_on_terminal() : args.terminal > 0;
        r = connection_open(globals, &connection, error);
        if (r < 0)
                return r;
        r = connection_get_container(connection, args.name, &path, error);
        if (r < 0)
                return r;
        r = connection_new_call(connection, path, BERTH_INTERFACE_CONTAINER, "Exec", &call);
        if (r < 0)
                return r;
        r = append_process(&args, terminal, call);
        if (r < 0)
                return r;
        return foreground_run(globals, connection, call, NULL, BERTH_INTERFACE_PROCESS, terminal, error);
}
