/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What verbs print: tables, JSON, and the values of a message in both forms. */
#pragma once

#include <stdbool.h>
#include <stdio.h>
#include <systemd/sd-bus.h>

#include "client/globals.h"
#include "client/library.h"

typedef struct OutputColumn {
        const char *title; /* as the table shows it; JSON has it in small letters */
        bool number;       /* right-aligned; a number in JSON */
        bool json_only;
} OutputColumn;

/* Prints n_rows × n_columns cells (row by row, borrowed, NULL: nothing there) as the global options want
 * it. */
int output_table(const Globals *globals, const OutputColumn *columns, size_t n_columns,
                 const char *const *cells, size_t n_rows, sd_bus_error *error);

/* The message's next complete value as JSON; variants become what is in them, dictionaries with string keys
 * objects. A number that JSON's integers can't hold, such as infinity, is null. The value is the
 * caller's. */
int output_json_value(const Jansson *jansson, sd_bus_message *message, json_t **ret);

/* Prints a JSON value and a newline, and frees it. */
int output_json(const Globals *globals, const Jansson *jansson, json_t *value);

/* Prints the message's next complete value as text: the elements of an array separated by spaces, with
 * quotes where they need them. */
int output_text_value(FILE *file, sd_bus_message *message);
