/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The spec: what to run, as plain validated data. It comes from a{sv} (spec-bus.c), later from
 * config.json; the plan for a launch is made from it (plan.c). It knows no bus, no process and no file: a
 * path in it has been checked for its form only. org.berth1(5) documents every key. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <systemd/sd-bus.h>

#include "service/resources.h"
#include "util/cleanup.h"

#define SPEC_COMMAND_MAX 4096U      /* arguments, and variables of the environment */
#define SPEC_STRINGS_MAX (2U << 20) /* bytes of arguments and environment together */
#define SPEC_MOUNTS_MAX 1024U
#define SPEC_MOUNT_OPTIONS_MAX 256U
#define SPEC_GROUPS_MAX 65536U
#define SPEC_ANNOTATIONS_MAX 1024U
#define SPEC_INFINITY UINT64_MAX

typedef enum SpecNetwork {
        SPEC_NETWORK_PRIVATE,
        SPEC_NETWORK_HOST,
        _SPEC_NETWORK_MAX,
        _SPEC_NETWORK_INVALID = -EINVAL,
} SpecNetwork;

typedef enum SpecSeccomp {
        SPEC_SECCOMP_DEFAULT,
        SPEC_SECCOMP_UNCONFINED,
        _SPEC_SECCOMP_MAX,
        _SPEC_SECCOMP_INVALID = -EINVAL,
} SpecSeccomp;

/* A mount as in the OCI runtime spec, its options already read (spec-mount.c). */
typedef struct SpecMount {
        char *destination; /* owned, absolute, normalised: no "." or "..", no double slash */
        char *type;        /* owned; "bind" for a bind whatever was written */
        char *source;      /* owned; absolute for a bind */
        char *data;        /* owned: what is left for the file system, comma separated; or NULL */
        /* MOUNT_ATTR_*. Recursive (rro, rnosuid, …; 0 unless it is a bind): of the mount and all below,
         * put on first. The others: of the mount itself, put on last. */
        uint64_t attr_set, attr_clear;
        uint64_t attr_set_recursive, attr_clear_recursive;
        uint64_t propagation; /* MS_PRIVATE, MS_SLAVE, MS_SHARED, MS_UNBINDABLE, or 0 */
        bool propagation_recursive;
        bool bind, recursive;      /* recursive: rbind */
        bool superblock_read_only; /* "ro" on a file system that is not a bind */
} SpecMount;

typedef struct SpecAnnotation {
        char *key, *value; /* owned */
} SpecAnnotation;

typedef struct Spec {
        char **command;          /* owned, never empty once validated */
        char **environment;      /* owned, KEY=VALUE as given, without the defaults */
        char *working_directory; /* owned, absolute */
        char *user;              /* owned: a name, or NULL for uid and gid */
        uid_t uid;
        gid_t gid;
        bool has_gid;                /* "user:gid" or "uid:gid" */
        char **supplementary_groups; /* owned, names or numbers */
        char *hostname;              /* owned, or NULL: the container's name */
        bool terminal;
        char *root_directory; /* owned, absolute, normalised */
        bool read_only, ephemeral;
        SpecMount *mounts; /* owned, in the order given */
        size_t n_mounts;
        SpecNetwork network;
        bool user_namespace_host; /* UserNamespace=host was given: impossible where there always is one */
        uint64_t capabilities;    /* what the program gets, Add and Drop applied; bit n is capability n */
        uint64_t
                capabilities_named; /* of them, those asked for by name: a host without one refuses the spec */
        bool no_new_privileges;
        SpecSeccomp seccomp;
        struct rlimit limits[RLIM_NLIMITS];
        uint32_t limits_set; /* bit n: limits[n] was given */
        bool oom_score_adjust_set;
        int oom_score_adjust;
        int stop_signal;             /* SIGTERM */
        uint64_t timeout_start_usec; /* 30 s */
        uint64_t timeout_stop_usec;  /* 10 s */
        uint64_t runtime_max_usec;   /* SPEC_INFINITY: none */
        Resources resources;
        char *slice; /* owned, or NULL: berth.slice */
        bool auto_remove;
        SpecAnnotation *annotations; /* owned */
        size_t n_annotations;
} Spec;

/* A spec with every default and without command and root. NULL when out of memory. */
Spec *spec_new(void);
Spec *spec_free(Spec *spec);
DEFINE_CLEANUP(Spec *, spec_free);
#define _cleanup_spec_ _cleanup_(spec_freep)

/* The part of a container's spec that is the default for another process in it, as a spec of its own: environment,
 * working directory, user and groups, capabilities, limits, seccomp, OOM score, time-outs. -ENOMEM. */
int spec_copy_process(const Spec *spec, Spec **ret);

/* Checks what only the whole spec of such a process can tell: there is a Command, and its sizes are in bounds. */
int spec_validate_process(const Spec *spec, sd_bus_error *error);

/* Checks what only the whole spec can tell: RootDirectory and Command are there, the sizes of all strings
 * together. 0, or negative errno with InvalidSpec and the key in *error. */
int spec_validate(const Spec *spec, sd_bus_error *error);

/* Checks a container's name: 1 to 128 of [A-Za-z0-9_.+-], first a letter or digit, and short enough as a
 * unit's name. 0, or negative errno with InvalidName. */
int spec_validate_name(const char *name, sd_bus_error *error);

/* The setters that every face uses. Each takes the text of a key, checks it, and replaces what was there;
 * on an error *error has InvalidSpec and a sentence that names the key, and the spec is unchanged. */
int spec_set_root_directory(Spec *spec, const char *path, sd_bus_error *error);
int spec_set_working_directory(Spec *spec, const char *path, sd_bus_error *error);
int spec_set_command(Spec *spec, char *const *command, sd_bus_error *error);
int spec_set_environment(Spec *spec, char *const *environment, sd_bus_error *error);
int spec_set_user(Spec *spec, const char *text, sd_bus_error *error);
int spec_set_groups(Spec *spec, char *const *groups, sd_bus_error *error);
int spec_set_hostname(Spec *spec, const char *hostname, sd_bus_error *error);
int spec_set_slice(Spec *spec, const char *slice, sd_bus_error *error);
/* Network=path:… and a profile's path are NotSupported. */
int spec_set_network(Spec *spec, const char *network, sd_bus_error *error);
int spec_set_seccomp_profile(Spec *spec, const char *profile, sd_bus_error *error);
int spec_set_stop_signal(Spec *spec, int signal, sd_bus_error *error);
int spec_set_timeout_start(Spec *spec, uint64_t usec, sd_bus_error *error);
int spec_set_runtime_max(Spec *spec, uint64_t usec, sd_bus_error *error);
int spec_set_oom_score_adjust(Spec *spec, int value, sd_bus_error *error);
/* One of getrlimit(2)'s, with or without RLIMIT_. */
int spec_set_limit(Spec *spec, const char *name, uint64_t soft, uint64_t hard, sd_bus_error *error);
/* Appends; a key that is there already is an error. */
int spec_add_annotation(Spec *spec, const char *key, const char *value, sd_bus_error *error);

/* Reads the options of one mount (OCI's words) and appends it (spec-mount.c). Type, source and options
 * may be empty; without a source a new file system shows its type as one. */
int spec_add_mount(Spec *spec, const char *destination, const char *type, const char *source,
                   char *const *options, sd_bus_error *error);

/* Frees what a mount owns. */
void spec_mount_done(SpecMount *mount);

/* The capabilities of a list of names, with or without CAP_, in any case; `ALL` is every one the kernel
 * knows (spec-capability.c). An unknown name is InvalidSpec naming key and name. */
int spec_parse_capabilities(const char *key, char *const *names, uint64_t *ret, sd_bus_error *error);

/* What the three keys make of it together, in whatever order they came: `set` (the default set unless
 * Capabilities was given) with `add` and without `drop`. Dropping ALL leaves just those added by name,
 * adding ALL gives all but those dropped by name; one and the same capability in both is InvalidSpec
 * naming it. */
int spec_set_capabilities(Spec *spec, uint64_t set, uint64_t add, uint64_t drop, sd_bus_error *error);

/* The 14 that common engines give by default. */
uint64_t spec_default_capabilities(void);

const char *spec_network_to_string(SpecNetwork network);
SpecNetwork spec_network_from_string(const char *text);
const char *spec_seccomp_to_string(SpecSeccomp seccomp);
SpecSeccomp spec_seccomp_from_string(const char *text);
