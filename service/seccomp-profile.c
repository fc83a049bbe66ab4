/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/seccomp-profile.h"

#include <ctype.h>
#include <errno.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/utsname.h>

#include "interfaces/names.h"
#include "service/seccomp-words.h"
#include "util/cleanup.h"

#define PLACE_MAX 256U
#define ERRNO_MAX 4095   /* what the kernel returns at most */
#define TRACE_MAX 0xffff /* SECCOMP_RET_DATA */

typedef struct Reader {
        SeccompProfile *profile; /* borrowed */
        uint64_t capabilities;
        size_t n_filter_rules;
        sd_bus_error *error;
} Reader;

void seccomp_profile_done(SeccompProfile *profile) {
        for (size_t i = 0; i < profile->n_rules; i++)
                free(profile->rules[i].args);
        free(profile->rules);
        json_decref(profile->json);
        *profile = (SeccompProfile) { 0 };
}

/* Where in the JSON something is; written out only for a message. */
typedef struct Place {
        const struct Place *up; /* NULL: the key is the path of the whole profile */
        const char *key;
        ssize_t index; /* -1: none */
} Place;

#define MEMBER(up, key) (&(const Place) { (up), (key), -1 })
#define ITEM(up, key, index) (&(const Place) { (up), (key), (ssize_t) (index) })

static size_t place_print(const Place *place, char *text, size_t size) {
        size_t n = 0;
        int q;

        if (place->up)
                n = place_print(place->up, text, size);
        q = snprintf(text + n, size - n, place->index < 0 ? "%s%s" : "%s%s[%zd]", place->up ? "." : "",
                     place->key, place->index);
        return q < 0 || n + (size_t) q >= size ? size - 1 : n + (size_t) q;
}

/* Strings of the profile are shown only when they can do no harm in a message. */
static int unknown(sd_bus_error *error, const Place *place, const char *text, const char *what) {
        bool plain = text && strlen(text) <= 64;
        char where[PLACE_MAX];

        for (const char *p = text; plain && *p; p++)
                plain = isascii(*p) && isprint(*p);
        (void) place_print(place, where, sizeof(where));
        if (plain)
                (void) sd_bus_error_setf(error, BERTH_ERROR_INVALID_SPEC, "%s: '%s' %s", where, text, what);
        else
                (void) sd_bus_error_setf(error, BERTH_ERROR_INVALID_SPEC, "%s: %s", where, what);
        return -EINVAL;
}

static int invalid(sd_bus_error *error, const Place *place, const char *what) {
        return unknown(error, place, NULL, what);
}

static int needs_agent(sd_bus_error *error, const Place *place, const char *word) {
        char where[PLACE_MAX];

        (void) place_print(place, where, sizeof(where));
        (void) sd_bus_error_setf(error, BERTH_ERROR_NOT_SUPPORTED,
                                 "%s: %s needs an agent, which berth does not have", where, word);
        return -EOPNOTSUPP;
}

/* A member of an object; null counts as not there. */
static json_t *member(json_t *object, const char *key) {
        json_t *value = json_object_get(object, key);

        return json_is_null(value) ? NULL : value;
}

/* Below the top a member that is not known would make a rule mean something else, so it is refused. */
static int check_members(Reader *r, json_t *object, const Place *path, const char *const *known) {
        const char *key;
        json_t *value;

        if (!json_is_object(object))
                return invalid(r->error, path, "must be an object");
        json_object_foreach(object, key, value) {
                size_t i = 0;

                while (known[i] && strcmp(known[i], key) != 0)
                        i++;
                if (!known[i])
                        return unknown(r->error, path, key, "is not a known member");
        }
        return 0;
}

/* An optional list of strings; *ret is NULL without one. */
static int read_strings(Reader *r, json_t *object, const Place *path, const char *key, json_t **ret) {
        json_t *list = member(object, key), *item;
        size_t i;

        if (list) {
                if (!json_is_array(list))
                        return invalid(r->error, MEMBER(path, key), "must be a list of strings");
                json_array_foreach(list, i, item) {
                        if (!json_is_string(item))
                                return invalid(r->error, ITEM(path, key, i), "must be a string");
                        if (json_string_length(item) == 0)
                                return invalid(r->error, ITEM(path, key, i), "must not be empty");
                }
        }
        *ret = list;
        return 0;
}

static int read_number(Reader *r, json_t *object, const Place *path, const char *key, uint64_t max,
                       bool required, uint64_t *ret) {
        json_t *value = member(object, key);

        if (!value && !required)
                return 0;
        if (!value)
                return invalid(r->error, MEMBER(path, key), "is missing");
        if (!json_is_integer(value))
                return invalid(r->error, MEMBER(path, key), "must be a whole number");
        if (json_integer_value(value) < 0 || (uint64_t) json_integer_value(value) > max)
                return invalid(r->error, MEMBER(path, key), "is out of range");
        *ret = (uint64_t) json_integer_value(value);
        return 0;
}

static int read_action(Reader *r, json_t *object, const Place *path, const char *key, const char *errno_key,
                       uint32_t *ret) {
        json_t *value = member(object, key);
        uint64_t data = EPERM;
        uint32_t action;
        int q;

        if (!value)
                return invalid(r->error, MEMBER(path, key), "is missing");
        if (!json_is_string(value))
                return invalid(r->error, MEMBER(path, key), "must be a string");
        q = seccomp_action_from_string(json_string_value(value), &action);
        if (q < 0)
                return unknown(r->error, MEMBER(path, key), json_string_value(value), "is not an action");
        if (action == SCMP_ACT_NOTIFY)
                return needs_agent(r->error, MEMBER(path, key), "SCMP_ACT_NOTIFY");
        if (action == SCMP_ACT_ERRNO(0) || action == SCMP_ACT_TRACE(0)) {
                q = read_number(r, object, path, errno_key,
                                action == SCMP_ACT_ERRNO(0) ? ERRNO_MAX : TRACE_MAX, false, &data);
                if (q < 0)
                        return q;
                action |= (uint32_t) data;
        } else if (member(object, errno_key)) {
                return unknown(r->error, MEMBER(path, errno_key), json_string_value(value),
                               "returns no errno");
        }
        *ret = action;
        return 0;
}

static void add_architecture(Reader *r, uint32_t architecture) {
        SeccompProfile *p = r->profile;

        for (size_t i = 0; i < p->n_architectures; i++)
                if (p->architectures[i] == architecture)
                        return;
        if (p->n_architectures < SECCOMP_PROFILE_ARCHITECTURES_MAX)
                p->architectures[p->n_architectures++] = architecture;
}

static int read_architectures(Reader *r, json_t *object, const Place *path, const char *key, bool use) {
        json_t *list, *item;
        uint32_t token;
        size_t i;
        int q;

        q = read_strings(r, object, path, key, &list);
        if (q < 0)
                return q;
        json_array_foreach(list, i, item) {
                q = seccomp_architecture_from_string(json_string_value(item), &token);
                if (q < 0)
                        return unknown(r->error, ITEM(path, key, i), json_string_value(item),
                                       "is not an architecture");
                if (use && seccomp_architecture_runs_here(token))
                        add_architecture(r, token);
        }
        return 0;
}

/* Of the map only the entry of this machine is used. */
static int read_architecture_map(Reader *r, json_t *object, const Place *path) {
        static const char *const known[] = { "architecture", "subArchitectures", NULL };
        json_t *map = member(object, "archMap"), *entry;
        size_t i;
        int q;

        if (map && !json_is_array(map))
                return invalid(r->error, MEMBER(path, "archMap"), "must be a list of objects");
        json_array_foreach(map, i, entry) {
                const Place *where = ITEM(path, "archMap", i);
                const char *name;
                uint32_t token;

                q = check_members(r, entry, where, known);
                if (q < 0)
                        return q;
                name = json_string_value(json_object_get(entry, "architecture"));
                if (!name)
                        return invalid(r->error, MEMBER(where, "architecture"), "must be a string");
                q = seccomp_architecture_from_string(name, &token);
                if (q < 0)
                        return unknown(r->error, MEMBER(where, "architecture"), name,
                                       "is not an architecture");
                q = read_architectures(r, entry, where, "subArchitectures", token == seccomp_arch_native());
                if (q < 0)
                        return q;
        }
        return 0;
}

static int read_flags(Reader *r, json_t *object, const Place *path) {
        json_t *list, *item;
        size_t i;
        int q;

        q = read_strings(r, object, path, "flags", &list);
        if (q < 0)
                return q;
        json_array_foreach(list, i, item) {
                uint32_t flag;

                q = seccomp_flag_from_string(json_string_value(item), &flag);
                if (q == -EOPNOTSUPP)
                        return needs_agent(r->error, ITEM(path, "flags", i), json_string_value(item));
                if (q < 0)
                        return unknown(r->error, ITEM(path, "flags", i), json_string_value(item),
                                       "is not a flag");
                r->profile->flags |= flag;
        }
        return 0;
}

static int read_args(Reader *r, json_t *object, const Place *path, SeccompRule *rule) {
        static const char *const known[] = { "index", "value", "valueTwo", "op", NULL };
        json_t *list = member(object, "args"), *item;
        unsigned seen = 0;
        size_t i;
        int q;

        if (!list)
                return 0;
        if (!json_is_array(list))
                return invalid(r->error, MEMBER(path, "args"), "must be a list of objects");
        rule->args = calloc(json_array_size(list) + 1, sizeof(struct scmp_arg_cmp));
        if (!rule->args)
                return -ENOMEM;
        json_array_foreach(list, i, item) {
                uint64_t index = 0, value = 0, value_two = 0;
                const Place *where = ITEM(path, "args", i);
                const char *op;
                int compare;

                q = check_members(r, item, where, known);
                if (q < 0)
                        return q;
                q = read_number(r, item, where, "index", 5, true, &index);
                if (q < 0)
                        return q;
                q = read_number(r, item, where, "value", UINT64_MAX, true, &value);
                if (q < 0)
                        return q;
                q = read_number(r, item, where, "valueTwo", UINT64_MAX, false, &value_two);
                if (q < 0)
                        return q;
                op = json_string_value(json_object_get(item, "op"));
                if (!op)
                        return invalid(r->error, MEMBER(where, "op"), "must be a string");
                compare = seccomp_operator_from_string(op);
                if (compare < 0)
                        return unknown(r->error, MEMBER(where, "op"), op, "is not an operator");
                rule->args[rule->n_args++] = (struct scmp_arg_cmp) {
                        .arg = (unsigned) index,
                        .op = (enum scmp_compare) compare,
                        .datum_a = value,
                        .datum_b = value_two,
                };
                rule->alternatives = rule->alternatives || seen & 1U << index;
                seen |= 1U << index;
        }
        return 0;
}

/* minKernel: "major.minor". */
static int kernel_is_at_least(const char *text, bool *ret) {
        unsigned major, minor, have_major = 0, have_minor = 0;
        struct utsname name;
        int end = 0;

        if (sscanf(text, "%4u.%4u%n", &major, &minor, &end) != 2 || text[end])
                return -EINVAL;
        if (uname(&name) < 0)
                return -errno;
        (void) sscanf(name.release, "%4u.%4u", &have_major, &have_minor);
        *ret = have_major > major || (have_major == major && have_minor >= minor);
        return 0;
}

/* What a condition says about this machine and these capabilities: whether all of it holds, and whether any.
 * One without a word holds, and excludes nothing. A capability that the library does not know is one that
 * nobody has. */
static int read_condition(Reader *r, json_t *object, const Place *parent, const char *key, bool *ret_all,
                          bool *ret_any) {
        static const char *const known[] = { "caps", "arches", "minKernel", NULL };
        json_t *condition = member(object, key), *list, *item;
        const Place *path = MEMBER(parent, key);
        bool all = true, any = false, native = false;
        size_t i;
        int q;

        *ret_all = true;
        *ret_any = false;
        if (!condition)
                return 0;
        q = check_members(r, condition, path, known);
        if (q < 0)
                return q;
        q = read_strings(r, condition, path, "caps", &list);
        if (q < 0)
                return q;
        json_array_foreach(list, i, item) {
                cap_value_t capability;
                bool has = false;

                if (cap_from_name(json_string_value(item), &capability) >= 0 && capability < 64) {
                        r->profile->relevant |= UINT64_C(1) << capability;
                        has = r->capabilities & UINT64_C(1) << capability;
                }
                all = all && has;
                any = any || has;
        }
        q = read_strings(r, condition, path, "arches", &list);
        if (q < 0)
                return q;
        json_array_foreach(list, i, item) {
                uint32_t token;

                q = seccomp_architecture_from_string(json_string_value(item), &token);
                if (q < 0)
                        return unknown(r->error, ITEM(path, "arches", i), json_string_value(item),
                                       "is not an architecture");
                native = native || token == seccomp_arch_native();
        }
        all = all && (native || json_array_size(list) == 0);
        any = any || native;
        item = member(condition, "minKernel");
        if (item) {
                bool recent = false;

                if (!json_is_string(item) || kernel_is_at_least(json_string_value(item), &recent) < 0)
                        return invalid(r->error, MEMBER(path, "minKernel"),
                                       "must be a version like \"4.8\"");
                all = all && recent;
                any = any || recent;
        }
        *ret_all = all;
        *ret_any = any;
        return 0;
}

static int read_rule(Reader *r, json_t *object, const Place *parent, size_t index) {
        static const char *const known[] = {
                "names",    "action",  "errnoRet", "args",  "includes",
                "excludes", "comment", "priority", "errno", /* notes of the common engines, without effect */
                NULL,
        };
        SeccompRule *rule = &r->profile->rules[r->profile->n_rules];
        const Place *path = ITEM(parent, "syscalls", index);
        bool wanted, unwanted, unused;
        int q;

        q = check_members(r, object, path, known);
        if (q < 0)
                return q;
        /* From here on it is the profile's to free. */
        *rule = (SeccompRule) { .index = index };
        r->profile->n_rules++;
        q = read_strings(r, object, path, "names", &rule->names);
        if (q < 0)
                return q;
        if (json_array_size(rule->names) == 0)
                return invalid(r->error, MEMBER(path, "names"), "must have at least one name");
        q = read_action(r, object, path, "action", "errnoRet", &rule->action);
        if (q < 0)
                return q;
        q = read_args(r, object, path, rule);
        if (q < 0)
                return q;
        q = read_condition(r, object, path, "includes", &wanted, &unused);
        if (q < 0)
                return q;
        q = read_condition(r, object, path, "excludes", &unused, &unwanted);
        if (q < 0)
                return q;
        if (!wanted || unwanted) {
                free(rule->args);
                r->profile->n_rules--;
                return 0;
        }
        r->n_filter_rules += json_array_size(rule->names) * (rule->alternatives ? rule->n_args : 1);
        if (r->n_filter_rules > SECCOMP_PROFILE_RULES_MAX)
                return invalid(r->error, path, "the profile has too many rules");
        return 0;
}

int seccomp_profile_read(json_t *object, const char *text, uint64_t capabilities, SeccompProfile *ret,
                         sd_bus_error *error) {
        _cleanup_(seccomp_profile_done) SeccompProfile profile = { .json = json_incref(object) };
        const Place *path = MEMBER(NULL, text);
        Reader r = { .profile = &profile, .capabilities = capabilities, .error = error };
        json_t *list, *item;
        size_t i;
        int q;

        if (!json_is_object(object))
                return invalid(error, path, "must be an object");
        q = read_action(&r, object, path, "defaultAction", "defaultErrnoRet", &profile.default_action);
        if (q < 0)
                return q;
        add_architecture(&r, seccomp_arch_native());
        q = read_architectures(&r, object, path, "architectures", true);
        if (q < 0)
                return q;
        q = read_architecture_map(&r, object, path);
        if (q < 0)
                return q;
        q = read_flags(&r, object, path);
        if (q < 0)
                return q;
        list = member(object, "syscalls");
        if (list && !json_is_array(list))
                return invalid(error, MEMBER(path, "syscalls"), "must be a list of objects");
        profile.rules = calloc(json_array_size(list) + 1, sizeof(SeccompRule));
        if (!profile.rules)
                return -ENOMEM;
        json_array_foreach(list, i, item) {
                q = read_rule(&r, item, path, i);
                if (q < 0)
                        return q;
        }
        *ret = profile;
        profile = (SeccompProfile) { 0 };
        return 0;
}

/* The parser of the library recurses up to 2048 deep; a profile has no use for that. */
static bool too_deep(const char *json, size_t size) {
        bool quoted = false;
        unsigned depth = 0;

        for (size_t i = 0; i < size; i++)
                if (quoted) {
                        if (json[i] == '\\')
                                i++;
                        else if (json[i] == '"')
                                quoted = false;
                } else if (json[i] == '"')
                        quoted = true;
                else if (json[i] == '{' || json[i] == '[') {
                        if (++depth > SECCOMP_PROFILE_DEPTH_MAX)
                                return true;
                } else if ((json[i] == '}' || json[i] == ']') && depth > 0)
                        depth--;
        return false;
}

int seccomp_profile_parse(const char *json, size_t size, const char *path, uint64_t capabilities,
                          SeccompProfile *ret, sd_bus_error *error) {
        json_auto_t *object = NULL;
        json_error_t why;

        if (size > SECCOMP_PROFILE_SIZE_MAX)
                return invalid(error, MEMBER(NULL, path), "is larger than 1 MiB");
        if (too_deep(json, size))
                return invalid(error, MEMBER(NULL, path), "is nested too deeply");
        object = json_loadb(json, size, JSON_REJECT_DUPLICATES, &why);
        if (!object) {
                if (json_error_code(&why) == json_error_out_of_memory)
                        return -ENOMEM;
                /* The library's text can quote the input, which need not be UTF-8. */
                (void) sd_bus_error_setf(
                        error, BERTH_ERROR_INVALID_SPEC, "%s: not valid JSON at line %d, column %d%s", path,
                        why.line, why.column,
                        json_error_code(&why) == json_error_duplicate_key      ? ": a member is given twice"
                        : json_error_code(&why) == json_error_numeric_overflow ? ": a number is too large"
                                                                               : "");
                return -EINVAL;
        }
        return seccomp_profile_read(object, path, capabilities, ret, error);
}
