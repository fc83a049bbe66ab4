/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/globals.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "config.h"
#include "interfaces/names.h"

int usage_error(sd_bus_error *error, const char *format, ...) {
        va_list ap;

        va_start(ap, format);
        (void) sd_bus_error_setfv(error, BERTH_ERROR_INVALID_ARGS, format, ap);
        va_end(ap);
        return -EINVAL;
}

static int unknown_option(int c, char *argv[], sd_bus_error *error) {
        /* getopt tells a short option by optopt; of a long one it only tells where it has been. */
        if (c == ':')
                return usage_error(error, "%s: option %s needs a value", argv[0], argv[optind - 1]);
        if (optopt > 0 && optopt < 0x100)
                return usage_error(error, "%s: there is no option -%c; try --help", argv[0], optopt);
        if (optopt > 0)
                return usage_error(error, "%s: option %s takes no value", argv[0], argv[optind - 1]);
        return usage_error(error, "%s: there is no option %s, or it is short for several; try --help",
                           argv[0], argv[optind - 1]);
}

static int set_json(Globals *globals, const char *mode, sd_bus_error *error) {
        if (strcmp(mode, "off") == 0)
                globals->json = JSON_MODE_OFF;
        else if (strcmp(mode, "short") == 0)
                globals->json = JSON_MODE_SHORT;
        else if (strcmp(mode, "pretty") == 0)
                globals->json = JSON_MODE_PRETTY;
        else
                return usage_error(error, "--json=%s: it is short, pretty or off", mode);
        return 0;
}

int globals_option(Globals *globals, int c, char *argv[], const char *usage, sd_bus_error *error) {
        switch (c) {
        case 'h':
                (void) fputs(usage, stdout);
                return GLOBALS_DONE;
        case OPTION_VERSION:
                (void) puts("berthctl " BERTH_VERSION);
                return GLOBALS_DONE;
        case 'q':
                globals->quiet = true;
                return 0;
        case OPTION_DIRECT:
                globals->direct = true;
                return 0;
        case OPTION_ADDRESS:
                globals->address = optarg;
                return 0;
        case OPTION_JSON:
                return set_json(globals, optarg, error);
        case OPTION_NO_PAGER:
                /* What berthctl prints is never paged; scripts that say so for every tool are right all the
                 * same. */
                return 0;
        default:
                return unknown_option(c, argv, error);
        }
}

int globals_check_count(int argc, char *argv[], int min, int max, const char *usage, sd_bus_error *error) {
        int n = argc - optind;

        if (n >= min && (max < 0 || n <= max))
                return 0;
        return usage_error(error, "%s: %s argument; %.*s", argv[0], n < min ? "missing" : "one too many",
                           (int) strcspn(usage, "\n"), usage);
}

int globals_parse(Globals *globals, int argc, char *argv[], int min, int max, const char *usage,
                  sd_bus_error *error) {
        static const struct option options[] = { GLOBAL_LONG_OPTIONS, {} };
        int c, r;

        optind = 0;
        opterr = 0;
        while ((c = getopt_long(argc, argv, ":" GLOBAL_SHORT_OPTIONS, options, NULL)) >= 0) {
                r = globals_option(globals, c, argv, usage, error);
                if (r < 0)
                        return r;
        }
        r = globals_check_count(argc, argv, min, max, usage, error);
        return r < 0 ? r : optind;
}

int globals_exit_status(const sd_bus_error *error) {
        if (sd_bus_error_has_name(error, BERTH_ERROR_COMMAND_NOT_FOUND))
                return EXIT_NOT_FOUND;
        if (sd_bus_error_has_name(error, BERTH_ERROR_COMMAND_NOT_EXECUTABLE))
                return EXIT_NOT_EXECUTABLE;
        return EXIT_BERTH;
}
