/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdio.h>

#include "client/each.h"
#include "client/exit-status.h"
#include "client/globals.h"
#include "client/output.h"

static const char usage[] =
        "berthctl wait NAME…\n"
        "\n"
        "Waits until containers have ended and prints the exit status of each on a line, 128+n\n"
        "for signal n.\n";

/* The cells of one row: name, code, status, result. */
typedef struct Ended {
        char code[16], status[16];
        const char *result;
} Ended;

static int print_json(const Globals *globals, char *const *names, sd_bus_message **replies, size_t n,
                      sd_bus_error *error) {
        static const OutputColumn columns[] = {
                { "NAME" },
                { "CODE", .number = true },
                { "STATUS", .number = true },
                { "RESULT" },
        };
        _cleanup_free_ const char **cells = NULL;
        _cleanup_free_ Ended *ended = NULL;
        size_t rows = 0;
        int r;

        cells = calloc(n * ELEMENTSOF(columns), sizeof(*cells));
        ended = calloc(n, sizeof(*ended));
        if (!cells || !ended)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                const char **row = cells + rows * ELEMENTSOF(columns);
                int code, status;

                if (!replies[i])
                        continue;
                r = sd_bus_message_read(replies[i], "iis", &code, &status, &ended[i].result);
                if (r < 0)
                        return r;
                (void) snprintf(ended[i].code, sizeof(ended[i].code), "%d", code);
                (void) snprintf(ended[i].status, sizeof(ended[i].status), "%d", status);
                row[0] = names[i];
                row[1] = ended[i].code;
                row[2] = ended[i].status;
                row[3] = ended[i].result;
                rows++;
        }
        return output_table(globals, columns, ELEMENTSOF(columns), cells, rows, error);
}

static int print_text(sd_bus_message **replies, size_t n) {
        const char *result;
        int code, status, r;

        for (size_t i = 0; i < n; i++) {
                if (!replies[i])
                        continue;
                r = sd_bus_message_read(replies[i], "iis", &code, &status, &result);
                if (r < 0)
                        return r;
                (void) printf("%d\n", exit_status(code, status, result));
        }
        return 0;
}

int verb_wait(Globals *globals, int argc, char *argv[], sd_bus_error *error) {
        _cleanup_connection_ Connection *connection = NULL;
        _cleanup_free_ sd_bus_message **replies = NULL;
        int failed, r;
        size_t n;

        r = globals_parse(globals, argc, argv, 1, -1, usage, error);
        if (r < 0)
                return r;
        argv += r;
        n = (size_t) (argc - r);
        replies = calloc(n, sizeof(*replies));
        if (!replies)
                return -ENOMEM;
        r = connection_open(globals, &connection, error);
        if (r < 0)
                return r;
        failed = each_call(connection, argv, n, "Wait", NULL, NULL, replies, error);
        if (failed >= 0 && globals->json != JSON_MODE_OFF)
                r = print_json(globals, argv, replies, n, error);
        else if (failed >= 0 && !globals->quiet)
                r = print_text(replies, n);
        for (size_t i = 0; i < n; i++)
                (void) sd_bus_message_unref(replies[i]);
        return r < 0 ? r : failed;
}
