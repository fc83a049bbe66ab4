/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/connection.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>

#include "interfaces/names.h"
#include "service/bus-faces.h"
#include "util/fd.h"
#include "util/log.h"

#define DRIVER_NAME "org.freedesktop.DBus"
#define DRIVER_PATH "/org/freedesktop/DBus"

/* Messages that a peer leaves unread before it is cut off; on a bus its daemon has limits of its own. */
#define PRIVATE_BACKLOG_MAX 65536U

/* Calls of one client that wait for its credentials. */
#define HELD_CALLS_MAX 1024U

typedef struct Held {
        sd_bus_message *message; /* owned reference */
        TAILQ_ENTRY(Held) link;
} Held;

/* A client on a bus whose credentials have been asked for. */
typedef struct Lookup {
        Connection *connection;
        Client *client;
        sd_bus_slot *gone, *call;
        bool replaying; /* the held calls are in the bus' queue again, and come before all later ones */
        unsigned n_held;
        TAILQ_HEAD(, Held) held;
} Lookup;

struct Connection {
        Manager *manager;             /* borrowed */
        sd_bus *bus;                  /* owned reference */
        Client *peer;                 /* owned reference; NULL on a bus */
        TAILQ_HEAD(, Client) clients; /* of a bus: each referenced, each with a Lookup */
        ManagerObserver observer;
        bool observing;
        bool closing;
        sd_event_source *close_later;
        connection_closed_t closed;
        void *userdata;
};

Manager *connection_manager(Connection *connection) {
        return connection->manager;
}

sd_bus *connection_bus(Connection *connection) {
        return connection->bus;
}

Connection *connection_of_call(sd_bus_message *message) {
        return sd_bus_slot_get_userdata(sd_bus_get_current_slot(sd_bus_message_get_bus(message)));
}

static Client *find_client(Connection *connection, const char *name) {
        Client *client;

        TAILQ_FOREACH(client, &connection->clients, link)
        if (strcmp(client->name, name) == 0)
                return client;
        return NULL;
}

Client *connection_client(Connection *connection, sd_bus_message *message) {
        if (connection->peer)
                return connection->peer;
        return find_client(connection, sd_bus_message_get_sender(message));
}

/* ---- clients of a bus: known before their first call is handled, without ever waiting in place ----------------- */

static void drop_first_held(Lookup *lookup) {
        Held *held = TAILQ_FIRST(&lookup->held);

        TAILQ_REMOVE(&lookup->held, held, link);
        (void) sd_bus_message_unref(held->message);
        free(held);
        lookup->n_held--;
}

static void forget_client(Client *client) {
        Lookup *lookup = client->lookup;
        Connection *connection = lookup->connection;

        TAILQ_REMOVE(&connection->clients, client, link);
        manager_client_gone(connection->manager, client);
        (void) sd_bus_slot_unref(lookup->gone);
        (void) sd_bus_slot_unref(lookup->call);
        while (!TAILQ_EMPTY(&lookup->held))
                drop_first_held(lookup);
        client->lookup = NULL;
        free(lookup);
        (void) client_unref(client);
}

static int on_owner_changed(sd_bus_message *message, void *userdata, sd_bus_error *unused) {
        const char *name, *before, *after, *sender = sd_bus_message_get_sender(message);
        Lookup *lookup = userdata;

        /* The match is by a well-known name, which lets signals through that anybody sent straight to us. */
        if (!sender || strcmp(sender, DRIVER_NAME) != 0 ||
            sd_bus_message_read(message, "sss", &name, &before, &after) < 0)
                return 0;
        if (strcmp(name, lookup->client->name) == 0 && !*after)
                forget_client(lookup->client);
        return 0;
}

static int read_credentials(sd_bus_message *message, Client *client) {
        uint32_t uid = UINT32_MAX, pid = 0;
        int r;

        r = sd_bus_message_enter_container(message, 'a', "{sv}");
        if (r < 0)
                return r;
        while ((r = sd_bus_message_enter_container(message, 'e', "sv")) > 0) {
                const char *key;

                r = sd_bus_message_read(message, "s", &key);
                if (r < 0)
                        return r;
                if (strcmp(key, "UnixUserID") == 0)
                        r = sd_bus_message_read(message, "v", "u", &uid);
                else if (strcmp(key, "ProcessID") == 0)
                        r = sd_bus_message_read(message, "v", "u", &pid);
                else
                        r = sd_bus_message_skip(message, "v");
                if (r < 0)
                        return r;
                r = sd_bus_message_exit_container(message);
                if (r < 0)
                        return r;
        }
        if (r < 0)
                return r;
        if (uid == UINT32_MAX)
                return -ENODATA;
        client->uid = uid;
        client->pid = (pid_t) pid;
        return 0;
}

static int on_credentials(sd_bus_message *message, void *userdata, sd_bus_error *unused) {
        Lookup *lookup = userdata;
        Held *held;

        lookup->call = sd_bus_slot_unref(lookup->call);
        if (sd_bus_message_get_error(message) || read_credentials(message, lookup->client) < 0) {
                /* It left before the bus could tell who it was, so nobody waits for an answer. */
                forget_client(lookup->client);
                return 0;
        }
        /* Now the calls come in again, in their order, and find their client. */
        lookup->replaying = true;
        TAILQ_FOREACH(held, &lookup->held, link)
        if (sd_bus_enqueue_for_read(lookup->connection->bus, held->message) < 0) {
                forget_client(lookup->client);
                break;
        }
        return 0;
}

static int begin_lookup(Connection *connection, const char *name, Client **ret) {
        _cleanup_(client_unrefp) Client *client = NULL;
        _cleanup_free_ char *rule = NULL;
        Lookup *lookup;
        int r;

        r = client_new(name, false, &client);
        if (r < 0)
                return r;
        if (asprintf(&rule,
                     "type='signal',sender='" DRIVER_NAME "',path='" DRIVER_PATH "',interface='" DRIVER_NAME
                     "',member='NameOwnerChanged',arg0='%s'",
                     name) < 0) {
                rule = NULL;
                return -ENOMEM;
        }
        lookup = calloc(1, sizeof(*lookup));
        if (!lookup)
                return -ENOMEM;
        lookup->connection = connection;
        lookup->client = client;
        TAILQ_INIT(&lookup->held);
        /* First the match, then the question: whoever leaves after the answer is noticed. */
        r = sd_bus_add_match_async(connection->bus, &lookup->gone, rule, on_owner_changed, NULL, lookup);
        if (r >= 0)
                r = sd_bus_call_method_async(connection->bus, &lookup->call, DRIVER_NAME, DRIVER_PATH,
                                             DRIVER_NAME, "GetConnectionCredentials", on_credentials, lookup,
                                             "s", name);
        if (r < 0) {
                (void) sd_bus_slot_unref(lookup->gone);
                free(lookup);
                return r;
        }
        client->lookup = lookup;
        TAILQ_INSERT_TAIL(&connection->clients, client, link);
        *ret = TAKE_PTR(client);
        return 0;
}

bool connection_has_held_calls(const Connection *connection) {
        const Client *client;

        TAILQ_FOREACH(client, &connection->clients, link)
        if (!TAILQ_EMPTY(&((const Lookup *) client->lookup)->held))
                return true;
        return false;
}

static int hold(Lookup *lookup, sd_bus_message *message) {
        Held *held;

        if (lookup->n_held >= HELD_CALLS_MAX)
                return -EBUSY;
        held = calloc(1, sizeof(*held));
        if (!held)
                return -ENOMEM;
        held->message = sd_bus_message_ref(message);
        TAILQ_INSERT_TAIL(&lookup->held, held, link);
        lookup->n_held++;
        return 0;
}

static int on_message(sd_bus_message *message, void *userdata, sd_bus_error *error) {
        Connection *connection = userdata;
        const char *sender;
        Client *client;
        Lookup *lookup;
        Held *first;
        uint8_t type;
        int r;

        r = sd_bus_message_get_type(message, &type);
        if (r < 0 || type != SD_BUS_MESSAGE_METHOD_CALL)
                return 0;
        sender = sd_bus_message_get_sender(message);
        if (!sender) /* nobody to answer, and nobody whose rights could be looked at */
                return 1;
        client = find_client(connection, sender);
        if (!client) {
                r = begin_lookup(connection, sender, &client);
                if (r < 0)
                        return r;
        }
        lookup = client->lookup;
        if (client->uid != (uid_t) -1) {
                first = TAILQ_FIRST(&lookup->held);
                if (!first)
                        return 0;
                if (first->message == message) {
                        drop_first_held(lookup);
                        return 0;
                }
        }
        r = hold(lookup, message);
        if (r >= 0 && lookup->replaying)
                r = sd_bus_enqueue_for_read(connection->bus, message);
        return r < 0 ? r : 1;
}

/* ---- private connections -------------------------------------------------------------------------------------- */

/* What a bus' driver would answer: enough for clients that take the other end for a bus. Signals reach a private peer
 * without a match. */
static int driver_hello(sd_bus_message *message, void *userdata, sd_bus_error *error) {
        return sd_bus_reply_method_return(message, "s", ":1.0");
}

static int driver_nothing(sd_bus_message *message, void *userdata, sd_bus_error *error) {
        return sd_bus_reply_method_return(message, NULL);
}

static void observe(Connection *connection) {
        if (connection->observing)
                return;
        manager_observe(connection->manager, &connection->observer);
        connection->observing = true;
}

/* Signals begin with the peer's first message. One that takes us for a bus says Hello then, and gives up when anything
 * else comes before the answer. */
static int on_first_message(sd_bus_message *message, void *userdata, sd_bus_error *error) {
        observe(userdata);
        return 0;
}

static const sd_bus_vtable driver_vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_METHOD("Hello", NULL, "s", driver_hello, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("AddMatch", "s", NULL, driver_nothing, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("RemoveMatch", "s", NULL, driver_nothing, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_VTABLE_END,
};

static int on_disconnected(sd_bus_message *message, void *userdata, sd_bus_error *error) {
        Connection *connection = userdata;

        connection->closed(connection, connection->userdata);
        return 0;
}

static int on_close_later(sd_event_source *source, void *userdata) {
        Connection *connection = userdata;

        connection->closed(connection, connection->userdata);
        return 0;
}

/* A peer that does not read is not waited for, and not fed for ever. */
static void check_backlog(Connection *connection) {
        uint64_t n;

        if (!connection->peer || connection->closing || sd_bus_get_n_queued_write(connection->bus, &n) < 0 ||
            n < PRIVATE_BACKLOG_MAX)
                return;
        log_message(LOG_WARNING, "A client left %u messages unread and is cut off", PRIVATE_BACKLOG_MAX);
        connection->closing = true;
        if (sd_event_add_defer(connection->manager->event, &connection->close_later, on_close_later,
                               connection) < 0)
                connection->closing = false;
}

/* ---- the manager's events ------------------------------------------------------------------------------------- */

static void on_added(Container *container, void *userdata) {
        manager_bus_added(userdata, container);
        check_backlog(userdata);
}

static void on_removed(const Container *container, void *userdata) {
        manager_bus_removed(userdata, container);
        check_backlog(userdata);
}

static void on_changed(Container *container, const char *const *properties, void *userdata) {
        container_bus_changed(userdata, container, properties);
        check_backlog(userdata);
}

static void on_started(Container *container, void *userdata) {
        container_bus_started(userdata, container);
}

static void on_exited(Container *container, void *userdata) {
        container_bus_exited(userdata, container);
}

static void on_exec_added(Exec *exec, void *userdata) {
        process_bus_added(userdata, exec);
        check_backlog(userdata);
}

static void on_exec_exited(Exec *exec, void *userdata) {
        process_bus_exited(userdata, exec);
}

static void on_exec_removed(const Exec *exec, void *userdata) {
        process_bus_removed(userdata, exec);
        check_backlog(userdata);
}

/* ---- life ----------------------------------------------------------------------------------------------------- */

static int connection_alloc(Manager *manager, sd_bus *bus, connection_closed_t closed, void *userdata,
                            Connection **ret) {
        Connection *connection;

        connection = calloc(1, sizeof(*connection));
        if (!connection)
                return -ENOMEM;
        connection->manager = manager;
        connection->bus = sd_bus_ref(bus);
        connection->closed = closed;
        connection->userdata = userdata;
        TAILQ_INIT(&connection->clients);
        connection->observer = (ManagerObserver) {
                .added = on_added,
                .removed = on_removed,
                .changed = on_changed,
                .started = on_started,
                .exited = on_exited,
                .exec_added = on_exec_added,
                .exec_exited = on_exec_exited,
                .exec_removed = on_exec_removed,
                .userdata = connection,
        };
        *ret = connection;
        return 0;
}

Connection *connection_free(Connection *connection) {
        if (!connection)
                return NULL;
        if (connection->observing)
                manager_unobserve(connection->manager, &connection->observer);
        while (!TAILQ_EMPTY(&connection->clients))
                forget_client(TAILQ_FIRST(&connection->clients));
        if (connection->peer)
                manager_client_gone(connection->manager, connection->peer);
        (void) client_unref(connection->peer);
        (void) sd_event_source_disable_unref(connection->close_later);
        /* Not flushed: that would wait for whoever is at the other end. */
        (void) sd_bus_close_unref(connection->bus);
        free(connection);
        return NULL;
}

static int attach(Connection *connection) {
        int r;

        r = sd_bus_match_signal_async(connection->bus, NULL, "org.freedesktop.DBus.Local",
                                      "/org/freedesktop/DBus/Local", "org.freedesktop.DBus.Local",
                                      "Disconnected", on_disconnected, NULL, connection);
        if (r < 0)
                return r;
        r = sd_bus_add_object_manager(connection->bus, NULL, BERTH_PATH);
        if (r < 0)
                return r;
        r = manager_bus_attach(connection);
        if (r < 0)
                return r;
        r = container_bus_attach(connection);
        if (r < 0)
                return r;
        return process_bus_attach(connection);
}

int connection_new_bus(Manager *manager, sd_bus *bus, connection_closed_t closed, void *userdata,
                       Connection **ret) {
        _cleanup_(connection_freep) Connection *connection = NULL;
        int r;

        r = connection_alloc(manager, bus, closed, userdata, &connection);
        if (r < 0)
                return r;
        r = sd_bus_add_filter(bus, NULL, on_message, connection);
        if (r < 0)
                return r;
        r = attach(connection);
        if (r < 0)
                return r;
        observe(connection);
        *ret = TAKE_PTR(connection);
        return 0;
}

static int make_server(int fd, sd_bus **ret) {
        _cleanup_(sd_bus_unrefp) sd_bus *bus = NULL;
        sd_id128_t id;
        int r;

        r = sd_bus_new(&bus);
        if (r < 0)
                return r;
        r = sd_id128_randomize(&id);
        if (r < 0)
                return r;
        r = sd_bus_set_server(bus, 1, id);
        if (r < 0)
                return r;
        r = sd_bus_negotiate_fds(bus, 1);
        if (r < 0)
                return r;
        /* Who may do what is authorize.c's to say, not sd-bus'. */
        r = sd_bus_set_trusted(bus, 1);
        if (r < 0)
                return r;
        r = sd_bus_set_sender(bus, BERTH_BUS_NAME);
        if (r < 0)
                return r;
        r = sd_bus_set_fd(bus, fd, fd);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(bus);
        return 0;
}

static int read_peer(sd_bus *bus, Client **ret) {
        _cleanup_(sd_bus_creds_unrefp) sd_bus_creds *creds = NULL;
        _cleanup_(client_unrefp) Client *client = NULL;
        int r;

        r = client_new(NULL, true, &client);
        if (r < 0)
                return r;
        r = sd_bus_get_owner_creds(bus, SD_BUS_CREDS_EUID | SD_BUS_CREDS_PID, &creds);
        if (r < 0)
                return r;
        r = sd_bus_creds_get_euid(creds, &client->uid);
        if (r < 0)
                return r;
        (void) sd_bus_creds_get_pid(creds, &client->pid);
        *ret = TAKE_PTR(client);
        return 0;
}

int connection_new_private(Manager *manager, int fd, connection_closed_t closed, void *userdata,
                           Connection **ret) {
        _cleanup_(connection_freep) Connection *connection = NULL;
        _cleanup_(sd_bus_unrefp) sd_bus *bus = NULL;
        _cleanup_fd_ int owned = fd;
        int r;

        r = make_server(fd, &bus);
        if (r < 0)
                return r;
        TAKE_FD(owned);
        r = connection_alloc(manager, bus, closed, userdata, &connection);
        if (r < 0)
                return r;
        r = sd_bus_add_filter(bus, NULL, on_first_message, connection);
        if (r < 0)
                return r;
        r = sd_bus_add_object_vtable(bus, NULL, DRIVER_PATH, DRIVER_NAME, driver_vtable, connection);
        if (r < 0)
                return r;
        r = sd_bus_start(bus);
        if (r < 0)
                return r;
        r = read_peer(bus, &connection->peer);
        if (r < 0)
                return r;
        r = attach(connection);
        if (r < 0)
                return r;
        r = sd_bus_attach_event(bus, manager->event, SD_EVENT_PRIORITY_NORMAL);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(connection);
        return 0;
}
