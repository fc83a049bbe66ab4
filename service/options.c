/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/options.h"

#include <stdlib.h>
#include <string.h>

#include "interfaces/names.h"

static const char *const on_disconnect_table[_ON_DISCONNECT_MAX] = {
        [ON_DISCONNECT_HANGUP] = "hangup",
        [ON_DISCONNECT_KEEP] = "keep",
        [ON_DISCONNECT_KILL] = "kill",
};

const char *on_disconnect_to_string(OnDisconnect value) {
        return value >= 0 && value < _ON_DISCONNECT_MAX ? on_disconnect_table[value] : NULL;
}

OnDisconnect on_disconnect_from_string(const char *text) {
        for (int i = 0; i < _ON_DISCONNECT_MAX; i++)
                if (on_disconnect_table[i] && strcmp(on_disconnect_table[i], text) == 0)
                        return (OnDisconnect) i;
        return _ON_DISCONNECT_INVALID;
}

void options_done(StartOptions *options) {
        for (size_t i = 0; i < ELEMENTSOF(options->stdio); i++)
                options->stdio[i] = fd_close(options->stdio[i]);
        for (size_t i = 0; i < options->n_numbered; i++)
                (void) fd_close(options->numbered[i].fd);
        free(options->numbered);
        options->numbered = NULL;
        options->n_numbered = 0;
}

StartOptions options_take(StartOptions *from) {
        return TAKE(*from, (StartOptions) START_OPTIONS_INIT);
}

int options_validate(const StartOptions *options, const Spec *spec, sd_bus_error *error) {
        if (options->stdio_given && spec->terminal)
                return sd_bus_error_set(
                        error, BERTH_ERROR_INVALID_ARGS,
                        "StandardInput, StandardOutput and StandardError are the terminal: leave "
                        "them or Terminal out.");
        if (options->on_disconnect == ON_DISCONNECT_HANGUP && !spec->terminal)
                return sd_bus_error_set(error, BERTH_ERROR_INVALID_ARGS,
                                        "OnDisconnect=hangup needs a terminal, use kill or keep.");
        if (options->on_disconnect == ON_DISCONNECT_KEEP && spec->terminal)
                return sd_bus_error_set(
                        error, BERTH_ERROR_NOT_SUPPORTED,
                        "OnDisconnect=keep with a terminal is not supported by this version.");
        return 0;
}
