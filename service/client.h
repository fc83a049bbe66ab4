/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Who asked. A client is a unique name on a bus, or the one peer of a private connection; whoever keeps one past a
 * call keeps a reference, and the manager tells everybody when it goes (manager_client_gone()). Credentials come from
 * the bus or the socket, never from what a message says. */
#pragma once

#include <stdbool.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "util/cleanup.h"

typedef struct Client {
        unsigned n_ref;
        uid_t uid;  /* (uid_t) -1 until it is known */
        pid_t pid;  /* for display */
        char *name; /* owned: unique name, or NULL on a private connection */
        bool private_connection;
        bool gone;
        void *lookup;             /* the connection's own: what waits for the credentials (connection.c) */
        TAILQ_ENTRY(Client) link; /* of its connection */
} Client;

/* A client with one reference. */
int client_new(const char *name, bool private_connection, Client **ret);
Client *client_ref(Client *client);
Client *client_unref(Client *client);
DEFINE_CLEANUP(Client *, client_unref);
