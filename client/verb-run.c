/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/connection.h"
#include "client/foreground.h"
#include "client/globals.h"
#include "client/spec-args.h"
#include "interfaces/names.h"

int verb_run(Globals *globals, int argc, char *argv[], sd_bus_error *error) {
        _cleanup_bus_message_ sd_bus_message *call = NULL;
        _cleanup_connection_ Connection *connection = NULL;
        _cleanup_spec_args_ SpecArgs args = {};
        bool terminal;
        int r;

        r = spec_args_parse(SPEC_ARGS_RUN, globals, argc, argv, &args, error);
        if (r < 0)
                return r;
        terminal = args.terminal < 0 ? foreground_on_terminal() : args.terminal > 0;
        r = connection_open(globals, &connection, error);
        if (r < 0)
                return r;
        r = connection_new_call(connection, BERTH_PATH, BERTH_INTERFACE_MANAGER, "RunContainer", &call);
        if (r < 0)
                return r;
        r = sd_bus_message_append(call, "s", args.name);
        if (r < 0)
                return r;
        r = spec_args_append(&args, terminal, call);
        if (r < 0)
                return r;
        r = foreground_append_options(call, terminal);
        if (r < 0)
                return r;
        return foreground_run(globals, connection, call, NULL, BERTH_INTERFACE_CONTAINER, terminal, error);
}
