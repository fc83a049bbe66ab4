/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The way to a berthd: on the system bus, at an address, or forked for this one command (--direct). Calls
 * are made without a time limit: launches, stops and polkit's questions take as long as they take. */
#pragma once

#include <systemd/sd-bus.h>

#include "client/globals.h"
#include "util/cleanup.h"

typedef struct Connection {
        sd_bus *bus; /* owned */
        int berthd;  /* owned: the pidfd of the berthd that is ours, or -EBADF */
} Connection;

/* Opens the connection that the global options ask for. *ret is the caller's. */
int connection_open(const Globals *globals, Connection **ret, sd_bus_error *error);

/* Closes it. A berthd of our own ends its containers then and exits; this waits for that, so that nothing is
 * left when berthctl returns. Accepts NULL, returns NULL. */
Connection *connection_close(Connection *connection);
DEFINE_CLEANUP(Connection *, connection_close);
#define _cleanup_connection_ _cleanup_(connection_closep)

/* Puts into *error what became of the connection, when r or *error mean that it was lost. Otherwise *error
 * gets a sentence about r unless it has one. Returns r. */
int connection_explain(Connection *connection, int r, sd_bus_error *error);

/* A call of the service, its arguments still to be appended. */
int connection_new_call(Connection *connection, const char *path, const char *interface, const char *member,
                        sd_bus_message **ret);

/* Sends a call and waits for the reply, which is the caller's; ret_reply may be NULL. */
int connection_call(Connection *connection, sd_bus_message *call, sd_bus_message **ret_reply,
                    sd_bus_error *error);

/* The object path of a container, malloced; NoSuchContainer from the service. */
int connection_get_container(Connection *connection, const char *name, char **ret_path, sd_bus_error *error);
