/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/connection.h"
#include "client/globals.h"
#include "client/output.h"
#include "interfaces/names.h"

static const char usage[] = "berthctl show NAME\n"
                            "\n"
                            "Prints all properties of a container, one on a line.\n";

static int print_json(const Globals *globals, sd_bus_message *reply, sd_bus_error *error) {
        Jansson jansson;
        json_t *value;
        int r;

        r = library_jansson(&jansson, error);
        if (r < 0)
                return r;
        r = output_json_value(&jansson, reply, &value);
        if (r < 0)
                return r;
        return output_json(globals, &jansson, value);
}

static int print_text(sd_bus_message *reply) {
        const char *key;
        int r;

        r = sd_bus_message_enter_container(reply, 'a', "{sv}");
        if (r < 0)
                return r;
        while ((r = sd_bus_message_enter_container(reply, 'e', "sv")) > 0) {
                r = sd_bus_message_read(reply, "s", &key);
                if (r < 0)
                        return r;
                (void) printf("%s=", key);
                r = output_text_value(stdout, reply);
                if (r < 0)
                        return r;
                (void) putchar('\n');
                r = sd_bus_message_exit_container(reply);
                if (r < 0)
                        return r;
        }
        return r;
}

int verb_show(Globals *globals, int argc, char *argv[], sd_bus_error *error) {
        _cleanup_bus_message_ sd_bus_message *call = NULL, *reply = NULL;
        _cleanup_connection_ Connection *connection = NULL;
        _cleanup_free_ char *path = NULL;
        int r;

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
        r = connection_new_call(connection, path, "org.freedesktop.DBus.Properties", "GetAll", &call);
        if (r < 0)
                return r;
        r = sd_bus_message_append(call, "s", BERTH_INTERFACE_CONTAINER);
        if (r < 0)
                return r;
        r = connection_call(connection, call, &reply, error);
        if (r < 0)
                return r;
        if (globals->json != JSON_MODE_OFF)
                return print_json(globals, reply, error);
        return print_text(reply);
}
