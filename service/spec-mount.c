/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The option words of a mount: those that mount_setattr(2) knows become bits, those of binds and
 * propagation become fields, and the rest is for the file system. */
#include "service/spec.h"

#include <limits.h>
#include <linux/mount.h>
#include <string.h>

#include "service/spec-check.h"
#include "util/path.h"
#include "util/quote.h"
#include "util/strv.h"

#define WORD_MAX 255U /* fsconfig(2) takes 256 bytes for a value */
#define DATA_MAX 4096U
#define TYPE_MAX 64U

/* A word, and with an "r" in front of it the same for all mounts below. The bits of mask are replaced by
 * those of set; the kernel wants the kinds of access time as a number of several bits, cleared as one. */
typedef struct AttributeWord {
        const char *word;
        uint64_t mask, set;
} AttributeWord;

static const AttributeWord attribute_words[] = {
        { "ro", MOUNT_ATTR_RDONLY, MOUNT_ATTR_RDONLY },
        { "rw", MOUNT_ATTR_RDONLY, 0 },
        { "nosuid", MOUNT_ATTR_NOSUID, MOUNT_ATTR_NOSUID },
        { "suid", MOUNT_ATTR_NOSUID, 0 },
        { "nodev", MOUNT_ATTR_NODEV, MOUNT_ATTR_NODEV },
        { "dev", MOUNT_ATTR_NODEV, 0 },
        { "noexec", MOUNT_ATTR_NOEXEC, MOUNT_ATTR_NOEXEC },
        { "exec", MOUNT_ATTR_NOEXEC, 0 },
        { "noatime", MOUNT_ATTR__ATIME, MOUNT_ATTR_NOATIME },
        { "strictatime", MOUNT_ATTR__ATIME, MOUNT_ATTR_STRICTATIME },
        { "relatime", MOUNT_ATTR__ATIME, MOUNT_ATTR_RELATIME },
        /* What mount(2) makes of the negative ones: the kernel's default. */
        { "atime", MOUNT_ATTR__ATIME, MOUNT_ATTR_RELATIME },
        { "norelatime", MOUNT_ATTR__ATIME, MOUNT_ATTR_RELATIME },
        { "nostrictatime", MOUNT_ATTR__ATIME, MOUNT_ATTR_RELATIME },
        { "nodiratime", MOUNT_ATTR_NODIRATIME, MOUNT_ATTR_NODIRATIME },
        { "diratime", MOUNT_ATTR_NODIRATIME, 0 },
        { "nosymfollow", MOUNT_ATTR_NOSYMFOLLOW, MOUNT_ATTR_NOSYMFOLLOW },
        { "symfollow", MOUNT_ATTR_NOSYMFOLLOW, 0 },
};

static const struct {
        const char *word;
        uint64_t propagation;
} propagation_words[] = {
        { "private", MS_PRIVATE },
        { "shared", MS_SHARED },
        { "slave", MS_SLAVE },
        { "unbindable", MS_UNBINDABLE },
};

static const char *const unsupported_words[] = { "idmap", "ridmap", "tmpcopyup" };

static const AttributeWord *find_attribute(const char *word) {
        for (size_t i = 0; i < ELEMENTSOF(attribute_words); i++)
                if (strcmp(attribute_words[i].word, word) == 0)
                        return &attribute_words[i];
        return NULL;
}

static uint64_t find_propagation(const char *word) {
        for (size_t i = 0; i < ELEMENTSOF(propagation_words); i++)
                if (strcmp(propagation_words[i].word, word) == 0)
                        return propagation_words[i].propagation;
        return 0;
}

static bool is_unsupported(const char *word) {
        for (size_t i = 0; i < ELEMENTSOF(unsupported_words); i++) {
                size_t n = strlen(unsupported_words[i]);

                if (strncmp(word, unsupported_words[i], n) == 0 && (!word[n] || word[n] == '='))
                        return true;
        }
        return false;
}

/* All bits of the mask are cleared and those of set are set again. */
static void apply(const AttributeWord *a, uint64_t *set, uint64_t *clear) {
        *set = (*set & ~a->mask) | a->set;
        *clear = (*clear & ~a->mask) | (a->mask == MOUNT_ATTR__ATIME ? a->mask : a->mask & ~a->set);
}

/* The recursive ones are put on first, so they are the last word only where no other follows: earlier
 * words about the same bits are taken back. */
static void apply_recursive(const AttributeWord *a, SpecMount *mount) {
        apply(a, &mount->attr_set_recursive, &mount->attr_clear_recursive);
        mount->attr_set &= ~a->mask;
        mount->attr_clear &= ~a->mask;
}

static int append_data(char **data, const char *word) {
        char *bigger;
        size_t n = *data ? strlen(*data) : 0;

        bigger = realloc(*data, n + strlen(word) + 2);
        if (!bigger)
                return -ENOMEM;
        if (n > 0)
                bigger[n++] = ',';
        strcpy(bigger + n, word);
        *data = bigger;
        return 0;
}

static int read_word(SpecMount *mount, const char *word, sd_bus_error *error) {
        const char *bare = word[0] == 'r' ? word + 1 : "";
        const AttributeWord *attribute;
        uint64_t propagation;

        if (!word[0])
                return spec_invalid(error, "Mounts: %s: an option is empty.", QUOTE(mount->destination));
        if (strlen(word) > WORD_MAX)
                return spec_invalid(error, "Mounts: %s: the option %s is too long.",
                                    QUOTE(mount->destination), QUOTE(word));
        if (is_unsupported(word))
                return spec_not_supported(error,
                                          "Mounts: %s: the option %s is not supported by this version.",
                                          QUOTE(mount->destination), QUOTE(word));
        if (strcmp(word, "defaults") == 0)
                return 0;
        if (strcmp(word, "bind") == 0 || strcmp(word, "rbind") == 0) {
                mount->bind = true;
                mount->recursive = word[0] == 'r';
                return 0;
        }
        /* First the word as it stands: "relatime" begins with an "r" too. */
        attribute = find_attribute(word);
        if (attribute) {
                apply(attribute, &mount->attr_set, &mount->attr_clear);
                if (attribute->mask == MOUNT_ATTR_RDONLY)
                        mount->superblock_read_only = attribute->set != 0;
                return 0;
        }
        attribute = find_attribute(bare);
        if (attribute) {
                apply_recursive(attribute, mount);
                if (attribute->mask == MOUNT_ATTR_RDONLY)
                        mount->superblock_read_only = attribute->set != 0;
                return 0;
        }
        propagation = find_propagation(word) ?: find_propagation(bare);
        if (propagation) {
                mount->propagation_recursive = find_propagation(word) == 0;
                mount->propagation = propagation;
                return 0;
        }
        return append_data(&mount->data, word);
}

/* An entry may hold several words, as in the fourth field of fstab(5). */
static int read_entry(SpecMount *mount, const char *entry, sd_bus_error *error) {
        _cleanup_free_ char *copy = NULL;
        char *rest, *word;
        int r;

        copy = rest = strdup(entry);
        if (!copy)
                return -ENOMEM;
        while ((word = strsep(&rest, ","))) {
                r = read_word(mount, word, error);
                if (r < 0)
                        return r;
                if (mount->data && strlen(mount->data) > DATA_MAX)
                        return spec_invalid(error, "Mounts: %s: has too many options.",
                                            QUOTE(mount->destination));
        }
        return 0;
}

static int finish_bind(SpecMount *mount, const char *type, const char *source, sd_bus_error *error) {
        const char *where = mount->destination;

        if (type[0] && strcmp(type, "bind") != 0 && strcmp(type, "none") != 0)
                return spec_invalid(error, "Mounts: %s: the type %s and a bind contradict each other.",
                                    QUOTE(where), QUOTE(type));
        if (mount->data)
                return spec_invalid(error, "Mounts: %s: a bind can't have the option %s.", QUOTE(where),
                                    QUOTE(mount->data));
        if (source[0] != '/' || strlen(source) >= PATH_MAX)
                return spec_invalid(error, "Mounts: %s: the source of a bind must be an absolute path.",
                                    QUOTE(where));
        mount->superblock_read_only = false;
        mount->type = strdup("bind");
        mount->source = strdup(source);
        return mount->type && mount->source ? 0 : -ENOMEM;
}

static int finish_filesystem(SpecMount *mount, const char *type, const char *source, sd_bus_error *error) {
        const char *where = mount->destination;
        uint64_t said = mount->attr_set | mount->attr_clear;

        if (!type[0] || strcmp(type, "none") == 0)
                return spec_invalid(error, "Mounts: %s: needs a type, or the option bind.", QUOTE(where));
        if (strlen(type) > TYPE_MAX ||
            type[strspn(type, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-")])
                return spec_invalid(error, "Mounts: %s: %s is not the type of a file system.", QUOTE(where),
                                    QUOTE(type));
        if (strlen(source) >= PATH_MAX)
                return spec_invalid(error, "Mounts: %s: the source is too long.", QUOTE(where));
        /* There is nothing below a new file system. */
        mount->attr_set |= mount->attr_set_recursive & ~said;
        mount->attr_clear |= mount->attr_clear_recursive & ~said;
        mount->attr_set_recursive = mount->attr_clear_recursive = 0;
        mount->type = strdup(type);
        mount->source = strdup(source[0] ? source : type);
        return mount->type && mount->source ? 0 : -ENOMEM;
}

void spec_mount_done(SpecMount *mount) {
        free(mount->destination);
        free(mount->type);
        free(mount->source);
        free(mount->data);
}

int spec_add_mount(Spec *spec, const char *destination, const char *type, const char *source,
                   char *const *options, sd_bus_error *error) {
        _cleanup_(spec_mount_done) SpecMount mount = {};
        SpecMount *bigger;
        int r;

        if (spec->n_mounts >= SPEC_MOUNTS_MAX)
                return spec_invalid(error, "Mounts: there are more than %u.", SPEC_MOUNTS_MAX);
        if (!destination[0] || strlen(destination) >= PATH_MAX - 1)
                return spec_invalid(error, "Mounts: a destination is empty or longer than %i bytes.",
                                    PATH_MAX - 2);
        if (strv_length(options) > SPEC_MOUNT_OPTIONS_MAX)
                return spec_invalid(error, "Mounts: %s: has too many options.", QUOTE(destination));
        r = path_normalise(destination, &mount.destination);
        if (r < 0)
                return r;
        if (strcmp(mount.destination, "/") == 0)
                return spec_invalid(error, "Mounts: nothing can be mounted on the root itself (%s).",
                                    QUOTE(destination));

        mount.bind = strcmp(type, "bind") == 0;
        for (char *const *o = options; o && *o; o++) {
                r = read_entry(&mount, *o, error);
                if (r < 0)
                        return r;
        }
        r = mount.bind ? finish_bind(&mount, type, source, error)
                       : finish_filesystem(&mount, type, source, error);
        if (r < 0)
                return r;

        bigger = reallocarray(spec->mounts, spec->n_mounts + 1, sizeof(SpecMount));
        if (!bigger)
                return -ENOMEM;
        spec->mounts = bigger;
        bigger[spec->n_mounts++] = TAKE(mount, (SpecMount) {});
        return 0;
}
