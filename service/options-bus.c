/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdlib.h>
#include <string.h>

#include "interfaces/names.h"
#include "service/options-bus.h"
#include "service/spec-bus.h"
#include "util/quote.h"

#define invalid_args(error, ...) sd_bus_error_setf((error), BERTH_ERROR_INVALID_ARGS, __VA_ARGS__)
#define not_supported(error, ...) sd_bus_error_setf((error), BERTH_ERROR_NOT_SUPPORTED, __VA_ARGS__)

static int read_length(sd_bus_message *message, const DictKey *key, void *target, sd_bus_error *error) {
        int r;

        r = sd_bus_message_read_basic(message, 'q', (char *) target + key->offset);
        return r < 0 ? r : 0;
}

static int read_on_disconnect(sd_bus_message *message, const DictKey *key, void *target,
                              sd_bus_error *error) {
        OptionsReader *reader = target;
        OnDisconnect value;
        const char *text;
        int r;

        r = sd_bus_message_read_basic(message, 's', &text);
        if (r < 0)
                return r;
        value = on_disconnect_from_string(text);
        if (value < 0)
                return invalid_args(error, "OnDisconnect: %s is none of hangup, keep and kill.",
                                    QUOTE(text));
        reader->options.on_disconnect = value;
        return 0;
}

static int read_stdio_word(const DictKey *key, const char *text, StreamKind *ret, sd_bus_error *error) {
        if (strcmp(text, "null") == 0)
                *ret = STREAM_NULL;
        else if (strcmp(text, "pipe") == 0)
                *ret = STREAM_PIPE;
        else if (strcmp(text, "journal") == 0 && key->offset > 0)
                *ret = STREAM_JOURNAL;
        else
                return invalid_args(error,
                                    "%s: %s is neither null, pipe, journal (of an output) nor a descriptor.",
                                    key->name, QUOTE(text));
        return 0;
}

/* key->offset is the number of the stream. */
static int read_stdio(sd_bus_message *message, const DictKey *key, void *target, sd_bus_error *error) {
        OptionsReader *reader = target;
        const char *text;
        char type;
        int fd, r;

        r = sd_bus_message_peek_type(message, &type, NULL);
        if (r < 0)
                return r;
        if (type == 's') {
                r = sd_bus_message_read_basic(message, 's', &text);
                if (r < 0)
                        return r;
                r = read_stdio_word(key, text, &reader->options.streams[key->offset], error);
                if (r < 0)
                        return r;
        } else {
                r = sd_bus_message_read_basic(message, 'h', &fd);
                if (r == -EBADMSG)
                        return invalid_args(error, "%s: the message has no such descriptor.", key->name);
                if (r < 0)
                        return r;
                /* That one is the message's. */
                fd = fd_dup(fd);
                if (fd < 0)
                        return fd;
                reader->options.stdio[key->offset] = fd;
                reader->options.streams[key->offset] = STREAM_DESCRIPTOR;
        }
        return 0;
}

static int read_lease(sd_bus_message *message, const DictKey *key, void *target, sd_bus_error *error) {
        int value, r;

        r = sd_bus_message_read_basic(message, 'b', &value);
        if (r < 0)
                return r;
        return value ? not_supported(error, "Lease is not supported by this version.") : 0;
}

static int add_descriptor(StartOptions *options, uint32_t number, int fd, sd_bus_error *error) {
        NumberedFd *list;

        if (number < 3 || number > LAUNCH_NUMBER_MAX)
                return invalid_args(error, "FileDescriptors: %u is out of range (3 to %u).", number,
                                    LAUNCH_NUMBER_MAX);
        for (size_t i = 0; i < options->n_numbered; i++)
                if (options->numbered[i].number == number)
                        return invalid_args(error, "FileDescriptors: %u is given twice.", number);
        if (options->n_numbered >= LAUNCH_NUMBERED_MAX)
                return invalid_args(error, "FileDescriptors: more than %u.", LAUNCH_NUMBERED_MAX);
        list = reallocarray(options->numbered, options->n_numbered + 1, sizeof(*list));
        if (!list)
                return -ENOMEM;
        options->numbered = list;
        fd = fd_dup(fd);
        if (fd < 0)
                return fd;
        list[options->n_numbered++] = (NumberedFd) { number, fd };
        return 0;
}

static int read_descriptors(sd_bus_message *message, const DictKey *key, void *target, sd_bus_error *error) {
        OptionsReader *reader = target;
        uint32_t number;
        int fd, r;

        r = sd_bus_message_enter_container(message, 'a', "(uh)");
        if (r < 0)
                return r;
        while ((r = sd_bus_message_read(message, "(uh)", &number, &fd)) > 0) {
                r = add_descriptor(&reader->options, number, fd, error);
                if (r < 0)
                        return r;
        }
        if (r == -EBADMSG)
                return invalid_args(error, "FileDescriptors: the message has no such descriptor.");
        if (r < 0)
                return r;
        return sd_bus_message_exit_container(message);
}

static const DictKey option_keys[] = {
        { "Rows", "q", read_length, .offset = offsetof(OptionsReader, options.rows) },
        { "Columns", "q", read_length, .offset = offsetof(OptionsReader, options.columns) },
        { "XPixels", "q", read_length, .offset = offsetof(OptionsReader, options.x_pixels) },
        { "YPixels", "q", read_length, .offset = offsetof(OptionsReader, options.y_pixels) },
        { "OnDisconnect", "s", read_on_disconnect },
        { "StandardInput", "s|h", read_stdio, .offset = 0 },
        { "StandardOutput", "s|h", read_stdio, .offset = 1 },
        { "StandardError", "s|h", read_stdio, .offset = 2 },
        { "Lease", "b", read_lease },
        { "FileDescriptors", "a(uh)", read_descriptors },
};

void options_reader_done(OptionsReader *reader) {
        options_done(&reader->options);
}

DictTable options_bus_table(OptionsReader *reader) {
        return (DictTable) { option_keys, ELEMENTSOF(option_keys), reader };
}

int options_bus_finish(OptionsReader *reader, StartOptions *ret) {
        StartOptions *options = &reader->options;

        for (size_t i = 0; i < ELEMENTSOF(options->streams); i++)
                options->stdio_given |= options->streams[i] != STREAM_DEFAULT;
        /* Error follows output; into the same pipe, if it is one (streams.c). */
        if (options->streams[1] == STREAM_DESCRIPTOR && options->streams[2] == STREAM_DEFAULT) {
                options->stdio[2] = fd_dup(options->stdio[1]);
                if (options->stdio[2] < 0)
                        return options->stdio[2];
                options->streams[2] = STREAM_DESCRIPTOR;
        }
        *ret = options_take(options);
        return 0;
}

int options_bus_read(sd_bus_message *message, StartOptions *ret, sd_bus_error *error) {
        _cleanup_(options_reader_done) OptionsReader reader = OPTIONS_READER_INIT;
        DictTable table = options_bus_table(&reader);
        int r;

        r = dict_bus_read(message, &table, 1, BERTH_ERROR_INVALID_ARGS, error);
        if (r < 0)
                return r;
        return options_bus_finish(&reader, ret);
}
