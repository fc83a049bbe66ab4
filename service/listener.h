/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The private connections of a service that is on no bus: a listening socket, or one connected peer. */
#pragma once

#include "service/manager.h"

typedef struct Listener Listener;

/* The last private connection has gone. */
typedef void (*listener_empty_t)(void *userdata);

/* A listener without any socket. */
int listener_new(Manager *manager, listener_empty_t empty, void *userdata, Listener **ret);

/* Closes the socket and every connection, and removes the socket's file. Returns NULL. */
Listener *listener_free(Listener *listener);
DEFINE_CLEANUP(Listener *, listener_free);

/* Serves clients that connect to a socket at this path, mode 0600; only the service's own user and root are let in. A
 * socket file that nobody listens on is replaced. -EADDRINUSE: somebody does. */
int listener_listen(Listener *listener, const char *path);

/* Serves the peer at the other end of a connected stream socket; takes the descriptor. */
int listener_add_peer(Listener *listener, int fd);
