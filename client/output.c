/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/output.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "util/cleanup.h"

#define DEPTH_MAX 16

static int print_table(const OutputColumn *columns, size_t n_columns, const char *const *cells,
                       size_t n_rows, sd_bus_error *error) {
        struct libscols_table *table;
        Smartcols scols;
        int r;

        r = library_smartcols(&scols, error);
        if (r < 0)
                return r;
        table = scols.scols_new_table();
        if (!table)
                return -ENOMEM;
        r = 0;
        for (size_t c = 0; c < n_columns && r == 0; c++)
                if (!columns[c].json_only &&
                    !scols.scols_table_new_column(table, columns[c].title, 0,
                                                  columns[c].number ? SCOLS_FL_RIGHT : 0))
                        r = -ENOMEM;
        for (size_t i = 0; i < n_rows && r == 0; i++) {
                struct libscols_line *line;
                size_t at = 0;

                line = scols.scols_table_new_line(table, NULL);
                if (!line)
                        r = -ENOMEM;
                for (size_t c = 0; c < n_columns && r == 0; c++)
                        if (!columns[c].json_only)
                                r = scols.scols_line_set_data(line, at++, cells[i * n_columns + c] ?: "");
        }
        if (r == 0)
                r = scols.scols_print_table(table);
        scols.scols_unref_table(table);
        return r < 0 ? r : 0;
}

static int print_table_as_json(const Globals *globals, const OutputColumn *columns, size_t n_columns,
                               const char *const *cells, size_t n_rows, sd_bus_error *error) {
        json_t *rows, *row, *value;
        Jansson j;
        int r;

        r = library_jansson(&j, error);
        if (r < 0)
                return r;
        rows = j.json_array();
        for (size_t i = 0; i < n_rows; i++) {
                row = j.json_object();
                for (size_t c = 0; c < n_columns; c++) {
                        const char *cell = cells[i * n_columns + c];
                        char key[32] = {};

                        for (size_t k = 0; columns[c].title[k] && k < sizeof(key) - 1; k++)
                                key[k] = (char) tolower(columns[c].title[k]);
                        if (!cell)
                                value = j.json_null();
                        else if (columns[c].number)
                                value = j.json_integer(strtoll(cell, NULL, 10));
                        else
                                value = j.json_string(cell);
                        (void) j.json_object_set_new(row, key, value);
                }
                if (j.json_array_append_new(rows, row) < 0)
                        return -ENOMEM;
        }
        return output_json(globals, &j, rows);
}

int output_table(const Globals *globals, const OutputColumn *columns, size_t n_columns,
                 const char *const *cells, size_t n_rows, sd_bus_error *error) {
        if (globals->json != JSON_MODE_OFF)
                return print_table_as_json(globals, columns, n_columns, cells, n_rows, error);
        return print_table(columns, n_columns, cells, n_rows, error);
}

int output_json(const Globals *globals, const Jansson *jansson, json_t *value) {
        int r;

        if (!value)
                return -ENOMEM;
        r = jansson->json_dumpf(value, stdout,
                                globals->json == JSON_MODE_PRETTY ? JSON_INDENT(8) | JSON_ENCODE_ANY
                                                                  : JSON_COMPACT | JSON_ENCODE_ANY);
        if (r >= 0)
                r = putchar('\n');
        /* Nobody else holds a reference: what json_decref() would come to. */
        jansson->json_delete(value);
        return r < 0 ? -EIO : 0;
}

/* Any basic value, read into the widest of its kind. */
typedef struct Basic {
        bool is_text, is_signed, is_boolean, is_real;
        const char *text;
        uint64_t number;
        double real;
} Basic;

static int read_basic(sd_bus_message *message, char type, Basic *ret) {
        union {
                const char *text;
                uint8_t y;
                uint16_t q;
                int16_t n;
                uint32_t u;
                int32_t i;
                uint64_t t;
                int64_t x;
                int b;
                double d;
        } value;
        Basic basic = {};
        int r;

        r = sd_bus_message_read_basic(message, type, &value);
        if (r < 0)
                return r;
        switch (type) {
        case 's':
        case 'o':
        case 'g':
                basic.is_text = true;
                basic.text = value.text;
                break;
        case 'y':
                basic.number = value.y;
                break;
        case 'q':
                basic.number = value.q;
                break;
        case 'n':
                basic.is_signed = true;
                basic.number = (uint64_t) (int64_t) value.n;
                break;
        case 'u':
                basic.number = value.u;
                break;
        case 'i':
        case 'h':
                basic.is_signed = true;
                basic.number = (uint64_t) (int64_t) value.i;
                break;
        case 't':
                basic.number = value.t;
                break;
        case 'x':
                basic.is_signed = true;
                basic.number = (uint64_t) value.x;
                break;
        case 'b':
                basic.is_boolean = true;
                basic.number = (uint64_t) value.b;
                break;
        case 'd':
                basic.is_real = true;
                basic.real = value.d;
                break;
        default:
                return -EBADMSG;
        }
        *ret = basic;
        return 0;
}

static json_t *basic_to_json(const Jansson *j, const Basic *basic) {
        if (basic->is_text)
                return j->json_string(basic->text);
        if (basic->is_boolean)
                return basic->number ? j->json_true() : j->json_false();
        if (basic->is_real)
                return j->json_real(basic->real);
        if (!basic->is_signed && basic->number > INT64_MAX)
                return j->json_null();
        return j->json_integer((json_int_t) basic->number);
}

static int json_value(const Jansson *j, sd_bus_message *message, unsigned depth, json_t **ret);

/* The elements of a container that was entered, up to its end. Frees *into on errors. */
static int json_elements(const Jansson *j, sd_bus_message *message, bool dictionary, unsigned depth,
                         json_t *into) {
        json_t *value = NULL;
        Basic key = {};
        int r;

        while ((r = sd_bus_message_at_end(message, false)) == 0) {
                if (dictionary) {
                        r = sd_bus_message_enter_container(message, 'e', NULL);
                        if (r >= 0)
                                r = read_basic(message, 's', &key);
                }
                if (r >= 0)
                        r = json_value(j, message, depth, &value);
                if (r >= 0 && dictionary)
                        r = sd_bus_message_exit_container(message);
                if (r < 0)
                        break;
                if (dictionary)
                        r = j->json_object_set_new(into, key.text, value);
                else
                        r = j->json_array_append_new(into, value);
                if (r < 0) {
                        r = -ENOMEM;
                        break;
                }
        }
        if (r < 0)
                j->json_delete(into);
        return r < 0 ? r : 0;
}

static int json_value(const Jansson *j, sd_bus_message *message, unsigned depth, json_t **ret) {
        const char *contents;
        json_t *value;
        bool dictionary;
        Basic basic;
        char type;
        int r;

        if (depth == 0)
                return -ELOOP;
        r = sd_bus_message_peek_type(message, &type, &contents);
        if (r <= 0)
                return r < 0 ? r : -EBADMSG;
        if (!strchr("avr", type)) {
                r = read_basic(message, type, &basic);
                if (r < 0)
                        return r;
                *ret = basic_to_json(j, &basic);
                return *ret ? 0 : -ENOMEM;
        }
        dictionary = type == 'a' && strncmp(contents, "{s", 2) == 0;
        r = sd_bus_message_enter_container(message, type, contents);
        if (r < 0)
                return r;
        if (type == 'v')
                r = json_value(j, message, depth - 1, &value);
        else {
                value = dictionary ? j->json_object() : j->json_array();
                if (!value)
                        return -ENOMEM;
                r = json_elements(j, message, dictionary, depth - 1, value);
        }
        if (r < 0)
                return r;
        r = sd_bus_message_exit_container(message);
        if (r < 0) {
                j->json_delete(value);
                return r;
        }
        *ret = value;
        return 0;
}

int output_json_value(const Jansson *jansson, sd_bus_message *message, json_t **ret) {
        return json_value(jansson, message, DEPTH_MAX, ret);
}

/* One word that a shell reads back as it was. At the top a value stands alone on its line and needs no
 * quotes, but control characters are never printed as they are: they could be a terminal's orders. */
static void print_word(FILE *file, const char *text, bool quote) {
        static const char plain[] =
                "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:@%,";
        bool control = false;

        for (const char *p = text; *p; p++)
                control = control || iscntrl((unsigned char) *p);
        if (!control && (!quote || (*text && !text[strspn(text, plain)]))) {
                (void) fputs(text, file);
                return;
        }
        (void) fputs(control ? "$'" : "'", file);
        for (; *text; text++)
                if (control && iscntrl((unsigned char) *text))
                        (void) fprintf(file, "\\x%02x", (unsigned) (unsigned char) *text);
                else if (control && (*text == '\'' || *text == '\\'))
                        (void) fprintf(file, "\\%c", *text);
                else if (*text == '\'')
                        (void) fputs("'\\''", file);
                else
                        (void) fputc(*text, file);
        (void) fputc('\'', file);
}

static void print_basic(FILE *file, const Basic *basic, bool quote) {
        if (basic->is_text)
                print_word(file, basic->text, quote);
        else if (basic->is_boolean)
                (void) fputs(basic->number ? "yes" : "no", file);
        else if (basic->is_real)
                (void) fprintf(file, "%g", basic->real);
        else if (basic->is_signed)
                (void) fprintf(file, "%" PRIi64, (int64_t) basic->number);
        else if (basic->number == UINT64_MAX)
                (void) fputs("infinity", file);
        else
                (void) fprintf(file, "%" PRIu64, basic->number);
}

static int text_value(FILE *file, sd_bus_message *message, bool quote, unsigned depth) {
        const char *contents;
        bool first = true;
        Basic basic;
        char type;
        int r;

        if (depth == 0)
                return -ELOOP;
        r = sd_bus_message_peek_type(message, &type, &contents);
        if (r <= 0)
                return r < 0 ? r : -EBADMSG;
        if (!strchr("avre", type)) {
                r = read_basic(message, type, &basic);
                if (r >= 0)
                        print_basic(file, &basic, quote);
                return r;
        }
        r = sd_bus_message_enter_container(message, type, contents);
        if (r < 0)
                return r;
        while ((r = sd_bus_message_at_end(message, false)) == 0) {
                if (!first)
                        (void) fputc(type == 'e' ? '=' : ' ', file);
                first = false;
                r = text_value(file, message, quote || type != 'v', depth - 1);
                if (r < 0)
                        return r;
        }
        return r < 0 ? r : sd_bus_message_exit_container(message);
}

int output_text_value(FILE *file, sd_bus_message *message) {
        return text_value(file, message, false, DEPTH_MAX);
}
