/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A connection on which the API is served: a bus, or a private one with a single peer. It knows who is on it, and
 * shows the manager's events there. */
#pragma once

#include <stdbool.h>
#include <sys/queue.h>
#include <systemd/sd-bus.h>

#include "service/client.h"
#include "service/manager.h"

typedef struct Connection Connection;

/* The peer of a private connection, or the bus, has gone. The callee frees the connection. */
typedef void (*connection_closed_t)(Connection *connection, void *userdata);

/* Serves on a bus that is connected, or will be. Takes a reference. */
int connection_new_bus(Manager *manager, sd_bus *bus, connection_closed_t closed, void *userdata,
                       Connection **ret);

/* Serves a peer at the other end of this stream socket; takes the descriptor in any case. */
int connection_new_private(Manager *manager, int fd, connection_closed_t closed, void *userdata,
                           Connection **ret);

/* Drops the connection; its clients count as gone. Returns NULL. */
Connection *connection_free(Connection *connection);
DEFINE_CLEANUP(Connection *, connection_free);

/* Calls have come whose senders are not known yet: they are not answered. */
bool connection_has_held_calls(const Connection *connection);

/* For the bus files: what they share about a call. The client of a message is known by the time its handler runs. */
Connection *connection_of_call(sd_bus_message *message);
Client *connection_client(Connection *connection, sd_bus_message *message);
Manager *connection_manager(Connection *connection);
sd_bus *connection_bus(Connection *connection);
