/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reads an a{sv} by a table: one line for each key. It finds the key, refuses unknown ones, second ones
 * and those of another type, and leaves the reader function inside the variant. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-bus.h>

/* More keys than a dictionary of ours has. */
#define DICT_KEYS_MAX 96U

typedef struct DictKey DictKey;

/* Reads the value that the message stands at. 0 or negative errno; target is what the caller of
 * dict_bus_read() gave. */
typedef int (*DictRead)(sd_bus_message *message, const DictKey *key, void *target, sd_bus_error *error);

struct DictKey {
        const char *name;
        const char *signature; /* of the value; "s|h": one or the other */
        DictRead read;
        /* What the function works with; each knows its own. */
        size_t offset;
        const char *only;
        size_t max;
        void (*set)(void); /* cast to the type that `read` knows */
};

/* Keys that are read into one target. */
typedef struct DictTable {
        const DictKey *keys;
        size_t n_keys;
        void *target;
} DictTable;

/* Reads the a{sv} at the current position. Errors in the dictionary itself are of error_name and name the
 * key. */
int dict_bus_read(sd_bus_message *message, const DictTable *tables, size_t n_tables, const char *error_name,
                  sd_bus_error *error);

/* Reads an `as` of at most max strings. *ret is a malloced, NULL-terminated array, never NULL; its
 * strings are the message's. -E2BIG beyond max. */
int dict_bus_read_strings(sd_bus_message *message, size_t max, const char ***ret);
