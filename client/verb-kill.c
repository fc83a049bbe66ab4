/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <signal.h>

#include "client/each.h"
#include "client/globals.h"
#include "client/parse.h"

static const char usage[] = "berthctl kill [-s SIGNAL] NAME…\n"
                            "\n"
                            "Sends a signal to the first process of each container.\n"
                            "\n"
                            "  -s, --signal SIGNAL   its name or number (default: KILL)\n";

static int append(sd_bus_message *call, void *userdata) {
        return sd_bus_message_append(call, "i", *(int *) userdata);
}

int verb_kill(Globals *globals, int argc, char *argv[], sd_bus_error *error) {
        static const struct option options[] = {
                GLOBAL_LONG_OPTIONS,
                { "signal", required_argument, NULL, 's' },
                {},
        };
        _cleanup_connection_ Connection *connection = NULL;
        int signal = SIGKILL, c, r;

        optind = 0;
        opterr = 0;
        while ((c = getopt_long(argc, argv, ":" GLOBAL_SHORT_OPTIONS "s:", options, NULL)) >= 0)
                if (c == 's') {
                        if (parse_signal(optarg, &signal) < 0)
                                return usage_error(error, "-s %s: not a signal", optarg);
                } else {
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
        return each_call(connection, argv + optind, (size_t) (argc - optind), "Signal", append, &signal,
                         NULL, error);
}
