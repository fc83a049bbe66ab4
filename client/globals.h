/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The options that every verb has, and the verbs' common form. An error is carried in an sd_bus_error,
 * whether it is the service's or berthctl's own; main.c prints it once. */
#pragma once

#include <getopt.h>
#include <stdbool.h>
#include <systemd/sd-bus.h>

#define EXIT_BERTH 125          /* berth failed */
#define EXIT_NOT_EXECUTABLE 126 /* the command can't be executed */
#define EXIT_NOT_FOUND 127      /* the command isn't there */
#define EXIT_SIGNAL 128         /* + n: signal n ended it */

typedef enum JsonMode { JSON_MODE_OFF, JSON_MODE_SHORT, JSON_MODE_PRETTY } JsonMode;

typedef struct Globals {
        bool direct;         /* fork a berthd of one's own */
        bool direct_allowed; /* the verb makes sense with it */
        bool quiet;
        const char *address; /* borrowed from argv, or NULL: the system bus */
        JsonMode json;
} Globals;

/* A verb: argv[0] is its name. Returns the exit status, or negative errno with *error set where a sentence
 * can be said. GLOBALS_DONE instead of either: help or version was asked for and printed. */
typedef int (*Verb)(Globals *globals, int argc, char *argv[], sd_bus_error *error);

int verb_create(Globals *globals, int argc, char *argv[], sd_bus_error *error);
int verb_exec(Globals *globals, int argc, char *argv[], sd_bus_error *error);
int verb_kill(Globals *globals, int argc, char *argv[], sd_bus_error *error);
int verb_list(Globals *globals, int argc, char *argv[], sd_bus_error *error);
int verb_resize(Globals *globals, int argc, char *argv[], sd_bus_error *error);
int verb_rm(Globals *globals, int argc, char *argv[], sd_bus_error *error);
int verb_run(Globals *globals, int argc, char *argv[], sd_bus_error *error);
int verb_show(Globals *globals, int argc, char *argv[], sd_bus_error *error);
int verb_start(Globals *globals, int argc, char *argv[], sd_bus_error *error);
int verb_stop(Globals *globals, int argc, char *argv[], sd_bus_error *error);
int verb_wait(Globals *globals, int argc, char *argv[], sd_bus_error *error);

enum {
        OPTION_DIRECT = 0x100,
        OPTION_ADDRESS,
        OPTION_JSON,
        OPTION_NO_PAGER,
        OPTION_VERSION,
        OPTION_VERB, /* the first that a verb may use for itself */
};

#define GLOBAL_SHORT_OPTIONS "hq"
#define GLOBAL_LONG_OPTIONS                                                                              \
        { "direct", no_argument, NULL, OPTION_DIRECT },                                                  \
                { "address", required_argument, NULL, OPTION_ADDRESS },                                  \
                { "json", required_argument, NULL, OPTION_JSON },                                        \
                { "no-pager", no_argument, NULL, OPTION_NO_PAGER }, { "quiet", no_argument, NULL, 'q' }, \
                { "help", no_argument, NULL, 'h' }, {                                                    \
                "version", no_argument, NULL, OPTION_VERSION                                             \
        }

#define GLOBALS_DONE (-0x10000)

/* Takes what getopt_long() returned when it is a global option or one of getopt's errors ('?' and ':',
 * opterr being 0). usage is printed for --help. Returns 0, GLOBALS_DONE, or negative errno with *error
 * set. */
int globals_option(Globals *globals, int c, char *argv[], const char *usage, sd_bus_error *error);

/* Parses the options of a verb that has none of its own, and checks the number of arguments left. Returns
 * the index of the first, GLOBALS_DONE, or negative errno. */
int globals_parse(Globals *globals, int argc, char *argv[], int min, int max, const char *usage,
                  sd_bus_error *error);

/* Checks that argc - optind is between min and max (max < 0: any number). 0 or negative errno with *error
 * set. */
int globals_check_count(int argc, char *argv[], int min, int max, const char *usage, sd_bus_error *error);

/* The exit status for a failure of berth's. */
int globals_exit_status(const sd_bus_error *error);

/* Sets *error to InvalidArgs with this sentence, returns -EINVAL. */
int usage_error(sd_bus_error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));
