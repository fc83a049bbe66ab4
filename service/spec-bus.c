/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/spec-bus.h"

#include <assert.h>
#include <string.h>

#include "service/dict-bus.h"
#include "service/options-bus.h"
#include "service/spec-check.h"
#include "util/quote.h"
#include "util/strv.h"

/* The three keys about capabilities can come in any order, so they are put together at the end. */
typedef struct SpecReader {
        Spec *spec;
        uint64_t capabilities, add, drop;
} SpecReader;

typedef int (*SetText)(Spec *spec, const char *text, sd_bus_error *error);
typedef int (*SetList)(Spec *spec, char *const *list, sd_bus_error *error);
typedef int (*SetNumber)(Spec *spec, int number, sd_bus_error *error);
typedef int (*SetSize)(Spec *spec, uint64_t size, sd_bus_error *error);

static int read_text(sd_bus_message *message, const DictKey *key, void *target, sd_bus_error *error) {
        SpecReader *reader = target;
        const char *text;
        int r;

        r = sd_bus_message_read_basic(message, 's', &text);
        if (r < 0)
                return r;
        return ((SetText) key->set)(reader->spec, text, error);
}

static int read_strings(sd_bus_message *message, const DictKey *key, const char ***ret,
                        sd_bus_error *error) {
        int r;

        r = dict_bus_read_strings(message, key->max, ret);
        if (r == -E2BIG)
                return spec_invalid(error, "%s: has more than %zu entries.", key->name, key->max);
        return r;
}

static int read_list(sd_bus_message *message, const DictKey *key, void *target, sd_bus_error *error) {
        _cleanup_free_ const char **list = NULL;
        SpecReader *reader = target;
        int r;

        r = read_strings(message, key, &list, error);
        if (r < 0)
                return r;
        return ((SetList) key->set)(reader->spec, (char *const *) list, error);
}

static int read_number(sd_bus_message *message, const DictKey *key, void *target, sd_bus_error *error) {
        SpecReader *reader = target;
        int32_t number;
        int r;

        r = sd_bus_message_read_basic(message, 'i', &number);
        if (r < 0)
                return r;
        return ((SetNumber) key->set)(reader->spec, number, error);
}

static int read_size(sd_bus_message *message, const DictKey *key, void *target, sd_bus_error *error) {
        SpecReader *reader = target;
        uint64_t size;
        int r;

        r = sd_bus_message_read_basic(message, 't', &size);
        if (r < 0)
                return r;
        return ((SetSize) key->set)(reader->spec, size, error);
}

/* Any value will do. */
static int set_timeout_stop(Spec *spec, uint64_t usec, sd_bus_error *error) {
        spec->timeout_stop_usec = usec;
        return 0;
}

static int read_flag(sd_bus_message *message, const DictKey *key, void *target, sd_bus_error *error) {
        SpecReader *reader = target;
        int value, r;

        r = sd_bus_message_read_basic(message, 'b', &value);
        if (r < 0)
                return r;
        *(bool *) ((char *) reader->spec + key->offset) = value;
        return 0;
}

static int read_capabilities(sd_bus_message *message, const DictKey *key, void *target,
                             sd_bus_error *error) {
        _cleanup_free_ const char **names = NULL;
        int r;

        r = read_strings(message, key, &names, error);
        if (r < 0)
                return r;
        return spec_parse_capabilities(key->name, (char *const *) names,
                                       (uint64_t *) ((char *) target + key->offset), error);
}

static int read_mounts(sd_bus_message *message, const DictKey *key, void *target, sd_bus_error *error) {
        SpecReader *reader = target;
        int r;

        r = sd_bus_message_enter_container(message, 'a', "(sssas)");
        if (r < 0)
                return r;
        while ((r = sd_bus_message_enter_container(message, 'r', "sssas")) > 0) {
                _cleanup_free_ const char **options = NULL;
                const char *destination, *type, *source;

                r = sd_bus_message_read(message, "sss", &destination, &type, &source);
                if (r < 0)
                        return r;
                r = dict_bus_read_strings(message, SPEC_MOUNT_OPTIONS_MAX, &options);
                if (r == -E2BIG)
                        return spec_invalid(error, "Mounts: %s: has too many options.", QUOTE(destination));
                if (r < 0)
                        return r;
                r = spec_add_mount(reader->spec, destination, type, source, (char *const *) options, error);
                if (r < 0)
                        return r;
                r = sd_bus_message_exit_container(message);
                if (r < 0)
                        return r;
        }
        if (r < 0)
                return r;
        return sd_bus_message_exit_container(message);
}

static int read_limits(sd_bus_message *message, const DictKey *key, void *target, sd_bus_error *error) {
        SpecReader *reader = target;
        uint64_t soft, hard;
        const char *name;
        int r;

        r = sd_bus_message_enter_container(message, 'a', "{s(tt)}");
        if (r < 0)
                return r;
        while ((r = sd_bus_message_read(message, "{s(tt)}", &name, &soft, &hard)) > 0) {
                uint32_t before = reader->spec->limits_set;

                r = spec_set_limit(reader->spec, name, soft, hard, error);
                if (r < 0)
                        return r;
                if (reader->spec->limits_set == before)
                        return spec_invalid(error, "ResourceLimits: %s is given twice.", QUOTE(name));
        }
        if (r < 0)
                return r;
        return sd_bus_message_exit_container(message);
}

static int read_annotations(sd_bus_message *message, const DictKey *key, void *target, sd_bus_error *error) {
        SpecReader *reader = target;
        const char *name, *value;
        int r;

        r = sd_bus_message_enter_container(message, 'a', "{ss}");
        if (r < 0)
                return r;
        while ((r = sd_bus_message_read(message, "{ss}", &name, &value)) > 0) {
                r = spec_add_annotation(reader->spec, name, value, error);
                if (r < 0)
                        return r;
        }
        if (r < 0)
                return r;
        return sd_bus_message_exit_container(message);
}

/* Keys of the interface whose work isn't done yet: whoever asks for what happens anyhow may. */
static int not_yet(const DictKey *key, sd_bus_error *error) {
        return spec_not_supported(error, "%s is not supported by this version.", key->name);
}

static int read_only_text(sd_bus_message *message, const DictKey *key, void *target, sd_bus_error *error) {
        const char *text;
        int r;

        r = sd_bus_message_read_basic(message, 's', &text);
        if (r < 0)
                return r;
        if (!key->only)
                return not_yet(key, error);
        if (strcmp(text, key->only) != 0)
                return spec_not_supported(error, "%s=%s is not supported by this version.", key->name,
                                          QUOTE(text));
        return 0;
}

static int read_user_namespace(sd_bus_message *message, const DictKey *key, void *target,
                               sd_bus_error *error) {
        SpecReader *reader = target;
        int r;

        r = read_only_text(message, key, target, error);
        if (r < 0)
                return r;
        reader->spec->user_namespace_host = true;
        return 0;
}

static int read_only_false(sd_bus_message *message, const DictKey *key, void *target, sd_bus_error *error) {
        int value, r;

        r = sd_bus_message_read_basic(message, 'b', &value);
        if (r < 0)
                return r;
        return value ? not_yet(key, error) : 0;
}

static int read_resource(sd_bus_message *message, const DictKey *key, void *target, sd_bus_error *error) {
        SpecReader *reader = target;
        uint64_t value;
        int r;

        r = sd_bus_message_read_basic(message, 't', &value);
        if (r < 0)
                return r;
        return resources_set(&reader->spec->resources, (Resource) key->offset, value, error);
}

static int read_allowed_cpus(sd_bus_message *message, const DictKey *key, void *target,
                             sd_bus_error *error) {
        SpecReader *reader = target;
        const char *list;
        int r;

        r = sd_bus_message_read_basic(message, 's', &list);
        if (r < 0)
                return r;
        return resources_set_allowed_cpus(&reader->spec->resources, list, error);
}

static int read_nothing(sd_bus_message *message, const DictKey *key, void *target, sd_bus_error *error) {
        return not_yet(key, error);
}

#define SET(function) (void (*)(void))(function)
#define TEXT(name, function) \
        { name, "s", read_text, .set = SET(function) }
#define LIST(name, function, limit) \
        { name, "as", read_list, .set = SET(function), .max = limit }
#define NUMBER(name, function) \
        { name, "i", read_number, .set = SET(function) }
#define SIZE(name, function) \
        { name, "t", read_size, .set = SET(function) }
#define RESOURCE(name, resource) \
        { name, "t", read_resource, .offset = resource }
#define FLAG(name, field) \
        { name, "b", read_flag, .offset = offsetof(Spec, field) }
#define CAPABILITIES(name, field) \
        { name, "as", read_capabilities, .offset = offsetof(SpecReader, field), .max = SPEC_COMMAND_MAX }

/* What is a process', of a container's init as of any other. */
static const DictKey process_keys[] = {
        LIST("Command", spec_set_command, SPEC_COMMAND_MAX),
        LIST("Environment", spec_set_environment, SPEC_COMMAND_MAX),
        TEXT("WorkingDirectory", spec_set_working_directory),
        TEXT("User", spec_set_user),
        LIST("SupplementaryGroups", spec_set_groups, SPEC_GROUPS_MAX),
        FLAG("Terminal", terminal),
        CAPABILITIES("Capabilities", capabilities),
        CAPABILITIES("AddCapabilities", add),
        CAPABILITIES("DropCapabilities", drop),
        FLAG("NoNewPrivileges", no_new_privileges),
        TEXT("SeccompProfile", spec_set_seccomp_profile),
        { "ResourceLimits", "a{s(tt)}", read_limits },
        NUMBER("OOMScoreAdjust", spec_set_oom_score_adjust),
        NUMBER("StopSignal", spec_set_stop_signal),
        SIZE("TimeoutStartUSec", spec_set_timeout_start),
        SIZE("TimeoutStopUSec", set_timeout_stop),
        { "SELinuxContext", "s", read_only_text },
        { "AppArmorProfile", "s", read_only_text },
};

static const DictKey container_keys[] = {
        TEXT("Hostname", spec_set_hostname),
        TEXT("RootDirectory", spec_set_root_directory),
        FLAG("ReadOnly", read_only),
        FLAG("Ephemeral", ephemeral),
        { "Mounts", "a(sssas)", read_mounts },
        TEXT("Network", spec_set_network),
        SIZE("RuntimeMaxUSec", spec_set_runtime_max),
        TEXT("Slice", spec_set_slice),
        FLAG("AutoRemove", auto_remove),
        { "Annotations", "a{ss}", read_annotations },

        { "Bundle", "s", read_only_text },
        { "Devices", "as", read_nothing },
        { "IPC", "s", read_only_text, .only = "private" },
        { "PIDNamespace", "s", read_only_text, .only = "private" },
        { "UTS", "s", read_only_text, .only = "private" },
        { "CgroupNamespace", "s", read_only_text, .only = "private" },
        { "UserNamespace", "s", read_user_namespace, .only = "host" },
        { "Init", "b", read_only_false },
        { "Placement", "s", read_only_text, .only = "scope" },
        { "Runtime", "s", read_only_text, .only = "native" },
};

/* What Update takes too. */
static const DictKey resource_keys[] = {
        RESOURCE("MemoryMax", RESOURCE_MEMORY_MAX),
        RESOURCE("MemoryHigh", RESOURCE_MEMORY_HIGH),
        RESOURCE("MemorySwapMax", RESOURCE_MEMORY_SWAP_MAX),
        RESOURCE("TasksMax", RESOURCE_TASKS_MAX),
        RESOURCE("CPUWeight", RESOURCE_CPU_WEIGHT),
        RESOURCE("CPUQuotaPerSecUSec", RESOURCE_CPU_QUOTA),
        RESOURCE("IOWeight", RESOURCE_IO_WEIGHT),
        { "AllowedCPUs", "s", read_allowed_cpus },
};

/* What only Exec takes. */
static const DictKey exec_keys[] = {
        { "OCIProcess", "s", read_only_text },
};

static int read_spec(sd_bus_message *message, Spec *spec, const DictTable *more, size_t n_more,
                     sd_bus_error *error) {
        SpecReader reader = { .spec = spec, .capabilities = spec->capabilities };
        DictTable tables[4] = { { process_keys, ELEMENTSOF(process_keys), &reader } };
        int r;

        assert(n_more < ELEMENTSOF(tables));
        for (size_t i = 0; i < n_more; i++) {
                tables[i + 1] = more[i];
                if (!more[i].target)
                        tables[i + 1].target = &reader;
        }
        r = dict_bus_read(message, tables, n_more + 1, BERTH_ERROR_INVALID_SPEC, error);
        if (r < 0)
                return r;
        return spec_set_capabilities(spec, reader.capabilities, reader.add, reader.drop, error);
}

int spec_bus_read(sd_bus_message *message, Spec **ret, sd_bus_error *error) {
        const DictTable more[] = {
                { container_keys, ELEMENTSOF(container_keys), NULL },
                { resource_keys, ELEMENTSOF(resource_keys), NULL },
        };
        _cleanup_spec_ Spec *spec = NULL;
        int r;

        spec = spec_new();
        if (!spec)
                return -ENOMEM;
        r = read_spec(message, spec, more, ELEMENTSOF(more), error);
        if (r < 0)
                return r;
        r = spec_validate(spec, error);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(spec);
        return 0;
}

int spec_bus_read_resources(sd_bus_message *message, Spec **ret, sd_bus_error *error) {
        _cleanup_spec_ Spec *spec = spec_new();
        SpecReader reader = { .spec = spec };
        const DictTable table = { resource_keys, ELEMENTSOF(resource_keys), &reader };
        int r;

        if (!spec)
                return -ENOMEM;
        r = dict_bus_read(message, &table, 1, BERTH_ERROR_INVALID_SPEC, error);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(spec);
        return 0;
}

/* Nobody has this id: the mark of a User that was not given. */
#define NO_USER ((uid_t) -1)

/* A user brings its own groups, so the container's go with the container's user only. */
static int inherit_user(Spec *spec, const Spec *base) {
        _cleanup_spec_ Spec *copy = NULL;
        int r;

        if (spec->user || spec->uid != NO_USER)
                return 0;
        r = spec_copy_process(base, &copy);
        if (r < 0)
                return r;
        spec->user = TAKE_PTR(copy->user);
        spec->uid = copy->uid;
        spec->gid = copy->gid;
        spec->has_gid = copy->has_gid;
        if (!spec->supplementary_groups)
                spec->supplementary_groups = TAKE_PTR(copy->supplementary_groups);
        return 0;
}

static int inherit_environment(Spec *spec, const Spec *base) {
        _cleanup_strv_ char **all = NULL;
        int r;

        r = strv_copy(base->environment, &all);
        for (char **s = spec->environment; r >= 0 && s && *s; s++)
                r = strv_append(&all, *s);
        if (r < 0)
                return r;
        strv_free(spec->environment);
        spec->environment = TAKE_PTR(all);
        return 0;
}

int spec_bus_read_exec(sd_bus_message *message, const Spec *base, char *const *command, const DictTable *own,
                       Spec **ret, StartOptions *ret_options, sd_bus_error *error) {
        _cleanup_(options_reader_done) OptionsReader options = OPTIONS_READER_INIT;
        const DictTable more[] = {
                { exec_keys, ELEMENTSOF(exec_keys), NULL },
                options_bus_table(&options),
                own ? *own : (DictTable) {},
        };
        _cleanup_spec_ Spec *spec = NULL;
        int r;

        r = spec_copy_process(base, &spec);
        if (r < 0)
                return r;
        strv_free(spec->environment);
        strv_free(spec->supplementary_groups);
        free(spec->user);
        spec->environment = spec->supplementary_groups = NULL;
        spec->user = NULL;
        spec->uid = NO_USER;
        r = read_spec(message, spec, more, ELEMENTSOF(more) - !own, error);
        if (r < 0)
                return r;
        if (command && spec->command)
                return sd_bus_error_set(error, BERTH_ERROR_INVALID_ARGS,
                                        "Command: it is an argument of this call, leave the key out.");
        if (command)
                r = spec_set_command(spec, command, error);
        if (r >= 0)
                r = inherit_user(spec, base);
        if (r >= 0)
                r = inherit_environment(spec, base);
        if (r >= 0)
                r = spec_validate_process(spec, error);
        if (r >= 0)
                r = options_bus_finish(&options, ret_options);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(spec);
        return 0;
}
