/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/spec-mount-args.h"

#include <errno.h>
#include <string.h>

#include "util/strv.h"

void spec_args_mount_done(SpecArgsMount *mount) {
        free(mount->destination);
        free(mount->type);
        free(mount->source);
        (void) strv_free(mount->options);
        *mount = (SpecArgsMount) {};
}

int spec_args_absolute(const char *path, char **ret, sd_bus_error *error) {
        char *absolute;

        if (*path == '/')
                absolute = strdup(path);
        else {
                absolute = realpath(path, NULL);
                if (!absolute && errno != ENOMEM)
                        return sd_bus_error_set_errnof(error, errno, "%s: %s", path, strerror(errno));
        }
        if (!absolute)
                return -ENOMEM;
        *ret = absolute;
        return 0;
}

/* Adds options; for a bind "ro" means the whole tree that comes with it, as people expect of a read-only
 * volume. */
static int add_option(SpecArgsMount *mount, const char *option, bool bind) {
        if (bind && (strcmp(option, "ro") == 0 || strcmp(option, "readonly") == 0))
                option = "rro";
        else if (strcmp(option, "readonly") == 0)
                option = "ro";
        return *option ? strv_append(&mount->options, option) : 0;
}

/* The next part of *rest up to a colon that no backslash precedes, unescaped in place. */
static char *next_part(char **rest) {
        char *start = *rest, *to;

        if (!start)
                return NULL;
        to = start;
        for (char *from = start;; from++) {
                if (*from == '\\' && from[1] == ':')
                        *to++ = *++from;
                else if (*from == ':' || !*from) {
                        *rest = *from ? from + 1 : NULL;
                        *to = 0;
                        return start;
                } else
                        *to++ = *from;
        }
}

int spec_args_parse_volume(const char *text, SpecArgsMount *ret, sd_bus_error *error) {
        _cleanup_(spec_args_mount_done) SpecArgsMount mount = {};
        _cleanup_free_ char *copy = NULL;
        char *rest, *source, *destination, *options, *option;
        int r;

        rest = copy = strdup(text);
        if (!copy)
                return -ENOMEM;
        source = next_part(&rest);
        destination = next_part(&rest);
        options = next_part(&rest);
        if (!*source || !destination || *destination != '/' || rest)
                return usage_error(
                        error, "-v %s: it is SRC:DST or SRC:DST:OPTIONS, and DST begins with a slash", text);
        if (!strchr(source, '/') && strcmp(source, ".") != 0 && strcmp(source, "..") != 0)
                return usage_error(error, "-v %s: SRC is a path with a slash; there are no named volumes",
                                   text);
        r = spec_args_absolute(source, &mount.source, error);
        if (r < 0)
                return r;
        mount.destination = strdup(destination);
        mount.type = strdup("bind");
        if (!mount.destination || !mount.type)
                return -ENOMEM;
        r = add_option(&mount, "rbind", true);
        while (r >= 0 && (option = strsep(&options, ",")))
                r = add_option(&mount, option, true);
        if (r < 0)
                return r;
        *ret = mount;
        mount = (SpecArgsMount) {};
        return 0;
}

/* The value of WORD when it is KEY=value for one of two spellings of KEY. */
static const char *value_of(const char *word, const char *key, const char *other) {
        size_t n = strcspn(word, "=");

        if (word[n] == '=' && ((strlen(key) == n && strncmp(word, key, n) == 0) ||
                               (strlen(other) == n && strncmp(word, other, n) == 0)))
                return word + n + 1;
        return NULL;
}

int spec_args_parse_mount(const char *text, SpecArgsMount *ret, sd_bus_error *error) {
        _cleanup_(spec_args_mount_done) SpecArgsMount mount = {};
        const char *type = "bind", *source = NULL, *destination = NULL, *value;
        _cleanup_free_ char *copy = NULL;
        _cleanup_strv_ char **options = NULL;
        char *rest, *word;
        bool bind;
        int r;

        rest = copy = strdup(text);
        if (!copy)
                return -ENOMEM;
        while ((word = strsep(&rest, ","))) {
                if ((value = value_of(word, "type", "type")))
                        type = value;
                else if ((value = value_of(word, "src", "source")))
                        source = value;
                else if ((value = value_of(word, "dst", "destination")) ||
                         (value = value_of(word, "target", "target")))
                        destination = value;
                else {
                        r = strv_append(&options, word);
                        if (r < 0)
                                return r;
                }
        }
        bind = strcmp(type, "bind") == 0;
        if (!destination || *destination != '/')
                return usage_error(error, "--mount %s: it needs dst=, a path that begins with a slash",
                                   text);
        if (bind && !source)
                return usage_error(error, "--mount %s: a bind needs src=", text);
        if (bind)
                r = spec_args_absolute(source, &mount.source, error);
        else
                r = (mount.source = strdup(source ?: type)) ? 0 : -ENOMEM;
        if (r < 0)
                return r;
        mount.destination = strdup(destination);
        mount.type = strdup(type);
        if (!mount.destination || !mount.type)
                return -ENOMEM;
        if (bind && !strv_contains(options, "bind"))
                r = add_option(&mount, "rbind", true);
        for (char **o = options; r >= 0 && o && *o; o++)
                r = add_option(&mount, *o, bind);
        if (r < 0)
                return r;
        *ret = mount;
        mount = (SpecArgsMount) {};
        return 0;
}
