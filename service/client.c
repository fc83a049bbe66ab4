/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/client.h"

#include <assert.h>
#include <string.h>

int client_new(const char *name, bool private_connection, Client **ret) {
        Client *client;

        client = calloc(1, sizeof(*client));
        if (!client)
                return -ENOMEM;
        client->n_ref = 1;
        client->uid = (uid_t) -1;
        client->private_connection = private_connection;
        if (name) {
                client->name = strdup(name);
                if (!client->name) {
                        free(client);
                        return -ENOMEM;
                }
        }
        *ret = client;
        return 0;
}

Client *client_ref(Client *client) {
        if (client)
                client->n_ref++;
        return client;
}

Client *client_unref(Client *client) {
        if (!client)
                return NULL;
        assert(client->n_ref > 0);
        if (--client->n_ref > 0)
                return NULL;
        free(client->name);
        free(client);
        return NULL;
}
