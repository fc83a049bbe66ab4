/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/each.h"
#include "client/globals.h"

static const char usage[] = "berthctl rm [-f] NAME…\n"
                            "\n"
                            "Removes containers that don't run.\n"
                            "\n"
                            "  -f, --force   also those that do: they are killed\n";

static int append(sd_bus_message *call, void *userdata) {
        return sd_bus_message_append(call, "b", *(int *) userdata);
}

int verb_rm(Globals *globals, int argc, char *argv[], sd_bus_error *error) {
        static const struct option options[] = {
                GLOBAL_LONG_OPTIONS,
                { "force", no_argument, NULL, 'f' },
                {},
        };
        _cleanup_connection_ Connection *connection = NULL;
        int force = 0, c, r;

        optind = 0;
        opterr = 0;
        while ((c = getopt_long(argc, argv, ":" GLOBAL_SHORT_OPTIONS "f", options, NULL)) >= 0)
                if (c == 'f')
                        force = 1;
                else {
                        r = globals_option(globals, c, argv, usage, error);
                        if (r < 0)
                                return r;
                }
        r = globals_check_count(argc, argv, 1, -1, usage, error);
        if (r < 0)
                return r;
        r = connection_open(globals, &connection, error);
        if (r < 0)
                return r;
        return each_call(connection, argv + optind, (size_t) (argc - optind), "Remove", append, &force, NULL,
                         error);
}
