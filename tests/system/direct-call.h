/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Calls of org.berth1 as a test writes them down. */
#pragma once

#include "tests/system/direct.h"

#define WORDS(...) ((const char *const[]) { __VA_ARGS__, NULL })
#define SH(command) WORDS("sh", "-c", command)

typedef struct CallMount {
        const char *destination, *type, *source;
        const char *const *options;
} CallMount;

/* A spec and the options of its start; what is zero or NULL is left out. */
typedef struct Call {
        const char *root; /* NULL: the fixture's */
        const char *const *command;
        const char *const *environment,
                *const *groups, *const *capabilities, *const *add_capabilities, *const *drop_capabilities;
        const char *user, *working_directory, *hostname, *network, *seccomp, *slice;
        bool terminal, read_only, ephemeral, no_new_privileges, auto_remove;
        const CallMount *mounts;
        size_t n_mounts;
        const char *limit; /* a name of ResourceLimits */
        uint64_t limit_soft, limit_hard;
        const int *oom_score_adjust;
        int stop_signal;
        uint64_t timeout_start_usec, timeout_stop_usec, runtime_max_usec, memory_max, tasks_max;
        const char *const *annotations; /* key, value, key, value, … */

        const char *on_disconnect;
        unsigned rows, columns;
        bool sized;                 /* send the size even when it is 0 */
        const int *stdio;           /* three descriptors; negative: not given */
        const char *const *streams; /* three words, for those that have no descriptor; NULL: not given */
        const int *numbered;        /* pairs of FileDescriptors: number, descriptor, …, -1 */
} Call;

/* How a run ended. */
typedef struct End {
        int code, status;
        char result[32];
} End;

/* A call of Manager's, not sent: CreateContainer or RunContainer. */
sd_bus_message *call_new(const Direct *d, sd_bus *bus, const char *member, const char *name,
                         const Call *call);

/* RunContainer. 0, and the master (-EBADF without a terminal; *ret_master may be NULL) and the object's path; or
 * negative errno and *error. */
int call_run(const Direct *d, sd_bus *bus, const char *name, const Call *call, int *ret_master,
             char **ret_path, sd_bus_error *error);

/* The same, and it must succeed; the path is kept until the next 63 calls. */
const char *must_run(const Direct *d, sd_bus *bus, const char *name, const Call *call, int *ret_master);

/* The same for a program with pipes, by RunContainer, or by Exec where `container` is the path of one: their ends in
 * ret_ends[], -EBADF where there is none. */
const char *must_run_piped(const Direct *d, sd_bus *bus, const char *name, const Call *call,
                           int ret_ends[3]);
const char *must_exec_piped(sd_bus *bus, const char *container, const Call *call, int ret_ends[3]);

/* The same, and it must fail, with this name; returns the message, kept until the next call. */
const char *must_fail(const Direct *d, sd_bus *bus, const char *name, const Call *call,
                      const char *error_name);

/* Exec in the container at path: not sent; must succeed, the process' path is kept until the next 63 calls; must fail.
 * And the end of a process. */
sd_bus_message *exec_new(sd_bus *bus, const char *path, const Call *call);
const char *must_exec(sd_bus *bus, const char *path, const Call *call, int *ret_master);
const char *exec_must_fail(sd_bus *bus, const char *path, const Call *call, const char *error_name);
End process_must_wait(sd_bus *bus, const char *path);

/* CreateContainer, which must succeed. */
const char *must_create(const Direct *d, sd_bus *bus, const char *name, const Call *call);

/* Methods of a container. */
int call_container(sd_bus *bus, const char *path, const char *member, sd_bus_error *error, const char *types,
                   ...);
void must_call(sd_bus *bus, const char *path, const char *member, const char *types, ...);
int must_start(sd_bus *bus, const char *path); /* the master, or -EBADF */
int must_start_sized(sd_bus *bus, const char *path, unsigned rows, unsigned columns); /* 0×0: unknown */
End must_wait(sd_bus *bus, const char *path);
void must_remove(sd_bus *bus, const char *path);

/* The object's path. */
const char *path_of(const char *name);

/* Properties of a container. */
int get_i(sd_bus *bus, const char *path, const char *property);
uint32_t get_u(sd_bus *bus, const char *path, const char *property);
uint16_t get_q(sd_bus *bus, const char *path, const char *property);
const char *get_s(sd_bus *bus, const char *path, const char *property); /* kept until the next call */

/* Number of containers that ListContainers shows. */
size_t count_containers(sd_bus *bus);

/* Runs call's command without a terminal, standard output and error to a pipe, to its end, and removes it. The text is
 * malloced. The start must succeed. */
char *capture(const Direct *d, sd_bus *bus, const Call *call, End *ret_end);

/* The same for a command of sh, which must end with 0. */
char *capture_sh(const Direct *d, const Call *call, const char *command);
