/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/connection.h"
#include "client/foreground.h"
#include "client/globals.h"
#include "interfaces/names.h"

static const char usage[] =
        "berthctl start NAME\n"
        "\n"
        "Starts a container. One with a terminal has it here until it ends, as with run; one\n"
        "without goes on by itself.\n";

int verb_start(Globals *globals, int argc, char *argv[], sd_bus_error *error) {
        _cleanup_bus_message_ sd_bus_message *call = NULL;
        _cleanup_connection_ Connection *connection = NULL;
        _cleanup_free_ char *path = NULL;
        int terminal, r;

        r = globals_parse(globals, argc, argv, 1, 1, usage, error);
        if (r < 0)
                return r;
        argv += r;
        r = connection_open(globals, &connection, error);
        if (r < 0)
                return r;
        r = connection_get_container(connection, argv[0], &path, error);
        if (r < 0)
                return r;
        r = sd_bus_get_property_trivial(connection->bus, BERTH_BUS_NAME, path, BERTH_INTERFACE_CONTAINER,
                                        "Terminal", error, 'b', &terminal);
        if (r < 0)
                return connection_explain(connection, r, error);
        r = connection_new_call(connection, path, BERTH_INTERFACE_CONTAINER, "Start", &call);
        if (r < 0)
                return r;
        if (terminal) {
                r = foreground_append_options(call, true);
                if (r < 0)
                        return r;
                return foreground_run(globals, connection, call, path, BERTH_INTERFACE_CONTAINER, true,
                                      error);
        }
        r = sd_bus_message_append(call, "a{sv}", 0);
        if (r < 0)
                return r;
        return connection_call(connection, call, NULL, error);
}
