/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdint.h>

#include "client/connection.h"
#include "client/globals.h"
#include "client/parse.h"
#include "interfaces/names.h"

static const char usage[] = "berthctl resize NAME ROWS COLUMNS\n"
                            "\n"
                            "Sets the size of a container's terminal.\n";

int verb_resize(Globals *globals, int argc, char *argv[], sd_bus_error *error) {
        _cleanup_bus_message_ sd_bus_message *call = NULL;
        _cleanup_connection_ Connection *connection = NULL;
        _cleanup_free_ char *path = NULL;
        uint64_t rows, columns;
        int r;

        r = globals_parse(globals, argc, argv, 3, 3, usage, error);
        if (r < 0)
                return r;
        argv += r;
        if (parse_u64(argv[1], UINT16_MAX, &rows) < 0 || parse_u64(argv[2], UINT16_MAX, &columns) < 0)
                return usage_error(error, "resize: %s × %s is no size: both are numbers up to 65535",
                                   argv[1], argv[2]);
        r = connection_open(globals, &connection, error);
        if (r < 0)
                return r;
        r = connection_get_container(connection, argv[0], &path, error);
        if (r < 0)
                return r;
        r = connection_new_call(connection, path, BERTH_INTERFACE_CONTAINER, "Resize", &call);
        if (r < 0)
                return r;
        r = sd_bus_message_append(call, "qq", (uint16_t) rows, (uint16_t) columns);
        if (r < 0)
                return r;
        return connection_call(connection, call, NULL, error);
}
