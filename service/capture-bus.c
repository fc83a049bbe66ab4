/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Capture and CaptureContainer: read arguments, call capture.c, reply. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "interfaces/names.h"
#include "service/bus-faces.h"
#include "service/capture.h"
#include "service/options-bus.h"
#include "service/spec-bus.h"
#include "util/strv.h"

static int read_input(sd_bus_message *message, const DictKey *key, void *target, sd_bus_error *error) {
        CaptureOptions *what = target;
        const void *data;
        size_t size;
        int r;

        r = sd_bus_message_read_array(message, 'y', &data, &size);
        if (r < 0)
                return r;
        what->input = malloc(size + 1);
        if (!what->input)
                return -ENOMEM;
        memcpy(what->input, data, size);
        what->input_size = size;
        return 0;
}

static int read_timeout(sd_bus_message *message, const DictKey *key, void *target, sd_bus_error *error) {
        CaptureOptions *what = target;
        int r;

        r = sd_bus_message_read_basic(message, 't', &what->timeout_usec);
        return r < 0 ? r : 0;
}

static const DictKey capture_keys[] = {
        { "StandardInputData", "ay", read_input },
        { "TimeoutUSec", "t", read_timeout },
};

static void capture_done(const CaptureResult *result, const sd_bus_error *error, void *userdata) {
        _cleanup_bus_message_ sd_bus_message *call = userdata, *reply = NULL;
        int r;

        if (error) {
                bus_reply_error(call, error);
                return;
        }
        r = sd_bus_message_new_method_return(call, &reply);
        if (r >= 0)
                r = sd_bus_message_append(reply, "ii", result->exit_code, result->exit_status);
        for (unsigned i = 0; i < ELEMENTSOF(result->output) && r >= 0; i++)
                r = sd_bus_message_append_array(reply, 'y', result->output[i], result->output_size[i]);
        if (r >= 0)
                r = sd_bus_message_send(reply);
        if (r < 0)
                (void) sd_bus_reply_method_errno(call, r, NULL);
}

int capture_bus_method_capture(sd_bus_message *message, void *userdata, sd_bus_error *error) {
        _cleanup_(capture_options_done) CaptureOptions what = CAPTURE_OPTIONS_INIT;
        const DictTable table = { capture_keys, ELEMENTSOF(capture_keys), &what };
        _cleanup_options_ StartOptions options = START_OPTIONS_INIT;
        _cleanup_strv_ char **command = NULL;
        Container *container = userdata;
        _cleanup_spec_ Spec *spec = NULL;
        Client *client;
        int r;

        r = sd_bus_message_read_strv(message, &command);
        if (r < 0)
                return r;
        r = spec_bus_read_exec(message, container->spec, command, &table, &spec, &options, error);
        if (r < 0)
                return r;
        r = bus_begin(message, ACTION_RUN, &client, error);
        if (r < 0)
                return r;
        return bus_accepted(message, capture_exec(container, TAKE_PTR(spec), &options, &what, client,
                                                  capture_done, sd_bus_message_ref(message), error));
}

int capture_bus_method_capture_container(sd_bus_message *message, void *userdata, sd_bus_error *error) {
        _cleanup_(capture_options_done) CaptureOptions what = CAPTURE_OPTIONS_INIT;
        _cleanup_(options_reader_done) OptionsReader reader = OPTIONS_READER_INIT;
        const DictTable tables[] = {
                options_bus_table(&reader),
                { capture_keys, ELEMENTSOF(capture_keys), &what },
        };
        _cleanup_options_ StartOptions options = START_OPTIONS_INIT;
        Manager *manager = connection_manager(userdata);
        _cleanup_spec_ Spec *spec = NULL;
        const char *name;
        Client *client;
        int r;

        r = sd_bus_message_read(message, "s", &name);
        if (r < 0)
                return r;
        r = spec_bus_read(message, &spec, error);
        if (r < 0)
                return r;
        r = dict_bus_read(message, tables, ELEMENTSOF(tables), BERTH_ERROR_INVALID_ARGS, error);
        if (r < 0)
                return r;
        r = options_bus_finish(&reader, &options);
        if (r < 0)
                return r;
        r = bus_begin(message, ACTION_RUN, &client, error);
        if (r < 0)
                return r;
        return bus_accepted(message, capture_run(manager, name, TAKE_PTR(spec), &options, &what, client,
                                                 capture_done, sd_bus_message_ref(message), error));
}
