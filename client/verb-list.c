/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdint.h>

#include "client/connection.h"
#include "client/globals.h"
#include "client/output.h"
#include "interfaces/names.h"
#include "util/strv.h"

static const char usage[] = "berthctl list\n"
                            "\n"
                            "Lists all containers. With --quiet only their names.\n";

/* The cells of the table, row by row, as one list; PIDs as text. */
static int read_cells(sd_bus_message *reply, bool names_only, char ***ret) {
        _cleanup_strv_ char **cells = NULL;
        const char *name, *state, *unit, *path;
        uint32_t pid;
        int r;

        r = sd_bus_message_enter_container(reply, 'a', "(sssuo)");
        if (r < 0)
                return r;
        while ((r = sd_bus_message_read(reply, "(sssuo)", &name, &state, &unit, &pid, &path)) > 0) {
                char number[16];

                (void) snprintf(number, sizeof(number), "%u", pid);
                r = strv_append(&cells, name);
                if (names_only && r >= 0)
                        continue;
                r = r < 0 ? r : strv_append(&cells, state);
                r = r < 0 ? r : strv_append(&cells, pid > 0 ? number : "");
                r = r < 0 ? r : strv_append(&cells, unit);
                r = r < 0 ? r : strv_append(&cells, path);
                if (r < 0)
                        return r;
        }
        if (r < 0)
                return r;
        *ret = TAKE_PTR(cells);
        return 0;
}

int verb_list(Globals *globals, int argc, char *argv[], sd_bus_error *error) {
        static const OutputColumn columns[] = {
                { "NAME" },
                { "STATE" },
                { "PID", .number = true },
                { "UNIT" },
                { "PATH", .json_only = true },
        };
        _cleanup_bus_message_ sd_bus_message *call = NULL, *reply = NULL;
        _cleanup_connection_ Connection *connection = NULL;
        _cleanup_strv_ char **cells = NULL;
        _cleanup_free_ const char **view = NULL;
        bool names_only;
        size_t n;
        int r;

        r = globals_parse(globals, argc, argv, 0, 0, usage, error);
        if (r < 0)
                return r;
        r = connection_open(globals, &connection, error);
        if (r < 0)
                return r;
        r = connection_new_call(connection, BERTH_PATH, BERTH_INTERFACE_MANAGER, "ListContainers", &call);
        if (r < 0)
                return r;
        r = connection_call(connection, call, &reply, error);
        if (r < 0)
                return r;
        names_only = globals->quiet && globals->json == JSON_MODE_OFF;
        r = read_cells(reply, names_only, &cells);
        if (r < 0)
                return r;
        if (names_only) {
                for (char **name = cells; name && *name; name++)
                        (void) puts(*name);
                return 0;
        }
        /* An empty cell is one without a value: JSON's null. */
        n = strv_length(cells);
        view = calloc(n + 1, sizeof(*view));
        if (!view)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++)
                view[i] = *cells[i] ? cells[i] : NULL;
        return output_table(globals, columns, ELEMENTSOF(columns), view, n / ELEMENTSOF(columns), error);
}
