/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* berthctl: the table of verbs, the options before them, and the one place where an error is printed. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>

#include "client/globals.h"
#include "util/cleanup.h"

static const struct {
        const char *name;
        Verb verb;
        bool direct; /* makes sense with --direct */
} verbs[] = {
        { "run", verb_run, true }, { "create", verb_create }, { "start", verb_start }, { "exec", verb_exec },
        { "list", verb_list },     { "show", verb_show },     { "kill", verb_kill },   { "stop", verb_stop },
        { "resize", verb_resize }, { "wait", verb_wait },     { "rm", verb_rm },
};

static const char usage[] =
        "berthctl [OPTION…] VERB [ARGUMENT…]\n"
        "\n"
        "  run ROOT COMMAND…         run a program in a new container, here\n"
        "  create ROOT COMMAND…      make a container and start nothing\n"
        "  start NAME                start it\n"
        "  exec NAME COMMAND…        run another program in it, here\n"
        "  list                      all containers\n"
        "  show NAME                 one container's properties\n"
        "  kill [-s SIGNAL] NAME…    send a signal\n"
        "  stop [-t SECONDS] NAME…   end containers in good order\n"
        "  resize NAME ROWS COLUMNS  set a terminal's size\n"
        "  wait NAME…                wait for the end and print exit statuses\n"
        "  rm [-f] NAME…             remove containers\n"
        "\n"
        "      --direct              with a berthd of one's own, no bus and no systemd (run)\n"
        "      --address ADDRESS     a berthd at a D-Bus address, not on the system bus\n"
        "      --json short|pretty|off\n"
        "  -q, --quiet               print less\n"
        "      --no-pager            accepted; nothing is paged\n"
        "  -h, --help                this, or a verb's own options after the verb\n"
        "      --version\n";

/* Descriptors 0, 1 and 2 are open: else the next file opened would be taken for one of them. */
static int open_standard_streams(void) {
        int fd;

        do {
                fd = open("/dev/null", O_RDWR | O_NOCTTY);
                if (fd < 0)
                        return -errno;
        } while (fd <= STDERR_FILENO);
        (void) close(fd);
        return 0;
}

static int dispatch(Globals *globals, int argc, char *argv[], sd_bus_error *error) {
        static const struct option options[] = { GLOBAL_LONG_OPTIONS, {} };
        int c, r;

        opterr = 0;
        while ((c = getopt_long(argc, argv, "+:" GLOBAL_SHORT_OPTIONS, options, NULL)) >= 0) {
                r = globals_option(globals, c, argv, usage, error);
                if (r < 0)
                        return r;
        }
        argc -= optind;
        argv += optind;
        if (argc == 0)
                return usage_error(error, "which verb? berthctl --help lists them");
        if (strcmp(argv[0], "help") == 0)
                return globals_option(globals, 'h', argv, usage, error);
        for (size_t i = 0; i < ELEMENTSOF(verbs); i++)
                if (strcmp(argv[0], verbs[i].name) == 0) {
                        globals->direct_allowed = verbs[i].direct;
                        return verbs[i].verb(globals, argc, argv, error);
                }
        return usage_error(error, "there is no verb %s; berthctl --help lists them", argv[0]);
}

/* One line, and no control characters: a message may quote what somebody else named. */
static void print_error(const sd_bus_error *error, int r) {
        const char *text = error->message ?: error->name ?: strerror(-r);

        (void) fputs("berthctl: ", stderr);
        for (; *text; text++)
                (void) fputc(iscntrl((unsigned char) *text) ? '?' : *text, stderr);
        (void) fputc('\n', stderr);
}

int main(int argc, char *argv[]) {
        _cleanup_bus_error_ sd_bus_error error = SD_BUS_ERROR_NULL;
        Globals globals = {};
        int r;

        if (open_standard_streams() < 0)
                return EXIT_BERTH;
        /* For the widths of characters in tables. */
        (void) setlocale(LC_CTYPE, "");
        r = dispatch(&globals, argc, argv, &error);
        if (r == GLOBALS_DONE)
                r = 0;
        else if (r < 0) {
                print_error(&error, r);
                r = globals_exit_status(&error);
        }
        if (fflush(stdout) != 0 && r == 0) {
                (void) fprintf(stderr, "berthctl: can't write: %s\n", strerror(errno));
                r = EXIT_BERTH;
        }
        return r;
}
