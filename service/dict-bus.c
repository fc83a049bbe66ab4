/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/dict-bus.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "util/cleanup.h"
#include "util/quote.h"

static bool signature_matches(const char *wanted, const char *signature) {
        size_t n = strlen(signature);

        for (const char *p = wanted;; p++) {
                size_t length = strcspn(p, "|");

                if (length == n && memcmp(p, signature, n) == 0)
                        return true;
                p += length;
                if (!*p)
                        return false;
        }
}

static int read_value(sd_bus_message *message, const DictKey *key, const char *error_name, void *target,
                      sd_bus_error *error) {
        const char *contents;
        char type;
        int r;

        r = sd_bus_message_peek_type(message, &type, &contents);
        if (r < 0)
                return r;
        if (!signature_matches(key->signature, contents)) {
                const char *bar = strchr(key->signature, '|');

                return sd_bus_error_setf(error, error_name, "%s: expected %.*s%s%s, got %s.", key->name,
                                         (int) strcspn(key->signature, "|"), key->signature,
                                         bar ? " or " : "", bar ? bar + 1 : "", QUOTE(contents));
        }
        r = sd_bus_message_enter_container(message, 'v', contents);
        if (r < 0)
                return r;
        r = key->read(message, key, target, error);
        if (r < 0)
                return r;
        return sd_bus_message_exit_container(message);
}

/* A key by its name: its table, its place among all keys. NULL when it is in none. */
static const DictKey *find(const DictTable *tables, size_t n_tables, const char *name,
                           const DictTable **ret_table, size_t *ret_place) {
        size_t place = 0;

        for (const DictTable *t = tables; t < tables + n_tables; t++)
                for (size_t i = 0; i < t->n_keys; i++, place++)
                        if (strcmp(t->keys[i].name, name) == 0) {
                                *ret_table = t;
                                *ret_place = place;
                                return t->keys + i;
                        }
        return NULL;
}

int dict_bus_read(sd_bus_message *message, const DictTable *tables, size_t n_tables, const char *error_name,
                  sd_bus_error *error) {
        bool seen[DICT_KEYS_MAX] = {};
        int r;

        r = sd_bus_message_enter_container(message, 'a', "{sv}");
        if (r < 0)
                return r;
        while ((r = sd_bus_message_enter_container(message, 'e', "sv")) > 0) {
                const DictTable *table;
                const DictKey *key;
                const char *name;
                size_t place;

                r = sd_bus_message_read_basic(message, 's', &name);
                if (r < 0)
                        return r;
                key = find(tables, n_tables, name, &table, &place);
                if (!key)
                        return sd_bus_error_setf(error, error_name, "Unknown key %s.", QUOTE(name));
                assert(place < DICT_KEYS_MAX);
                if (seen[place])
                        return sd_bus_error_setf(error, error_name, "%s: is given twice.", name);
                seen[place] = true;
                r = read_value(message, key, error_name, table->target, error);
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

int dict_bus_read_strings(sd_bus_message *message, size_t max, const char ***ret) {
        _cleanup_free_ const char **strings = NULL;
        size_t n = 0, room = 0;
        const char *s;
        int r;

        r = sd_bus_message_enter_container(message, 'a', "s");
        if (r < 0)
                return r;
        for (;;) {
                if (n + 1 >= room) {
                        const char **bigger;

                        room = room ? room * 2 : 16;
                        bigger = reallocarray(strings, room, sizeof(char *));
                        if (!bigger)
                                return -ENOMEM;
                        strings = bigger;
                }
                r = sd_bus_message_read_basic(message, 's', &s);
                if (r < 0)
                        return r;
                if (r == 0)
                        break;
                if (n >= max)
                        return -E2BIG;
                strings[n++] = s;
        }
        strings[n] = NULL;
        r = sd_bus_message_exit_container(message);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(strings);
        return 0;
}
