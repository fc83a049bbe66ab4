/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/listener.h"

#include <errno.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <syslog.h>
#include <unistd.h>

#include "service/connection.h"
#include "util/fd.h"
#include "util/log.h"

#define CONNECTIONS_MAX 1024U
#define ACCEPT_INTERVAL_USEC (1000U * 1000U)
#define ACCEPT_BURST 1000U

typedef struct Peer {
        Listener *listener;
        Connection *connection; /* owned */
        TAILQ_ENTRY(Peer) link;
} Peer;

struct Listener {
        Manager *manager; /* borrowed */
        int socket;       /* owned */
        char *path;       /* owned: the file is ours to remove */
        sd_event_source *source;
        listener_empty_t empty;
        void *userdata;
        unsigned n_peers;
        TAILQ_HEAD(, Peer) peers;
};

static void peer_free(Peer *peer) {
        TAILQ_REMOVE(&peer->listener->peers, peer, link);
        peer->listener->n_peers--;
        (void) connection_free(peer->connection);
        free(peer);
}

int listener_new(Manager *manager, listener_empty_t empty, void *userdata, Listener **ret) {
        Listener *listener;

        listener = calloc(1, sizeof(*listener));
        if (!listener)
                return -ENOMEM;
        listener->manager = manager;
        listener->socket = -EBADF;
        listener->empty = empty;
        listener->userdata = userdata;
        TAILQ_INIT(&listener->peers);
        *ret = listener;
        return 0;
}

Listener *listener_free(Listener *listener) {
        if (!listener)
                return NULL;
        while (!TAILQ_EMPTY(&listener->peers))
                peer_free(TAILQ_FIRST(&listener->peers));
        (void) sd_event_source_disable_unref(listener->source);
        if (listener->path)
                (void) unlink(listener->path);
        (void) fd_close(listener->socket);
        free(listener->path);
        free(listener);
        return NULL;
}

static void on_closed(Connection *connection, void *userdata) {
        Peer *peer = userdata;
        Listener *listener = peer->listener;

        peer_free(peer);
        if (TAILQ_EMPTY(&listener->peers))
                listener->empty(listener->userdata);
}

int listener_add_peer(Listener *listener, int fd) {
        Peer *peer;
        int r;

        peer = calloc(1, sizeof(*peer));
        if (!peer) {
                (void) fd_close(fd);
                return -ENOMEM;
        }
        peer->listener = listener;
        r = connection_new_private(listener->manager, fd, on_closed, peer, &peer->connection);
        if (r < 0) {
                free(peer);
                return r;
        }
        TAILQ_INSERT_TAIL(&listener->peers, peer, link);
        listener->n_peers++;
        return 0;
}

static int on_connect(sd_event_source *source, int socket, uint32_t revents, void *userdata) {
        Listener *listener = userdata;
        _cleanup_fd_ int fd = -EBADF;
        struct ucred peer;
        socklen_t length = sizeof(peer);
        int r;

        fd = accept4(socket, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0)
                return 0;
        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) < 0)
                return 0;
        if (peer.uid != 0 && peer.uid != geteuid()) {
                log_message(LOG_WARNING, "User %u is not let in", peer.uid);
                return 0;
        }
        if (listener->n_peers >= CONNECTIONS_MAX) {
                log_message(LOG_WARNING, "There are %u connections already, no more are taken",
                            CONNECTIONS_MAX);
                return 0;
        }
        r = listener_add_peer(listener, TAKE_FD(fd));
        if (r < 0)
                log_message(LOG_WARNING, "Cannot serve a connection: %s", strerror(-r));
        return 0;
}

static int bind_socket(int fd, const struct sockaddr_un *address) {
        mode_t old;
        int r;

        old = umask(0177);
        r = bind(fd, (const struct sockaddr *) address, sizeof(*address)) < 0 ? -errno : 0;
        (void) umask(old);
        return r;
}

/* Whether a file is a socket whose listener is dead. */
static bool is_stale(const struct sockaddr_un *address) {
        _cleanup_fd_ int fd = -EBADF;
        struct stat st;

        if (lstat(address->sun_path, &st) < 0 || !S_ISSOCK(st.st_mode))
                return false;
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        return fd >= 0 && connect(fd, (const struct sockaddr *) address, sizeof(*address)) < 0 &&
               errno == ECONNREFUSED;
}

int listener_listen(Listener *listener, const char *path) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        _cleanup_fd_ int fd = -EBADF;
        int r;

        if (strlen(path) >= sizeof(address.sun_path))
                return -ENAMETOOLONG;
        strcpy(address.sun_path, path);
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return -errno;
        r = bind_socket(fd, &address);
        if (r == -EADDRINUSE && is_stale(&address)) {
                (void) unlink(path);
                r = bind_socket(fd, &address);
        }
        if (r < 0)
                return r;
        listener->path = strdup(path);
        if (!listener->path) {
                (void) unlink(path);
                return -ENOMEM;
        }
        if (listen(fd, SOMAXCONN) < 0)
                return -errno;
        r = sd_event_add_io(listener->manager->event, &listener->source, fd, EPOLLIN, on_connect, listener);
        if (r < 0)
                return r;
        /* Without descriptors a connection can't be taken and stays in the queue, which must not keep the loop busy. */
        r = sd_event_source_set_ratelimit(listener->source, ACCEPT_INTERVAL_USEC, ACCEPT_BURST);
        if (r < 0)
                return r;
        listener->socket = TAKE_FD(fd);
        return 0;
}
