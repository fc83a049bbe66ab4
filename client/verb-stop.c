/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdint.h>

#include "client/each.h"
#include "client/globals.h"
#include "client/parse.h"

static const char usage[] =
        "berthctl stop [-t SECONDS] NAME…\n"
        "\n"
        "Ends containers: their stop signal first, SIGKILL when that took too long. Returns when\n"
        "all are gone.\n"
        "\n"
        "  -t, --time SECONDS   how long is too long (default: the container's; 0: kill at once)\n";

static int append(sd_bus_message *call, void *userdata) {
        return sd_bus_message_append(call, "t", *(uint64_t *) userdata);
}

int verb_stop(Globals *globals, int argc, char *argv[], sd_bus_error *error) {
        static const struct option options[] = {
                GLOBAL_LONG_OPTIONS,
                { "time", required_argument, NULL, 't' },
                { "timeout", required_argument, NULL, 't' },
                {},
        };
        _cleanup_connection_ Connection *connection = NULL;
        /* All ones: as the container says. That is infinity elsewhere, so infinity here is one less. */
        uint64_t timeout = UINT64_MAX;
        int c, r;

        optind = 0;
        opterr = 0;
        while ((c = getopt_long(argc, argv, ":" GLOBAL_SHORT_OPTIONS "t:", options, NULL)) >= 0)
                if (c == 't') {
                        if (parse_seconds(optarg, &timeout) < 0)
                                return usage_error(error, "-t %s: not a number of seconds", optarg);
                        if (timeout == PARSE_INFINITY)
                                timeout--;
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
        return each_call(connection, argv + optind, (size_t) (argc - optind), "Stop", append, &timeout, NULL,
                         error);
}
