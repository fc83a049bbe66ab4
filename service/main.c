/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* berthd(8): arguments, event loop, signals, and when to end. */
#include <errno.h>
#include <getopt.h>
#include <linux/capability.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <syslog.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-daemon.h>
#include <systemd/sd-event.h>
#include <unistd.h>

#include "config.h"
#include "interfaces/names.h"
#include "service/connection.h"
#include "service/errors.h"
#include "service/hardening.h"
#include "service/listener.h"
#include "service/manager.h"
#include "util/fd.h"
#include "util/log.h"

/* RequestName's answer, by the D-Bus Specification: the primary owner. Not to be it is no error there. */
#define NAME_IS_OURS 1

#define NOTIFY_BARRIER_USEC (5U * 1000U * 1000U)

static uint64_t arg_idle_timeout_usec = 60U * 1000U * 1000U;
static const char *arg_listen = NULL;
static int arg_connection_fd = -1;

typedef struct Service {
        sd_event *event;
        sd_bus *bus; /* the system bus, or NULL */
        Manager *manager;
        Connection *connection; /* on the bus */
        Listener *listener;
        sd_event_source *idle_timer;
        uint64_t last_call_usec;
        bool named;  /* the bus name is ours */
        bool ending; /* the end is near: by a signal, the peer, or idleness */
        bool failed;
} Service;

/* ---- the end -------------------------------------------------------------------------------------------------- */

static void begin_end(Service *service, bool at_once) {
        if (!service->ending)
                (void) sd_notify(0, "STOPPING=1");
        service->ending = true;
        manager_stop_all(service->manager, at_once); /* on_emptied() ends the loop */
}

static int on_signal(sd_event_source *source, const struct signalfd_siginfo *si, void *userdata) {
        Service *service = userdata;

        /* A second one is impatience. */
        begin_end(service, service->ending);
        return 0;
}

static void on_peers_gone(void *userdata) {
        Service *service = userdata;

        /* With --listen clients come and go; a direct service lives for its one client. */
        if (!arg_listen)
                begin_end(service, true);
}

static void on_bus_closed(Connection *connection, void *userdata) {
        Service *service = userdata;

        log_message(LOG_ERR, "The bus has gone, ending");
        service->failed = true;
        service->connection = connection_free(service->connection);
        begin_end(service, false);
}

/* ---- idle exit ------------------------------------------------------------------------------------------------ */

static void arm_idle_timer(Service *service, uint64_t after_usec);

static bool drained(const Service *service) {
        return !service->connection || !connection_has_held_calls(service->connection);
}

static int on_turn(sd_event_source *source, void *userdata) {
        Service *service = userdata;

        return drained(service) ? sd_event_exit(service->event, 0) : 0;
}

static int on_name_released(sd_bus_message *message, void *userdata, sd_bus_error *error) {
        Service *service = userdata;

        /* Whatever was sent to us by our name has come in before this answer. It was answered, or waits until the bus
         * says whose it is. */
        if (drained(service) || sd_event_add_post(service->event, NULL, on_turn, service) < 0)
                return sd_event_exit(service->event, 0);
        return 0;
}

static void exit_idle(Service *service) {
        /* First systemd is told: a call that comes from now on starts us again once we are gone, and is not lost. */
        (void) sd_notify(0, "STOPPING=1");
        (void) sd_notify_barrier(0, NOTIFY_BARRIER_USEC);
        service->ending = true;
        service->manager->stopping = true;
        if (!service->named ||
            sd_bus_release_name_async(service->bus, NULL, BERTH_BUS_NAME, on_name_released, service) < 0)
                (void) sd_event_exit(service->event, 0);
}

static int on_idle_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        Service *service = userdata;
        uint64_t now, idle_since;

        if (service->ending || !manager_empty(service->manager))
                return 0;
        if (sd_event_now(service->event, CLOCK_MONOTONIC, &now) < 0)
                return 0;
        idle_since = service->last_call_usec;
        if (now < idle_since + arg_idle_timeout_usec) {
                arm_idle_timer(service, idle_since + arg_idle_timeout_usec - now);
                return 0;
        }
        if (service->manager->scopes && scope_manager_busy(service->manager->scopes)) {
                arm_idle_timer(service, arg_idle_timeout_usec);
                return 0;
        }
        exit_idle(service);
        return 0;
}

static void arm_idle_timer(Service *service, uint64_t after_usec) {
        service->idle_timer = sd_event_source_disable_unref(service->idle_timer);
        if (!service->bus || arg_idle_timeout_usec == UINT64_MAX)
                return;
        if (sd_event_add_time_relative(service->event, &service->idle_timer, CLOCK_MONOTONIC, after_usec, 0,
                                       on_idle_timer, service) < 0)
                log_message(LOG_WARNING, "Cannot watch for idleness, staying");
}

static int note_call(sd_bus_message *message, void *userdata, sd_bus_error *error) {
        Service *service = userdata;

        (void) sd_event_now(service->event, CLOCK_MONOTONIC, &service->last_call_usec);
        return 0;
}

/* ---- the bus -------------------------------------------------------------------------------------------------- */

static int on_name_acquired(sd_bus_message *message, void *userdata, sd_bus_error *unused) {
        const sd_bus_error *error = sd_bus_message_get_error(message);
        Service *service = userdata;
        uint32_t outcome = 0;

        if (!error)
                (void) sd_bus_message_read(message, "u", &outcome);
        if (outcome != NAME_IS_OURS) {
                log_message(LOG_ERR, "Cannot have the name %s: %s", BERTH_BUS_NAME,
                            error ? error->message : "somebody else has it");
                service->failed = true;
                begin_end(service, true);
                return 0;
        }
        service->named = true;
        (void) sd_notify(0, "READY=1\nSTATUS=Serving " BERTH_BUS_NAME);
        (void) sd_event_now(service->event, CLOCK_MONOTONIC, &service->last_call_usec);
        arm_idle_timer(service, arg_idle_timeout_usec);
        return 0;
}

static int request_name(Service *service) {
        int r;

        r = sd_bus_request_name_async(service->bus, NULL, BERTH_BUS_NAME, 0, on_name_acquired, service);
        if (r < 0)
                log_message(LOG_ERR, "Cannot ask for the name %s: %s", BERTH_BUS_NAME, strerror(-r));
        return r;
}

static void on_emptied(void *userdata) {
        Service *service = userdata;

        if (service->ending) {
                if (!service->named || service->manager->stopping)
                        (void) sd_event_exit(service->event, service->failed ? EXIT_FAILURE : 0);
        } else if (service->bus && !service->named) {
                if (request_name(service) < 0)
                        (void) sd_event_exit(service->event, EXIT_FAILURE);
        } else
                arm_idle_timer(service, arg_idle_timeout_usec);
}

static int serve_on_bus(Service *service) {
        int r;

        r = sd_bus_open_system_with_description(&service->bus, "system");
        if (r < 0) {
                log_message(LOG_ERR, "Cannot reach the system bus: %s", strerror(-r));
                return r;
        }
        r = sd_bus_attach_event(service->bus, service->event, SD_EVENT_PRIORITY_NORMAL);
        if (r < 0)
                return r;
        r = scope_manager_new(service->bus, manager_stop_unit, service->manager, &service->manager->scopes);
        if (r < 0) {
                log_message(LOG_ERR, "Cannot talk to systemd: %s", strerror(-r));
                return r;
        }
        r = state_open(STATE_DIRECTORY, &service->manager->state);
        if (r < 0) {
                log_message(LOG_ERR, "Cannot open %s: %s", STATE_DIRECTORY, strerror(-r));
                return r;
        }
        r = sd_bus_add_filter(service->bus, NULL, note_call, service);
        if (r < 0)
                return r;
        r = connection_new_bus(service->manager, service->bus, on_bus_closed, service, &service->connection);
        if (r < 0)
                return r;
        /* Nobody is served before what a crash left is ended: its names must be free. */
        r = manager_end_left_overs(service->manager);
        if (r < 0)
                log_message(LOG_WARNING, "Cannot read the records of the last service: %s", strerror(-r));
        return manager_empty(service->manager) ? request_name(service) : 0;
}

/* ---- without a bus -------------------------------------------------------------------------------------------- */

static int serve_privately(Service *service) {
        int r;

        service->manager->die_with_parent = true;
        r = cgroup_tree_new(service->event, &service->manager->cgroups);
        if (r < 0)
                log_message(LOG_DEBUG, "No control groups to use: %s", strerror(-r));
        /* Without that a container that can make nodes could open any device. */
        if (!service->manager->cgroups || !cgroup_tree_limits_devices(service->manager->cgroups))
                service->manager->capabilities_lacking |= UINT64_C(1) << CAP_MKNOD;
        r = listener_new(service->manager, on_peers_gone, service, &service->listener);
        if (r < 0)
                return r;
        if (arg_listen) {
                r = listener_listen(service->listener, arg_listen);
                if (r < 0) {
                        log_message(LOG_ERR, "Cannot listen on %s: %s", arg_listen, strerror(-r));
                        return r;
                }
                (void) sd_notify(0, "READY=1");
                return 0;
        }
        r = fd_set_cloexec(arg_connection_fd);
        if (r < 0) {
                log_message(LOG_ERR, "Descriptor %d is not open", arg_connection_fd);
                return r;
        }
        r = listener_add_peer(service->listener, arg_connection_fd);
        if (r < 0)
                log_message(LOG_ERR, "Cannot serve descriptor %d: %s", arg_connection_fd, strerror(-r));
        return r;
}

/* ---- setting up ----------------------------------------------------------------------------------------------- */

/* The berth-launch beside this program: of the build tree when run from one, else the installed one. */
static const char *launch_path(char *buffer, size_t size) {
        ssize_t n;
        char *slash;

        n = readlink("/proc/self/exe", buffer, size - sizeof("/launch/berth-launch"));
        if (n > 0) {
                buffer[n] = 0;
                slash = strrchr(buffer, '/');
                strcpy(slash ? slash : buffer, "/launch/berth-launch");
                if (access(buffer, X_OK) == 0)
                        return buffer;
        }
        return BERTH_LAUNCH_PATH;
}

static bool in_path(const char *program) {
        _cleanup_free_ char *path = NULL;
        const char *variable = getenv("PATH");
        char *directory, *rest;

        path = strdup(variable ?: "/usr/bin:/bin");
        if (!path)
                return false;
        rest = path;
        while ((directory = strsep(&rest, ":"))) {
                _cleanup_free_ char *file = NULL;

                if (asprintf(&file, "%s/%s", directory, program) < 0) {
                        file = NULL;
                        continue;
                }
                if (access(file, X_OK) == 0)
                        return true;
        }
        return false;
}

static void choose_user_map(Manager *manager) {
        const struct passwd *pw = getpwuid(geteuid());

        manager->own_user_namespace = geteuid() != 0;
        if (manager->own_user_namespace)
                user_map_own(geteuid(), getegid(), pw ? pw->pw_name : NULL, "/etc/subuid", "/etc/subgid",
                             in_path("newuidmap") && in_path("newgidmap"), &manager->user_map);
}

static int block_signals(sd_event *event, Service *service) {
        const int ends[] = { SIGTERM, SIGINT };
        sigset_t set;
        int r;

        /* A write to a peer that has gone is an error code, not the end of all containers; nor is a lost terminal. */
        if (signal(SIGPIPE, SIG_IGN) == SIG_ERR || signal(SIGHUP, SIG_IGN) == SIG_ERR)
                return -errno;
        (void) sigemptyset(&set);
        /* Children are waited for by their pidfds; sd-event wants this one blocked, nobody ever handles it. */
        (void) sigaddset(&set, SIGCHLD);
        for (size_t i = 0; i < ELEMENTSOF(ends); i++)
                (void) sigaddset(&set, ends[i]);
        if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
                return -errno;
        for (size_t i = 0; i < ELEMENTSOF(ends); i++) {
                r = sd_event_add_signal(event, NULL, ends[i], on_signal, service);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* Two or three descriptors for each container: as many as may be. What the containers get was noted before. */
static void raise_open_files(void) {
        struct rlimit limit;

        if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
                return;
        limit.rlim_cur = limit.rlim_max;
        if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
                log_message(LOG_WARNING, "Cannot raise the limit of open files: %m");
}

static int run(void) {
        char path[4096];
        Service service = {};
        int r;

        r = hardening_forbid_tracing();
        if (r < 0)
                return r;
        r = errors_register();
        if (r < 0)
                return r;
        r = sd_event_new(&service.event);
        if (r < 0)
                return r;
        (void) sd_event_set_watchdog(service.event, 1);
        r = block_signals(service.event, &service);
        if (r >= 0)
                r = manager_new(service.event, launch_path(path, sizeof(path)), &service.manager);
        if (r >= 0) {
                raise_open_files();
                service.manager->emptied = on_emptied;
                service.manager->emptied_userdata = &service;
                choose_user_map(service.manager);
                r = arg_listen || arg_connection_fd >= 0 ? serve_privately(&service)
                                                         : serve_on_bus(&service);
        }
        if (r >= 0) {
                r = sd_event_loop(service.event);
                if (r < 0)
                        log_message(LOG_ERR, "The event loop failed: %s", strerror(-r));
        }

        /* The last replies leave before the connections are closed. */
        if (service.bus)
                (void) sd_bus_flush(service.bus);
        if (service.manager)
                service.manager->emptied = NULL;
        (void) listener_free(service.listener);
        (void) connection_free(service.connection);
        (void) manager_free(service.manager);
        (void) sd_event_source_disable_unref(service.idle_timer);
        (void) sd_bus_close_unref(service.bus);
        (void) sd_event_unref(service.event);
        return r;
}

/* ---- arguments ------------------------------------------------------------------------------------------------ */

static int help(void) {
        (void) printf(
                "berthd [OPTIONS…]\n\n"
                "Starts containers over D-Bus, as %s on the system bus.\n\n"
                "  -h --help               Show this help\n"
                "     --version            Show the version\n"
                "     --idle-timeout=SECS  End after this time without a container (60; infinity: never)\n"
                "     --listen=PATH        Serve on a socket instead of the bus, without systemd\n"
                "     --connection-fd=FD   Serve one client on a connected socket, end with it\n",
                BERTH_BUS_NAME);
        return 0;
}

static int parse_seconds(const char *text, uint64_t *ret_usec) {
        unsigned long long seconds;
        char *end;

        if (strcmp(text, "infinity") == 0) {
                *ret_usec = UINT64_MAX;
                return 0;
        }
        errno = 0;
        seconds = strtoull(text, &end, 10);
        if (errno != 0 || *text < '0' || *text > '9' || *end || seconds > UINT32_MAX)
                return -EINVAL;
        *ret_usec = seconds * 1000000U;
        return 0;
}

/* 1: go on; 0: done; negative: the arguments are wrong. */
static int parse_arguments(int argc, char *argv[]) {
        enum { ARG_VERSION = 256, ARG_IDLE_TIMEOUT, ARG_LISTEN, ARG_CONNECTION_FD };
        static const struct option options[] = {
                { "help", no_argument, NULL, 'h' },
                { "version", no_argument, NULL, ARG_VERSION },
                { "idle-timeout", required_argument, NULL, ARG_IDLE_TIMEOUT },
                { "listen", required_argument, NULL, ARG_LISTEN },
                { "connection-fd", required_argument, NULL, ARG_CONNECTION_FD },
                {},
        };
        char *end;
        long fd;
        int c;

        while ((c = getopt_long(argc, argv, "h", options, NULL)) >= 0)
                switch (c) {
                case 'h':
                        return help();
                case ARG_VERSION:
                        (void) printf("berth %s\n", BERTH_VERSION);
                        return 0;
                case ARG_IDLE_TIMEOUT:
                        if (parse_seconds(optarg, &arg_idle_timeout_usec) < 0) {
                                (void) fprintf(stderr,
                                               "berthd: --idle-timeout=%s: not a number of seconds\n",
                                               optarg);
                                return -EINVAL;
                        }
                        break;
                case ARG_LISTEN:
                        arg_listen = optarg;
                        break;
                case ARG_CONNECTION_FD:
                        fd = strtol(optarg, &end, 10);
                        if (end == optarg || *end || fd < 3 || fd > INT32_MAX) {
                                (void) fprintf(stderr, "berthd: --connection-fd=%s: not a descriptor\n",
                                               optarg);
                                return -EINVAL;
                        }
                        arg_connection_fd = (int) fd;
                        break;
                default:
                        return -EINVAL;
                }
        if (optind < argc) {
                (void) fprintf(stderr, "berthd: there are no arguments besides options\n");
                return -EINVAL;
        }
        if (arg_listen && arg_connection_fd >= 0) {
                (void) fprintf(stderr, "berthd: --listen and --connection-fd exclude each other\n");
                return -EINVAL;
        }
        return 1;
}

int main(int argc, char *argv[]) {
        int r;

        r = parse_arguments(argc, argv);
        if (r <= 0)
                return r < 0 ? EXIT_FAILURE : 0;
        r = run();
        return r == 0 ? 0 : EXIT_FAILURE;
}
