/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>

#include "client/connection.h"
#include "client/globals.h"
#include "client/output.h"
#include "client/spec-args.h"
#include "interfaces/names.h"

static int print_name(const Globals *globals, const char *path, sd_bus_error *error) {
        static const OutputColumn columns[] = { { "NAME" }, { "PATH" } };
        _cleanup_free_ char *name = NULL;
        int r;

        r = sd_bus_path_decode(path, BERTH_CONTAINER_PREFIX, &name);
        if (r <= 0)
                return r < 0 ? r : -EBADMSG;
        if (globals->json != JSON_MODE_OFF)
                return output_table(globals, columns, ELEMENTSOF(columns), (const char *[]) { name, path },
                                    1, error);
        return puts(name) < 0 ? -EIO : 0;
}

int verb_create(Globals *globals, int argc, char *argv[], sd_bus_error *error) {
        _cleanup_bus_message_ sd_bus_message *call = NULL, *reply = NULL;
        _cleanup_connection_ Connection *connection = NULL;
        _cleanup_spec_args_ SpecArgs args = {};
        const char *path;
        int r;

        r = spec_args_parse(SPEC_ARGS_CREATE, globals, argc, argv, &args, error);
        if (r < 0)
                return r;
        r = connection_open(globals, &connection, error);
        if (r < 0)
                return r;
        r = connection_new_call(connection, BERTH_PATH, BERTH_INTERFACE_MANAGER, "CreateContainer", &call);
        if (r < 0)
                return r;
        r = sd_bus_message_append(call, "s", args.name);
        if (r < 0)
                return r;
        r = spec_args_append(&args, args.terminal > 0, call);
        if (r < 0)
                return r;
        r = connection_call(connection, call, &reply, error);
        if (r < 0)
                return r;
        r = sd_bus_message_read(reply, "o", &path);
        if (r < 0)
                return r;
        return globals->quiet ? 0 : print_name(globals, path, error);
}
