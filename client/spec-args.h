/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The options that make a spec, shared by run, create and exec: from a command line to the spec's a{sv}. Values
 * that only the service can judge are passed on as they are; berthctl checks what it has to understand. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-bus.h>

#include "client/globals.h"
#include "util/cleanup.h"

/* What the verbs differ in: exec takes only what is about a process, and NAME in the place of ROOT. */
typedef enum SpecArgsVerb { SPEC_ARGS_RUN, SPEC_ARGS_CREATE, SPEC_ARGS_EXEC } SpecArgsVerb;

typedef struct SpecArgsMount {
        char *destination, *type, *source; /* owned */
        char **options;                    /* owned */
} SpecArgsMount;

typedef struct SpecArgsLimit {
        char *name; /* owned: the text before "=" */
        uint64_t soft, hard;
} SpecArgsLimit;

/* Strings that are not said to be owned are borrowed from argv. */
typedef struct SpecArgs {
        const char *name; /* "" without --name; exec: NAME */
        char *root;       /* owned, absolute; exec: NULL */
        char *const *command;
        int terminal; /* -t 1, -T 0, neither -1 */
        bool auto_remove, ephemeral, read_only, no_new_privileges;
        const char *working_directory, *user, *hostname, *network, *seccomp, *slice;
        char **environment;                                                     /* owned */
        char **groups, **capabilities, **add_capabilities, **drop_capabilities; /* owned */
        char **annotations;                                                     /* owned, KEY=VALUE */
        SpecArgsMount *mounts;                                                  /* owned */
        size_t n_mounts;
        SpecArgsLimit *limits; /* owned */
        size_t n_limits;
        bool has_capabilities, has_memory_max, has_tasks_max, has_oom_score_adjust;
        bool has_timeout_start, has_timeout_stop;
        uint64_t memory_max, tasks_max, timeout_start, timeout_stop;
        int oom_score_adjust;
        int stop_signal; /* 0: not given */
} SpecArgs;

void spec_args_done(SpecArgs *args);
#define _cleanup_spec_args_ _cleanup_(spec_args_done)

/* Parses the arguments of a verb; option parsing stops at ROOT or NAME. *ret is the caller's for
 * spec_args_done(). Returns 0, GLOBALS_DONE, or negative errno with *error set. */
int spec_args_parse(SpecArgsVerb verb, Globals *globals, int argc, char *argv[], SpecArgs *ret,
                    sd_bus_error *error);

/* Appends the spec as one a{sv}. With a terminal, TERM, COLORTERM and NO_COLOR are copied from the caller's
 * environment unless the options gave them. */
int spec_args_append(const SpecArgs *args, bool terminal, sd_bus_message *message);

/* Appends the entries about a process to an a{sv} that is open. */
int spec_args_append_process(const SpecArgs *args, bool terminal, sd_bus_message *message);
