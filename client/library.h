/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Libraries that only some verbs need, loaded when such a verb runs: run starts without them. The names are
 * the libraries' own, so that a use reads as always. */
#pragma once

#include <jansson.h>
#include <libsmartcols.h>
#include <systemd/sd-bus.h>

#define LIBRARY_SMARTCOLS(X)             \
        X(scols_new_table)               \
        X(scols_unref_table)             \
        X(scols_table_new_column)        \
        X(scols_table_new_line)          \
        X(scols_table_enable_noheadings) \
        X(scols_line_set_data)           \
        X(scols_print_table)

#define LIBRARY_JANSSON(X)       \
        X(json_object)           \
        X(json_array)            \
        X(json_string)           \
        X(json_integer)          \
        X(json_real)             \
        X(json_true)             \
        X(json_false)            \
        X(json_null)             \
        X(json_object_set_new)   \
        X(json_array_append_new) \
        X(json_dumpf)            \
        X(json_delete)

#define LIBRARY_FIELD(name) __typeof__(name) *name;

typedef struct Smartcols {
        LIBRARY_SMARTCOLS(LIBRARY_FIELD)
} Smartcols;

typedef struct Jansson {
        LIBRARY_JANSSON(LIBRARY_FIELD)
} Jansson;

/* Loads the library for the life of the process. 0, or negative errno with a sentence in *error. */
int library_smartcols(Smartcols *ret, sd_bus_error *error);
int library_jansson(Jansson *ret, sd_bus_error *error);
