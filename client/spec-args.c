/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/spec-args.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "client/parse.h"
#include "client/spec-mount-args.h"
#include "util/strv.h"

#define MACHINES "/var/lib/machines/"

enum {
        OPTION_RM = OPTION_VERB,
        OPTION_NAME,
        OPTION_GROUP,
        OPTION_MOUNT,
        OPTION_EPHEMERAL,
        OPTION_READ_ONLY,
        OPTION_HOSTNAME,
        OPTION_NETWORK,
        OPTION_CAPS,
        OPTION_CAP_ADD,
        OPTION_CAP_DROP,
        OPTION_NO_NEW_PRIVILEGES,
        OPTION_SECCOMP,
        OPTION_ULIMIT,
        OPTION_MEMORY,
        OPTION_TASKS_MAX,
        OPTION_OOM_SCORE_ADJ,
        OPTION_STOP_SIGNAL,
        OPTION_STOP_TIMEOUT,
        OPTION_START_TIMEOUT,
        OPTION_SLICE,
        OPTION_ANNOTATION,
};

#define SPEC_USAGE                                                                           \
        "\n"                                                                                 \
        "ROOT is a directory; a name without a slash is looked for in /var/lib/machines.\n"  \
        "\n"                                                                                 \
        "  -t, --tty                 give the program a terminal\n"                          \
        "  -T, --no-tty              give it none\n"                                         \
        "  -i, --interactive         accepted; standard input is always passed on\n"         \
        "      --name NAME           name the container (else one is made up)\n"             \
        "      --rm                  remove the container when it has ended\n"               \
        "  -e, --env KEY[=VALUE]     set a variable, or pass the caller's on\n"              \
        "  -w, --workdir DIR         where the program starts\n"                             \
        "  -u, --user USER[:GROUP]   who it runs as: name or number\n"                       \
        "      --group GROUP         a further group\n"                                      \
        "  -v, --volume SRC:DST[:OPTIONS]  bind SRC on DST (OPTIONS: ro, …)\n"             \
        "      --mount type=T,src=S,dst=D[,OPTION…]  mount a file system or bind a path\n" \
        "      --ephemeral           keep no change to ROOT\n"                               \
        "      --read-only           allow no change to ROOT\n"                              \
        "      --hostname NAME       the host name inside (default: the container's name)\n" \
        "      --network private|host\n"                                                     \
        "      --caps LIST           exactly these capabilities\n"                           \
        "      --cap-add LIST, --cap-drop LIST\n"                                            \
        "      --no-new-privileges   set-user-ID programs gain nothing\n"                    \
        "      --seccomp default|unconfined\n"                                               \
        "      --ulimit NAME=SOFT[:HARD]\n"                                                  \
        "  -m, --memory SIZE         limit of memory (K, M, G, T)\n"                         \
        "      --tasks-max N, --pids-limit N\n"                                              \
        "      --oom-score-adj N\n"                                                          \
        "      --stop-signal SIGNAL  what stop sends first (default: TERM)\n"                \
        "      --stop-timeout SECS   how long it waits then\n"                               \
        "      --start-timeout SECS  how long a start may take\n"                            \
        "      --slice SLICE         the systemd slice for its scope\n"                      \
        "      --annotation KEY=VALUE\n"                                                     \
        "\n"                                                                                 \
        "and the global options, see berthctl --help and berthctl(1).\n"

static const char usage_exec[] =
        "berthctl exec [OPTION…] NAME [--] COMMAND [ARGUMENT…]\n"
        "\n"
        "Runs another program in the running container NAME, here. What is not given is the container's.\n"
        "\n"
        "  -t, --tty                 give the program a terminal\n"
        "  -T, --no-tty              give it none\n"
        "  -i, --interactive         accepted; standard input is always passed on\n"
        "  -e, --env KEY[=VALUE]     set a variable, or pass the caller's on\n"
        "  -w, --workdir DIR         where the program starts\n"
        "  -u, --user USER[:GROUP]   who it runs as: name or number\n"
        "      --group GROUP         a further group\n"
        "      --caps LIST           exactly these capabilities\n"
        "      --cap-add LIST, --cap-drop LIST\n"
        "      --no-new-privileges   set-user-ID programs gain nothing\n"
        "      --seccomp default|unconfined\n"
        "      --ulimit NAME=SOFT[:HARD]\n"
        "      --oom-score-adj N\n"
        "      --start-timeout SECS  how long the start may take\n"
        "\n"
        "and the global options, see berthctl --help and berthctl(1).\n";
static const char usage_run[] = "berthctl run [OPTION…] ROOT [--] COMMAND [ARGUMENT…]\n" SPEC_USAGE;
static const char usage_create[] = "berthctl create [OPTION…] ROOT [--] COMMAND [ARGUMENT…]\n" SPEC_USAGE;

/* getopt stops at ROOT ('+'), so that COMMAND's options stay COMMAND's. */
#define EXEC_SHORT_OPTIONS "+:" GLOBAL_SHORT_OPTIONS "tTie:w:u:"
#define SHORT_OPTIONS EXEC_SHORT_OPTIONS "v:m:"

/* What is a process', of exec as of run and create. */
#define PROCESS_OPTIONS                                                                                \
        { "tty", no_argument, NULL, 't' }, { "no-tty", no_argument, NULL, 'T' },                       \
                { "interactive", no_argument, NULL, 'i' }, { "env", required_argument, NULL, 'e' },    \
                { "workdir", required_argument, NULL, 'w' }, { "user", required_argument, NULL, 'u' }, \
                { "group", required_argument, NULL, OPTION_GROUP },                                    \
                { "caps", required_argument, NULL, OPTION_CAPS },                                      \
                { "cap-add", required_argument, NULL, OPTION_CAP_ADD },                                \
                { "cap-drop", required_argument, NULL, OPTION_CAP_DROP },                              \
                { "no-new-privileges", no_argument, NULL, OPTION_NO_NEW_PRIVILEGES },                  \
                { "seccomp", required_argument, NULL, OPTION_SECCOMP },                                \
                { "ulimit", required_argument, NULL, OPTION_ULIMIT },                                  \
                { "oom-score-adj", required_argument, NULL, OPTION_OOM_SCORE_ADJ }, {                  \
                "start-timeout", required_argument, NULL, OPTION_START_TIMEOUT                         \
        }

static const struct option exec_options[] = { GLOBAL_LONG_OPTIONS, PROCESS_OPTIONS, {} };

static const struct option long_options[] = {
        GLOBAL_LONG_OPTIONS,
        PROCESS_OPTIONS,
        { "rm", no_argument, NULL, OPTION_RM },
        { "name", required_argument, NULL, OPTION_NAME },
        { "volume", required_argument, NULL, 'v' },
        { "mount", required_argument, NULL, OPTION_MOUNT },
        { "ephemeral", no_argument, NULL, OPTION_EPHEMERAL },
        { "read-only", no_argument, NULL, OPTION_READ_ONLY },
        { "hostname", required_argument, NULL, OPTION_HOSTNAME },
        { "network", required_argument, NULL, OPTION_NETWORK },
        { "memory", required_argument, NULL, OPTION_MEMORY },
        { "tasks-max", required_argument, NULL, OPTION_TASKS_MAX },
        { "pids-limit", required_argument, NULL, OPTION_TASKS_MAX },
        { "stop-signal", required_argument, NULL, OPTION_STOP_SIGNAL },
        { "stop-timeout", required_argument, NULL, OPTION_STOP_TIMEOUT },
        { "slice", required_argument, NULL, OPTION_SLICE },
        { "annotation", required_argument, NULL, OPTION_ANNOTATION },
        {},
};

void spec_args_done(SpecArgs *args) {
        free(args->root);
        (void) strv_free(args->environment);
        (void) strv_free(args->groups);
        (void) strv_free(args->capabilities);
        (void) strv_free(args->add_capabilities);
        (void) strv_free(args->drop_capabilities);
        (void) strv_free(args->annotations);
        for (size_t i = 0; i < args->n_mounts; i++)
                spec_args_mount_done(&args->mounts[i]);
        free(args->mounts);
        for (size_t i = 0; i < args->n_limits; i++)
                free(args->limits[i].name);
        free(args->limits);
        *args = (SpecArgs) {};
}

/* Appends the parts of a comma-separated list. */
static int append_list(char ***list, const char *text) {
        _cleanup_free_ char *copy = NULL;
        char *rest, *part;
        int r;

        rest = copy = strdup(text);
        if (!copy)
                return -ENOMEM;
        while ((part = strsep(&rest, ",")))
                if (*part) {
                        r = strv_append(list, part);
                        if (r < 0)
                                return r;
                }
        return 0;
}

static int add_environment(SpecArgs *args, const char *text, sd_bus_error *error) {
        _cleanup_free_ char *assignment = NULL;
        const char *value;

        if (!*text || *text == '=')
                return usage_error(error, "-e %s: a variable needs a name", text);
        if (strchr(text, '='))
                return strv_append(&args->environment, text);
        value = getenv(text);
        if (!value)
                return 0;
        if (asprintf(&assignment, "%s=%s", text, value) < 0)
                return -ENOMEM;
        return strv_append(&args->environment, assignment);
}

static int add_limit(SpecArgs *args, const char *text, sd_bus_error *error) {
        _cleanup_free_ char *name = NULL;
        SpecArgsLimit limit, *bigger;
        char *value, *hard;
        int r;

        name = strdup(text);
        if (!name)
                return -ENOMEM;
        value = strchr(name, '=');
        if (!value || value == name)
                return usage_error(error, "--ulimit %s: it is NAME=SOFT or NAME=SOFT:HARD", text);
        *value++ = 0;
        /* People write them as ulimit(1) and engines do, the service has them in capitals. */
        for (char *p = name; *p; p++)
                *p = (char) toupper((unsigned char) *p);
        hard = strchr(value, ':');
        if (hard)
                *hard++ = 0;
        r = parse_limit(value, &limit.soft);
        if (r >= 0)
                r = parse_limit(hard ?: value, &limit.hard);
        if (r < 0)
                return usage_error(error, "--ulimit %s: a limit is a number or unlimited", text);
        bigger = reallocarray(args->limits, args->n_limits + 1, sizeof(*bigger));
        if (!bigger)
                return -ENOMEM;
        args->limits = bigger;
        limit.name = TAKE_PTR(name);
        args->limits[args->n_limits++] = limit;
        return 0;
}

static int add_mount(SpecArgs *args, int c, const char *text, sd_bus_error *error) {
        SpecArgsMount mount = {}, *bigger;
        int r;

        bigger = reallocarray(args->mounts, args->n_mounts + 1, sizeof(*bigger));
        if (!bigger)
                return -ENOMEM;
        args->mounts = bigger;
        if (c == 'v')
                r = spec_args_parse_volume(text, &mount, error);
        else
                r = spec_args_parse_mount(text, &mount, error);
        if (r < 0)
                return r;
        args->mounts[args->n_mounts++] = mount;
        return 0;
}

static int bad_value(const char *option, const char *value, const char *wanted, sd_bus_error *error) {
        return usage_error(error, "--%s %s: not %s", option, value, wanted);
}

/* The options with a number. 1: it was one. */
static int take_number(SpecArgs *args, int c, const char *value, sd_bus_error *error) {
        switch (c) {
        case 'm':
        case OPTION_MEMORY:
                if (parse_size(value, &args->memory_max) < 0)
                        return bad_value("memory", value, "a size", error);
                args->has_memory_max = true;
                return 1;
        case OPTION_TASKS_MAX:
                if (parse_limit(value, &args->tasks_max) < 0)
                        return bad_value("tasks-max", value, "a number of tasks", error);
                args->has_tasks_max = true;
                return 1;
        case OPTION_OOM_SCORE_ADJ:
                if (parse_int(value, -1000, 1000, &args->oom_score_adjust) < 0)
                        return bad_value("oom-score-adj", value, "between -1000 and 1000", error);
                args->has_oom_score_adjust = true;
                return 1;
        case OPTION_STOP_SIGNAL:
                if (parse_signal(value, &args->stop_signal) < 0)
                        return bad_value("stop-signal", value, "a signal", error);
                return 1;
        case OPTION_STOP_TIMEOUT:
                if (parse_seconds(value, &args->timeout_stop) < 0)
                        return bad_value("stop-timeout", value, "a number of seconds", error);
                args->has_timeout_stop = true;
                return 1;
        case OPTION_START_TIMEOUT:
                if (parse_seconds(value, &args->timeout_start) < 0)
                        return bad_value("start-timeout", value, "a number of seconds", error);
                args->has_timeout_start = true;
                return 1;
        default:
                return 0;
        }
}

/* The options that are a list or have parts. 1: it was one. */
static int take_list(SpecArgs *args, int c, const char *value, sd_bus_error *error) {
        int r;

        switch (c) {
        case 'e':
                r = add_environment(args, value, error);
                break;
        case 'v':
        case OPTION_MOUNT:
                r = add_mount(args, c, value, error);
                break;
        case OPTION_GROUP:
                r = append_list(&args->groups, value);
                break;
        case OPTION_CAPS:
                args->has_capabilities = true;
                r = append_list(&args->capabilities, value);
                break;
        case OPTION_CAP_ADD:
                r = append_list(&args->add_capabilities, value);
                break;
        case OPTION_CAP_DROP:
                r = append_list(&args->drop_capabilities, value);
                break;
        case OPTION_ULIMIT:
                r = add_limit(args, value, error);
                break;
        case OPTION_ANNOTATION:
                if (!strchr(value, '='))
                        return usage_error(error, "--annotation %s: it is KEY=VALUE", value);
                r = strv_append(&args->annotations, value);
                break;
        default:
                return 0;
        }
        return r < 0 ? r : 1;
}

/* The options whose value is taken as it is. 1: it was one. */
static int take_plain(SpecArgs *args, int c, const char *value) {
        switch (c) {
        case 't':
                args->terminal = 1;
                return 1;
        case 'T':
                args->terminal = 0;
                return 1;
        case 'i':
                return 1;
        case 'w':
                args->working_directory = value;
                return 1;
        case 'u':
                args->user = value;
                return 1;
        case OPTION_RM:
                args->auto_remove = true;
                return 1;
        case OPTION_NAME:
                args->name = value;
                return 1;
        case OPTION_EPHEMERAL:
                args->ephemeral = true;
                return 1;
        case OPTION_READ_ONLY:
                args->read_only = true;
                return 1;
        case OPTION_HOSTNAME:
                args->hostname = value;
                return 1;
        case OPTION_NETWORK:
                args->network = value;
                return 1;
        case OPTION_NO_NEW_PRIVILEGES:
                args->no_new_privileges = true;
                return 1;
        case OPTION_SECCOMP:
                args->seccomp = value;
                return 1;
        case OPTION_SLICE:
                args->slice = value;
                return 1;
        default:
                return 0;
        }
}

static int set_root(SpecArgs *args, const char *text, sd_bus_error *error) {
        int r;

        if (!*text)
                return usage_error(error, "ROOT is empty: it is a directory, or a name in %s", MACHINES);
        if (strchr(text, '/') || strcmp(text, ".") == 0 || strcmp(text, "..") == 0)
                return spec_args_absolute(text, &args->root, error);
        r = asprintf(&args->root, MACHINES "%s", text);
        if (r < 0) {
                args->root = NULL;
                return -ENOMEM;
        }
        return 0;
}

/* ROOT or NAME, the first argument that is no option. */
static int take_subject(SpecArgsVerb verb, SpecArgs *args, int argc, char *argv[], sd_bus_error *error) {
        if (verb == SPEC_ARGS_EXEC) {
                if (optind >= argc)
                        return usage_error(
                                error, "exec: which container? berthctl exec [OPTION…] NAME [--] COMMAND…");
                args->name = argv[optind++];
                return 0;
        }
        if (optind >= argc)
                return usage_error(error, "%s: which ROOT? berthctl %s [OPTION…] ROOT [--] COMMAND…",
                                   argv[0], argv[0]);
        return set_root(args, argv[optind++], error);
}

int spec_args_parse(SpecArgsVerb verb, Globals *globals, int argc, char *argv[], SpecArgs *ret,
                    sd_bus_error *error) {
        _cleanup_spec_args_ SpecArgs args = { .name = "", .terminal = -1 };
        static const char *const usages[] = {
                [SPEC_ARGS_RUN] = usage_run,
                [SPEC_ARGS_CREATE] = usage_create,
                [SPEC_ARGS_EXEC] = usage_exec,
        };
        const struct option *options = verb == SPEC_ARGS_EXEC ? exec_options : long_options;
        const char *short_options = verb == SPEC_ARGS_EXEC ? EXEC_SHORT_OPTIONS : SHORT_OPTIONS;
        int c, r;

        optind = 0;
        opterr = 0;
        while ((c = getopt_long(argc, argv, short_options, options, NULL)) >= 0) {
                r = take_plain(&args, c, optarg);
                if (r == 0)
                        r = take_list(&args, c, optarg, error);
                if (r == 0)
                        r = take_number(&args, c, optarg, error);
                if (r == 0)
                        r = globals_option(globals, c, argv, usages[verb], error);
                if (r < 0)
                        return r;
        }
        r = take_subject(verb, &args, argc, argv, error);
        if (r < 0)
                return r;
        if (optind < argc && strcmp(argv[optind], "--") == 0)
                optind++;
        if (optind >= argc)
                return usage_error(error,
                                   "%s: which COMMAND? A directory names none: give one after %s, such as "
                                   "/bin/sh",
                                   argv[0], args.root ?: args.name);
        args.command = argv + optind;
        *ret = args;
        args = (SpecArgs) {};
        return 0;
}
