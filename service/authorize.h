/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Decides whether a client may do something. Root may do all; on a private connection so may the user whom the
 * service runs as; everybody else is denied. */
#pragma once

#include <systemd/sd-bus.h>

#include "service/client.h"

typedef enum Action {
        ACTION_RUN,    /* create and start containers */
        ACTION_MANAGE, /* signal, stop, resize, remove */
        ACTION_WATCH,  /* read, wait */
        _ACTION_MAX,
} Action;

/* 0, or -EACCES with AccessDenied in *error. To be asked before any state changes. */
int authorize(const Client *client, Action action, sd_bus_error *error);
