/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/connection.h"

#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "config.h"
#include "interfaces/names.h"

/* $BERTHD, else the one of the build tree that this berthctl is in, else the installed one. */
static int find_berthd(char **ret) {
        _cleanup_free_ char *path = NULL;
        char self[PATH_MAX];
        const char *named;
        ssize_t n;

        named = getenv("BERTHD");
        if (named && *named)
                path = strdup(named);
        else {
                n = readlink("/proc/self/exe", self, sizeof(self) - 1);
                if (n > 0) {
                        char *directory;

                        self[n] = 0;
                        directory = dirname(self);
                        if (strcmp(strrchr(directory, '/') ?: "", "/client") == 0) {
                                if (asprintf(&path, "%s/../service/berthd", directory) < 0)
                                        return -ENOMEM;
                                if (access(path, X_OK) < 0) {
                                        free(path);
                                        path = NULL;
                                }
                        }
                }
                if (!path)
                        path = strdup(BERTH_DAEMON_PATH);
        }
        if (!path)
                return -ENOMEM;
        *ret = TAKE_PTR(path);
        return 0;
}

/* Starts berthd with one end of the socket: in a session of its own, so that what is typed here doesn't
 * reach it, with our standard error for its messages and with signals as in a fresh process. */
static int spawn_berthd(const char *path, int socket, int *ret_pidfd) {
        posix_spawn_file_actions_t actions;
        char option[sizeof("--connection-fd=") + 11];
        char *argv[] = { (char *) "berthd", option, NULL };
        posix_spawnattr_t attributes;
        sigset_t none, all;
        pid_t pid;
        int r;

        (void) snprintf(option, sizeof(option), "--connection-fd=%d", socket);
        (void) sigemptyset(&none);
        (void) sigfillset(&all);
        r = posix_spawn_file_actions_init(&actions);
        if (r != 0)
                return -r;
        r = posix_spawnattr_init(&attributes);
        if (r != 0) {
                (void) posix_spawn_file_actions_destroy(&actions);
                return -r;
        }
        /* dup2 onto itself: what takes CLOEXEC away in the child alone. */
        r = posix_spawn_file_actions_adddup2(&actions, socket, socket);
        r = r ?: posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
        r = r ?: posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
        r = r ?: posix_spawnattr_setsigmask(&attributes, &none);
        r = r ?: posix_spawnattr_setsigdefault(&attributes, &all);
        r = r
                    ?: posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK |
                                                                     POSIX_SPAWN_SETSIGDEF);
        r = r ?: posix_spawn(&pid, path, &actions, &attributes, argv, environ);
        (void) posix_spawn_file_actions_destroy(&actions);
        (void) posix_spawnattr_destroy(&attributes);
        if (r != 0)
                return -r;
        /* Our own child, not waited for yet: the number can't be another's. */
        r = pidfd_open(pid, 0);
        if (r < 0)
                return -errno;
        *ret_pidfd = r;
        return 0;
}

static int open_direct(Connection *connection, sd_bus_error *error) {
        _cleanup_fd_ int ours = -EBADF, theirs = -EBADF;
        _cleanup_free_ char *berthd = NULL;
        int pair[2], r;

        r = find_berthd(&berthd);
        if (r < 0)
                return r;
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
                return -errno;
        ours = pair[0];
        theirs = pair[1];
        r = spawn_berthd(berthd, theirs, &connection->berthd);
        if (r < 0) {
                (void) sd_bus_error_setf(error, SD_BUS_ERROR_FAILED,
                                         "can't start %s: %s; $BERTHD can name another", berthd,
                                         strerror(-r));
                return r;
        }
        r = sd_bus_new(&connection->bus);
        if (r < 0)
                return r;
        r = sd_bus_set_fd(connection->bus, ours, ours);
        if (r < 0)
                return r;
        (void) TAKE_FD(ours);
        return sd_bus_start(connection->bus);
}

static int open_bus(Connection *connection, const char *address, sd_bus_error *error) {
        int r;

        if (address) {
                r = sd_bus_new(&connection->bus);
                if (r < 0)
                        return r;
                r = sd_bus_set_address(connection->bus, address);
                if (r < 0) {
                        (void) usage_error(error, "--address=%s: not a D-Bus address", address);
                        return r;
                }
                r = sd_bus_set_bus_client(connection->bus, true);
                if (r < 0)
                        return r;
                r = sd_bus_negotiate_fds(connection->bus, true);
                if (r < 0)
                        return r;
                r = sd_bus_start(connection->bus);
        } else
                r = sd_bus_open_system(&connection->bus);
        if (r < 0) {
                (void) sd_bus_error_setf(error, SD_BUS_ERROR_FAILED, "can't connect to %s: %s",
                                         address ?: "the system bus", strerror(-r));
                return r;
        }
        return sd_bus_set_allow_interactive_authorization(connection->bus, true);
}

int connection_open(const Globals *globals, Connection **ret, sd_bus_error *error) {
        _cleanup_connection_ Connection *connection = NULL;
        int r;

        if (globals->direct && globals->address)
                return usage_error(error, "--direct and --address= exclude each other");
        if (globals->direct && !globals->direct_allowed)
                return usage_error(error,
                                   "--direct: containers of a direct connection end with it, so only run "
                                   "makes sense there");
        connection = calloc(1, sizeof(*connection));
        if (!connection)
                return -ENOMEM;
        connection->berthd = -EBADF;
        if (globals->direct)
                r = open_direct(connection, error);
        else
                r = open_bus(connection, globals->address, error);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(connection);
        return 0;
}

static int wait_for_berthd(Connection *connection, siginfo_t *ret_info) {
        int r;

        do
                r = waitid(P_PIDFD, (id_t) connection->berthd, ret_info, WEXITED);
        while (r < 0 && errno == EINTR);
        r = r < 0 ? -errno : 0;
        connection->berthd = fd_close(connection->berthd);
        return r;
}

Connection *connection_close(Connection *connection) {
        siginfo_t info;

        if (!connection)
                return NULL;
        (void) sd_bus_flush_close_unref(connection->bus);
        if (connection->berthd >= 0)
                (void) wait_for_berthd(connection, &info);
        free(connection);
        return NULL;
}

int connection_explain(Connection *connection, int r, sd_bus_error *error) {
        siginfo_t info = {};
        bool lost;

        lost = sd_bus_error_has_name(error, SD_BUS_ERROR_NO_REPLY) ||
               sd_bus_error_has_name(error, SD_BUS_ERROR_DISCONNECTED) ||
               (!sd_bus_error_is_set(error) &&
                (r == -ECONNRESET || r == -ENOTCONN || r == -EPIPE || r == -ESHUTDOWN));
        if (lost && connection->berthd >= 0) {
                sd_bus_close(connection->bus);
                if (wait_for_berthd(connection, &info) >= 0) {
                        sd_bus_error_free(error);
                        (void) sd_bus_error_setf(error, SD_BUS_ERROR_DISCONNECTED, "berthd ended (%s %d)",
                                                 info.si_code == CLD_EXITED ? "exit status" : "signal",
                                                 info.si_status);
                }
        } else if (lost) {
                sd_bus_error_free(error);
                (void) sd_bus_error_set(error, SD_BUS_ERROR_DISCONNECTED,
                                        "the connection to berthd was lost; its log may say why");
        } else if (!sd_bus_error_is_set(error))
                (void) sd_bus_error_set_errno(error, r);
        return r;
}

int connection_new_call(Connection *connection, const char *path, const char *interface, const char *member,
                        sd_bus_message **ret) {
        return sd_bus_message_new_method_call(connection->bus, ret, BERTH_BUS_NAME, path, interface, member);
}

int connection_call(Connection *connection, sd_bus_message *call, sd_bus_message **ret_reply,
                    sd_bus_error *error) {
        int r;

        r = sd_bus_call(connection->bus, call, UINT64_MAX, error, ret_reply);
        return r < 0 ? connection_explain(connection, r, error) : 0;
}

int connection_get_container(Connection *connection, const char *name, char **ret_path,
                             sd_bus_error *error) {
        _cleanup_bus_message_ sd_bus_message *call = NULL, *reply = NULL;
        const char *path;
        char *copy;
        int r;

        r = connection_new_call(connection, BERTH_PATH, BERTH_INTERFACE_MANAGER, "GetContainer", &call);
        if (r < 0)
                return r;
        r = sd_bus_message_append(call, "s", name);
        if (r < 0)
                return r;
        r = connection_call(connection, call, &reply, error);
        if (r < 0)
                return r;
        r = sd_bus_message_read(reply, "o", &path);
        if (r < 0)
                return r;
        copy = strdup(path);
        if (!copy)
                return -ENOMEM;
        *ret_path = copy;
        return 0;
}
