/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The second half of spec-args.h: from the parsed options to the message. */
#include <stdio.h>
#include <string.h>

#include "client/spec-args.h"
#include "util/strv.h"

static int append_string(sd_bus_message *message, const char *key, const char *value) {
        return value ? sd_bus_message_append(message, "{sv}", key, "s", value) : 0;
}

static int append_flag(sd_bus_message *message, const char *key, bool value) {
        return value ? sd_bus_message_append(message, "{sv}", key, "b", true) : 0;
}

static int append_number(sd_bus_message *message, const char *key, bool given, uint64_t value) {
        return given ? sd_bus_message_append(message, "{sv}", key, "t", value) : 0;
}

/* Opens a dictionary entry and its variant; close_entry() closes both. */
static int open_entry(sd_bus_message *message, const char *key, const char *type) {
        int r;

        r = sd_bus_message_open_container(message, 'e', "sv");
        if (r < 0)
                return r;
        r = sd_bus_message_append(message, "s", key);
        if (r < 0)
                return r;
        return sd_bus_message_open_container(message, 'v', type);
}

static int close_entry(sd_bus_message *message) {
        int r;

        r = sd_bus_message_close_container(message);
        return r < 0 ? r : sd_bus_message_close_container(message);
}

static int append_list(sd_bus_message *message, const char *key, bool given, char *const *list) {
        int r;

        if (!given)
                return 0;
        r = open_entry(message, key, "as");
        if (r < 0)
                return r;
        r = sd_bus_message_append_strv(message, (char **) list);
        return r < 0 ? r : close_entry(message);
}

static int append_environment(const SpecArgs *args, bool terminal, sd_bus_message *message) {
        static const char *const passed[] = { "TERM", "COLORTERM", "NO_COLOR" };
        _cleanup_strv_ char **environment = NULL;
        int r;

        r = strv_copy(args->environment, &environment);
        if (r < 0)
                return r;
        for (size_t i = 0; terminal && i < ELEMENTSOF(passed); i++) {
                _cleanup_free_ char *assignment = NULL;
                const char *value = getenv(passed[i]);

                if (!value || strv_env_get(environment, passed[i]))
                        continue;
                if (asprintf(&assignment, "%s=%s", passed[i], value) < 0)
                        return -ENOMEM;
                r = strv_append(&environment, assignment);
                if (r < 0)
                        return r;
        }
        return append_list(message, "Environment", environment, environment);
}

static int append_mounts(const SpecArgs *args, sd_bus_message *message) {
        int r;

        if (args->n_mounts == 0)
                return 0;
        r = open_entry(message, "Mounts", "a(sssas)");
        if (r < 0)
                return r;
        r = sd_bus_message_open_container(message, 'a', "(sssas)");
        if (r < 0)
                return r;
        for (size_t i = 0; i < args->n_mounts; i++) {
                const SpecArgsMount *mount = &args->mounts[i];

                r = sd_bus_message_open_container(message, 'r', "sssas");
                if (r < 0)
                        return r;
                r = sd_bus_message_append(message, "sss", mount->destination, mount->type, mount->source);
                if (r < 0)
                        return r;
                r = sd_bus_message_append_strv(message, mount->options);
                if (r < 0)
                        return r;
                r = sd_bus_message_close_container(message);
                if (r < 0)
                        return r;
        }
        r = sd_bus_message_close_container(message);
        return r < 0 ? r : close_entry(message);
}

static int append_limits(const SpecArgs *args, sd_bus_message *message) {
        int r;

        if (args->n_limits == 0)
                return 0;
        r = open_entry(message, "ResourceLimits", "a{s(tt)}");
        if (r < 0)
                return r;
        r = sd_bus_message_open_container(message, 'a', "{s(tt)}");
        if (r < 0)
                return r;
        for (size_t i = 0; i < args->n_limits; i++) {
                const SpecArgsLimit *limit = &args->limits[i];

                r = sd_bus_message_append(message, "{s(tt)}", limit->name, limit->soft, limit->hard);
                if (r < 0)
                        return r;
        }
        r = sd_bus_message_close_container(message);
        return r < 0 ? r : close_entry(message);
}

static int append_annotations(const SpecArgs *args, sd_bus_message *message) {
        int r;

        if (!args->annotations)
                return 0;
        r = open_entry(message, "Annotations", "a{ss}");
        if (r < 0)
                return r;
        r = sd_bus_message_open_container(message, 'a', "{ss}");
        if (r < 0)
                return r;
        for (char **a = args->annotations; *a; a++) {
                _cleanup_free_ char *key = NULL;

                key = strndup(*a, strcspn(*a, "="));
                if (!key)
                        return -ENOMEM;
                r = sd_bus_message_append(message, "{ss}", key, *a + strlen(key) + 1);
                if (r < 0)
                        return r;
        }
        r = sd_bus_message_close_container(message);
        return r < 0 ? r : close_entry(message);
}

/* Each step only when the one before went well. */
#define STEP(r, call) ((r) < 0 ? (r) : (call))

int spec_args_append_process(const SpecArgs *args, bool terminal, sd_bus_message *message) {
        int r;

        r = append_list(message, "Command", true, args->command);
        r = STEP(r, append_environment(args, terminal, message));
        r = STEP(r, append_flag(message, "Terminal", terminal));
        r = STEP(r, append_string(message, "WorkingDirectory", args->working_directory));
        r = STEP(r, append_string(message, "User", args->user));
        r = STEP(r, append_list(message, "SupplementaryGroups", args->groups, args->groups));
        r = STEP(r, append_list(message, "Capabilities", args->has_capabilities, args->capabilities));
        r = STEP(r, append_list(message, "AddCapabilities", args->add_capabilities, args->add_capabilities));
        r = STEP(r,
                 append_list(message, "DropCapabilities", args->drop_capabilities, args->drop_capabilities));
        r = STEP(r, append_flag(message, "NoNewPrivileges", args->no_new_privileges));
        r = STEP(r, append_string(message, "SeccompProfile", args->seccomp));
        r = STEP(r, append_limits(args, message));
        if (r >= 0 && args->has_oom_score_adjust)
                r = sd_bus_message_append(message, "{sv}", "OOMScoreAdjust", "i", args->oom_score_adjust);
        if (r >= 0 && args->stop_signal > 0)
                r = sd_bus_message_append(message, "{sv}", "StopSignal", "i", args->stop_signal);
        r = STEP(r,
                 append_number(message, "TimeoutStartUSec", args->has_timeout_start, args->timeout_start));
        return STEP(r,
                    append_number(message, "TimeoutStopUSec", args->has_timeout_stop, args->timeout_stop));
}

int spec_args_append(const SpecArgs *args, bool terminal, sd_bus_message *message) {
        int r;

        r = sd_bus_message_open_container(message, 'a', "{sv}");
        r = STEP(r, append_string(message, "RootDirectory", args->root));
        r = STEP(r, spec_args_append_process(args, terminal, message));
        r = STEP(r, append_string(message, "Hostname", args->hostname));
        r = STEP(r, append_flag(message, "Ephemeral", args->ephemeral));
        r = STEP(r, append_flag(message, "ReadOnly", args->read_only));
        r = STEP(r, append_mounts(args, message));
        r = STEP(r, append_string(message, "Network", args->network));
        r = STEP(r, append_number(message, "MemoryMax", args->has_memory_max, args->memory_max));
        r = STEP(r, append_number(message, "TasksMax", args->has_tasks_max, args->tasks_max));
        r = STEP(r, append_string(message, "Slice", args->slice));
        r = STEP(r, append_flag(message, "AutoRemove", args->auto_remove));
        r = STEP(r, append_annotations(args, message));
        return STEP(r, sd_bus_message_close_container(message));
}
