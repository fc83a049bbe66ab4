/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/bus/interface.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <setjmp.h>

#include <cmocka.h>

#include "util/cleanup.h"
#include "util/strv.h"

typedef struct Attributes {
        char name[128], type[128], direction[8], access[16], value[64];
} Attributes;

typedef struct Reader {
        const char *prefix;
        char ***lines;
        char interface[128], kind[32];
        Attributes member;
        char emits[64];
        unsigned n_arguments;
} Reader;

__attribute__((format(printf, 2, 3))) static void say(Reader *reader, const char *format, ...) {
        char line[512];
        va_list ap;
        int n;

        va_start(ap, format);
        n = vsnprintf(line, sizeof(line), format, ap);
        va_end(ap);
        assert_true(n > 0 && (size_t) n < sizeof(line));
        assert_int_equal(strv_append(reader->lines, line), 0);
}

static bool wanted(const Reader *reader) {
        return strncmp(reader->interface, reader->prefix, strlen(reader->prefix)) == 0;
}

/* NAME="VALUE" up to the end of the tag. */
static void read_attributes(const char *tag, const char *end, Attributes *ret) {
        const struct {
                const char *name;
                char *value;
                size_t size;
        } known[] = {
                { "name", ret->name, sizeof(ret->name) },
                { "type", ret->type, sizeof(ret->type) },
                { "direction", ret->direction, sizeof(ret->direction) },
                { "access", ret->access, sizeof(ret->access) },
                { "value", ret->value, sizeof(ret->value) },
        };

        *ret = (Attributes) {};
        for (const char *p = tag + strcspn(tag, " \n/>"); p < end;) {
                size_t length, i;

                p += strspn(p, " \n");
                if (p >= end || *p == '/')
                        return;
                length = strcspn(p, "=");
                for (i = 0; i < ELEMENTSOF(known); i++)
                        if (strncmp(p, known[i].name, length) == 0 && !known[i].name[length])
                                break;
                if (i == ELEMENTSOF(known))
                        fail_msg("attribute %.*s", (int) length, p);
                p += length + 1;
                assert_int_equal(*p, '"');
                length = strcspn(++p, "\"");
                assert_true(length < known[i].size);
                memcpy(known[i].value, p, length);
                p += length + 1;
        }
}

static void end_member(Reader *reader) {
        if (strcmp(reader->kind, "property") == 0 && wanted(reader))
                say(reader, "%s property %s %s %s %s", reader->interface, reader->member.name,
                    reader->member.type, reader->member.access, reader->emits);
        reader->kind[0] = 0;
}

static void begin_tag(Reader *reader, const char *name, const Attributes *a, bool empty) {
        if (strcmp(name, "interface") == 0) {
                (void) snprintf(reader->interface, sizeof(reader->interface), "%s", a->name);
                say(reader, "interface %s", a->name);
        } else if (strcmp(name, "node") == 0) {
                if (a->name[0])
                        say(reader, "node %s", a->name);
        } else if (strcmp(name, "annotation") == 0) {
                if (strcmp(a->name, "org.freedesktop.DBus.Property.EmitsChangedSignal") == 0)
                        (void) snprintf(reader->emits, sizeof(reader->emits), "%s", a->value);
                else if (wanted(reader))
                        say(reader, "%s annotation %s %s", reader->interface, a->name, a->value);
        } else if (strcmp(name, "arg") == 0) {
                reader->n_arguments++;
                if (!wanted(reader))
                        return;
                if (strcmp(reader->kind, "signal") == 0)
                        say(reader, "%s signal %s %u %s %s", reader->interface, reader->member.name,
                            reader->n_arguments, a->name, a->type);
                else
                        say(reader, "%s method %s %u %s %s %s", reader->interface, reader->member.name,
                            reader->n_arguments, a->direction[0] ? a->direction : "in", a->name, a->type);
        } else {
                assert_true(strcmp(name, "method") == 0 || strcmp(name, "signal") == 0 ||
                            strcmp(name, "property") == 0);
                (void) snprintf(reader->kind, sizeof(reader->kind), "%s", name);
                (void) snprintf(reader->emits, sizeof(reader->emits), "true");
                reader->member = *a;
                reader->n_arguments = 0;
                if (strcmp(name, "property") != 0 && wanted(reader))
                        say(reader, "%s %s %s", reader->interface, name, a->name);
                if (empty)
                        end_member(reader);
        }
}

void interface_read(const char *xml, const char *prefix, char ***lines) {
        Reader reader = { .prefix = prefix, .lines = lines };

        for (const char *p = xml; (p = strchr(p, '<'));) {
                const char *end;
                Attributes a;
                char name[32];

                if (strncmp(p, "<!--", 4) == 0) {
                        p = strstr(p, "-->");
                        assert_non_null(p);
                        continue;
                }
                end = strchr(p, '>');
                assert_non_null(end);
                if (p[1] == '/') {
                        if (strncmp(p, "</method>", 9) == 0 || strncmp(p, "</signal>", 9) == 0 ||
                            strncmp(p, "</property>", 11) == 0)
                                end_member(&reader);
                } else if (p[1] != '?' && p[1] != '!') {
                        (void) snprintf(name, sizeof(name), "%.*s", (int) strcspn(p + 1, " \n/>"), p + 1);
                        read_attributes(p + 1, end, &a);
                        begin_tag(&reader, name, &a, end[-1] == '/');
                }
                p = end;
        }
}
