/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/spec.h"

#include <limits.h>
#include <signal.h>
#include <string.h>

#include "interfaces/names.h"
#include "service/spec-check.h"
#include "util/path.h"
#include "util/quote.h"
#include "util/strv.h"
#include "util/unit-name.h"

#define NAME_MAX_LENGTH 128U
#define HOSTNAME_MAX_LENGTH 64U /* the kernel's (uts(7)) */
#define SIGNAL_MAX 64           /* the highest real-time signal of the kernel */

#define LETTERS_AND_DIGITS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

static const char *const network_table[_SPEC_NETWORK_MAX] = {
        [SPEC_NETWORK_PRIVATE] = "private",
        [SPEC_NETWORK_HOST] = "host",
};

static const char *const seccomp_table[_SPEC_SECCOMP_MAX] = {
        [SPEC_SECCOMP_DEFAULT] = "default",
        [SPEC_SECCOMP_UNCONFINED] = "unconfined",
};

static int lookup(const char *const *table, int n, const char *text) {
        for (int i = 0; i < n; i++)
                if (strcmp(table[i], text) == 0)
                        return i;
        return -EINVAL;
}

const char *spec_network_to_string(SpecNetwork network) {
        return network >= 0 && network < _SPEC_NETWORK_MAX ? network_table[network] : NULL;
}

SpecNetwork spec_network_from_string(const char *text) {
        return (SpecNetwork) lookup(network_table, _SPEC_NETWORK_MAX, text);
}

const char *spec_seccomp_to_string(SpecSeccomp seccomp) {
        return seccomp >= 0 && seccomp < _SPEC_SECCOMP_MAX ? seccomp_table[seccomp] : NULL;
}

SpecSeccomp spec_seccomp_from_string(const char *text) {
        return (SpecSeccomp) lookup(seccomp_table, _SPEC_SECCOMP_MAX, text);
}

Spec *spec_new(void) {
        _cleanup_spec_ Spec *spec = NULL;

        spec = calloc(1, sizeof(Spec));
        if (!spec)
                return NULL;
        spec->working_directory = strdup("/");
        if (!spec->working_directory)
                return NULL;
        spec->capabilities = spec_default_capabilities();
        spec->stop_signal = SIGTERM;
        spec->timeout_start_usec = 30ULL * 1000 * 1000;
        spec->timeout_stop_usec = 10ULL * 1000 * 1000;
        spec->runtime_max_usec = SPEC_INFINITY;
        resources_init(&spec->resources);
        return TAKE_PTR(spec);
}

Spec *spec_free(Spec *spec) {
        if (!spec)
                return NULL;
        strv_free(spec->command);
        strv_free(spec->environment);
        free(spec->working_directory);
        free(spec->user);
        strv_free(spec->supplementary_groups);
        free(spec->hostname);
        free(spec->root_directory);
        for (size_t i = 0; i < spec->n_mounts; i++)
                spec_mount_done(&spec->mounts[i]);
        free(spec->mounts);
        free(spec->slice);
        resources_done(&spec->resources);
        for (size_t i = 0; i < spec->n_annotations; i++) {
                free(spec->annotations[i].key);
                free(spec->annotations[i].value);
        }
        free(spec->annotations);
        free(spec);
        return NULL;
}

static int replace(char **field, const char *text) {
        char *copy;

        copy = strdup(text);
        if (!copy)
                return -ENOMEM;
        free(*field);
        *field = copy;
        return 0;
}

static int replace_list(char ***field, char *const *list) {
        char **copy;
        int r;

        r = strv_copy(list, &copy);
        if (r < 0)
                return r;
        strv_free(*field);
        *field = copy;
        return 0;
}

int spec_set_root_directory(Spec *spec, const char *path, sd_bus_error *error) {
        char *normal;
        int r;

        r = spec_check_path("RootDirectory", path, error);
        if (r < 0)
                return r;
        /* By text it can't be told where ".." leads when a symbolic link comes before it. */
        if (path_has_parent(path))
                return spec_invalid(error, "RootDirectory: %s has \"..\" in it, give the path without.",
                                    QUOTE(path));
        r = path_normalise(path, &normal);
        if (r < 0)
                return r;
        free(spec->root_directory);
        spec->root_directory = normal;
        return 0;
}

int spec_set_working_directory(Spec *spec, const char *path, sd_bus_error *error) {
        int r;

        r = spec_check_path("WorkingDirectory", path, error);
        if (r < 0)
                return r;
        return replace(&spec->working_directory, path);
}

int spec_set_command(Spec *spec, char *const *command, sd_bus_error *error) {
        int r;

        if (strv_length(command) == 0)
                return spec_invalid(error, "Command: is empty, give a program and its arguments.");
        if (!command[0][0])
                return spec_invalid(error, "Command: the program's name is empty.");
        r = spec_check_strings("Command", command, SPEC_COMMAND_MAX, error);
        if (r < 0)
                return r;
        return replace_list(&spec->command, command);
}

int spec_set_environment(Spec *spec, char *const *environment, sd_bus_error *error) {
        int r;

        r = spec_check_strings("Environment", environment, SPEC_COMMAND_MAX, error);
        if (r < 0)
                return r;
        /* An entry that can't be split may be a secret altogether, so it is named by its place. */
        for (size_t i = 0; environment && environment[i]; i++) {
                if (!strchr(environment[i], '='))
                        return spec_invalid(error, "Environment: entry %zu is not KEY=VALUE.", i + 1);
                if (environment[i][0] == '=')
                        return spec_invalid(error, "Environment: entry %zu has no name before its \"=\".",
                                            i + 1);
        }
        return replace_list(&spec->environment, environment);
}

int spec_set_user(Spec *spec, const char *text, sd_bus_error *error) {
        size_t n = strcspn(text, ":");
        _cleanup_free_ char *user = NULL;
        uint32_t uid = 0, gid = 0;
        bool has_gid = text[n] == ':';

        user = strndup(text, n);
        if (!user)
                return -ENOMEM;
        if (spec_is_number(user)) {
                if (spec_parse_id(user, &uid) < 0)
                        return spec_invalid(error, "User: %s is not within 0 to 4294967294.", QUOTE(user));
                free(user);
                user = NULL;
        } else if (!spec_is_account(user))
                return spec_invalid(error, "User: %s is neither a name nor a number, optionally with :GID.",
                                    QUOTE(text));
        if (has_gid && spec_parse_id(text + n + 1, &gid) < 0)
                return spec_invalid(error,
                                    "User: %s is not a numeric group id; give a number, or the group's name "
                                    "in SupplementaryGroups.",
                                    QUOTE(text + n + 1));

        free(spec->user);
        spec->user = TAKE_PTR(user);
        spec->uid = uid;
        spec->gid = gid;
        spec->has_gid = has_gid;
        return 0;
}

int spec_set_groups(Spec *spec, char *const *groups, sd_bus_error *error) {
        uint32_t gid;
        int r;

        r = spec_check_strings("SupplementaryGroups", groups, SPEC_GROUPS_MAX, error);
        if (r < 0)
                return r;
        for (char *const *g = groups; g && *g; g++)
                if (spec_is_number(*g) ? spec_parse_id(*g, &gid) < 0 : !spec_is_account(*g))
                        return spec_invalid(error,
                                            "SupplementaryGroups: %s is neither a group's name nor a number "
                                            "from 0 to 4294967294.",
                                            QUOTE(*g));
        return replace_list(&spec->supplementary_groups, groups);
}

static bool hostname_is_valid(const char *hostname) {
        size_t n = strlen(hostname);

        if (n < 1 || n > HOSTNAME_MAX_LENGTH || hostname[strspn(hostname, LETTERS_AND_DIGITS ".-")])
                return false;
        for (const char *label = hostname;;) {
                size_t length = strcspn(label, ".");

                if (length == 0 || label[0] == '-' || label[length - 1] == '-')
                        return false;
                if (!label[length])
                        return true;
                label += length + 1;
        }
}

int spec_set_hostname(Spec *spec, const char *hostname, sd_bus_error *error) {
        if (!hostname_is_valid(hostname))
                return spec_invalid(error,
                                    "Hostname: %s is not 1 to 64 of letters, digits, \"-\" and \".\" that "
                                    "make proper labels.",
                                    QUOTE(hostname));
        return replace(&spec->hostname, hostname);
}

int spec_set_slice(Spec *spec, const char *slice, sd_bus_error *error) {
        if (!unit_name_is_slice(slice))
                return spec_invalid(error, "Slice: %s is not the name of a slice unit, such as berth.slice.",
                                    QUOTE(slice));
        return replace(&spec->slice, slice);
}

int spec_set_network(Spec *spec, const char *text, sd_bus_error *error) {
        SpecNetwork network = spec_network_from_string(text);

        if (strncmp(text, "path:", 5) == 0)
                return spec_not_supported(error, "Network=path: is not supported by this version.");
        if (network < 0)
                return spec_invalid(error, "Network: %s is neither private nor host.", QUOTE(text));
        spec->network = network;
        return 0;
}

int spec_set_seccomp_profile(Spec *spec, const char *text, sd_bus_error *error) {
        SpecSeccomp seccomp = spec_seccomp_from_string(text);

        if (text[0] == '/')
                return spec_not_supported(error,
                                          "SeccompProfile with a path is not supported by this version.");
        if (seccomp < 0)
                return spec_invalid(error, "SeccompProfile: %s is neither default nor unconfined.",
                                    QUOTE(text));
        spec->seccomp = seccomp;
        return 0;
}

int spec_set_stop_signal(Spec *spec, int signal, sd_bus_error *error) {
        if (signal < 1 || signal > SIGNAL_MAX)
                return spec_invalid(error, "StopSignal: %i is not within 1 to %i.", signal, SIGNAL_MAX);
        spec->stop_signal = signal;
        return 0;
}

int spec_set_oom_score_adjust(Spec *spec, int value, sd_bus_error *error) {
        if (value < -1000 || value > 1000)
                return spec_invalid(error, "OOMScoreAdjust: %i is not within -1000 to 1000.", value);
        spec->oom_score_adjust = value;
        spec->oom_score_adjust_set = true;
        return 0;
}

static int set_positive(uint64_t *field, const char *key, uint64_t value, sd_bus_error *error) {
        if (value == 0)
                return spec_invalid(error, "%s: 0 is out of range, give at least 1.", key);
        *field = value;
        return 0;
}

int spec_set_timeout_start(Spec *spec, uint64_t usec, sd_bus_error *error) {
        return set_positive(&spec->timeout_start_usec, "TimeoutStartUSec", usec, error);
}

int spec_set_runtime_max(Spec *spec, uint64_t usec, sd_bus_error *error) {
        return set_positive(&spec->runtime_max_usec, "RuntimeMaxUSec", usec, error);
}

int spec_set_limit(Spec *spec, const char *name, uint64_t soft, uint64_t hard, sd_bus_error *error) {
        static const char *const names[RLIM_NLIMITS] = {
                [RLIMIT_CPU] = "CPU",           [RLIMIT_FSIZE] = "FSIZE",
                [RLIMIT_DATA] = "DATA",         [RLIMIT_STACK] = "STACK",
                [RLIMIT_CORE] = "CORE",         [RLIMIT_RSS] = "RSS",
                [RLIMIT_NPROC] = "NPROC",       [RLIMIT_NOFILE] = "NOFILE",
                [RLIMIT_MEMLOCK] = "MEMLOCK",   [RLIMIT_AS] = "AS",
                [RLIMIT_LOCKS] = "LOCKS",       [RLIMIT_SIGPENDING] = "SIGPENDING",
                [RLIMIT_MSGQUEUE] = "MSGQUEUE", [RLIMIT_NICE] = "NICE",
                [RLIMIT_RTPRIO] = "RTPRIO",     [RLIMIT_RTTIME] = "RTTIME",
        };
        const char *bare = strncmp(name, "RLIMIT_", 7) == 0 ? name + 7 : name;
        int resource = lookup(names, RLIM_NLIMITS, bare);

        if (resource < 0)
                return spec_invalid(error, "ResourceLimits: there is no limit %s.", QUOTE(name));
        if (soft > hard)
                return spec_invalid(error, "ResourceLimits: the soft limit of %s is above its hard limit.",
                                    bare);
        spec->limits[resource] = (struct rlimit) { .rlim_cur = soft, .rlim_max = hard };
        spec->limits_set |= UINT32_C(1) << resource;
        return 0;
}

int spec_add_annotation(Spec *spec, const char *key, const char *value, sd_bus_error *error) {
        SpecAnnotation *bigger;
        _cleanup_free_ char *k = NULL, *v = NULL;

        if (!key[0])
                return spec_invalid(error, "Annotations: a key is empty.");
        if (spec->n_annotations >= SPEC_ANNOTATIONS_MAX)
                return spec_invalid(error, "Annotations: there are more than %u.", SPEC_ANNOTATIONS_MAX);
        for (size_t i = 0; i < spec->n_annotations; i++)
                if (strcmp(spec->annotations[i].key, key) == 0)
                        return spec_invalid(error, "Annotations: %s is given twice.", QUOTE(key));
        k = strdup(key);
        v = strdup(value);
        if (!k || !v)
                return -ENOMEM;
        bigger = reallocarray(spec->annotations, spec->n_annotations + 1, sizeof(SpecAnnotation));
        if (!bigger)
                return -ENOMEM;
        spec->annotations = bigger;
        bigger[spec->n_annotations++] = (SpecAnnotation) { .key = TAKE_PTR(k), .value = TAKE_PTR(v) };
        return 0;
}

static size_t total_size(char *const *list) {
        size_t n = 0;

        for (; list && *list; list++)
                n += strlen(*list) + 1;
        return n;
}

int spec_copy_process(const Spec *spec, Spec **ret) {
        _cleanup_spec_ Spec *copy = NULL;
        int r;

        copy = spec_new();
        if (!copy)
                return -ENOMEM;
        r = strv_copy(spec->environment, &copy->environment);
        if (r >= 0)
                r = strv_copy(spec->supplementary_groups, &copy->supplementary_groups);
        if (r >= 0)
                r = replace(&copy->working_directory, spec->working_directory);
        if (r >= 0 && spec->user)
                r = replace(&copy->user, spec->user);
        if (r < 0)
                return r;
        copy->uid = spec->uid;
        copy->gid = spec->gid;
        copy->has_gid = spec->has_gid;
        copy->network = spec->network;
        copy->capabilities = spec->capabilities;
        copy->no_new_privileges = spec->no_new_privileges;
        copy->seccomp = spec->seccomp;
        memcpy(copy->limits, spec->limits, sizeof(copy->limits));
        copy->limits_set = spec->limits_set;
        copy->oom_score_adjust_set = spec->oom_score_adjust_set;
        copy->oom_score_adjust = spec->oom_score_adjust;
        copy->timeout_start_usec = spec->timeout_start_usec;
        copy->timeout_stop_usec = spec->timeout_stop_usec;
        *ret = TAKE_PTR(copy);
        return 0;
}

int spec_validate_process(const Spec *spec, sd_bus_error *error) {
        if (!spec->command)
                return spec_invalid(error, "Command: is missing, give a program and its arguments.");
        if (total_size(spec->command) + total_size(spec->environment) > SPEC_STRINGS_MAX)
                return spec_invalid(error, "Command and Environment are longer than %u bytes together.",
                                    SPEC_STRINGS_MAX);
        return 0;
}

int spec_validate(const Spec *spec, sd_bus_error *error) {
        size_t n = 0;
        int r;

        if (!spec->root_directory)
                return spec_invalid(error, "RootDirectory: is missing.");
        r = spec_validate_process(spec, error);
        if (r < 0)
                return r;
        for (size_t i = 0; i < spec->n_annotations; i++)
                n += strlen(spec->annotations[i].key) + strlen(spec->annotations[i].value) + 2;
        if (n > SPEC_STRINGS_MAX)
                return spec_invalid(error, "Annotations: are longer than %u bytes together.",
                                    SPEC_STRINGS_MAX);
        return 0;
}

int spec_validate_name(const char *name, sd_bus_error *error) {
        _cleanup_free_ char *unit = NULL;
        size_t n = strlen(name);
        int r;

        if (n < 1 || n > NAME_MAX_LENGTH || name[strspn(name, LETTERS_AND_DIGITS "_.+-")] ||
            !strchr(LETTERS_AND_DIGITS, name[0]))
                return sd_bus_error_setf(
                        error, BERTH_ERROR_INVALID_NAME,
                        "The name %s is not 1 to %u of letters, digits and \"_.+-\", a letter or "
                        "digit first.",
                        QUOTE(name), NAME_MAX_LENGTH);
        r = unit_name_scope(name, &unit);
        if (r == -ENAMETOOLONG)
                return sd_bus_error_setf(error, BERTH_ERROR_INVALID_NAME,
                                         "The name %s has too many \"-\" and \"+\" to be a unit's name.",
                                         QUOTE(name));
        return r;
}
