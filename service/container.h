/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One container: its spec, its state machine, and the calls that wait for it (org.berth1(5), "Life of a container").
 * container.c has the states, container-start.c the way from created to running. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <systemd/sd-bus.h>

#include "service/client.h"
#include "service/launcher.h"
#include "service/options.h"
#include "service/process.h"
#include "service/scope.h"
#include "service/spec.h"

typedef struct Manager Manager;
typedef struct Container Container;
typedef struct Cgroup Cgroup;

typedef enum ContainerState {
        CONTAINER_CREATED,
        CONTAINER_STARTING,
        CONTAINER_RUNNING,
        CONTAINER_STOPPING,
        CONTAINER_EXITED,
        _CONTAINER_STATE_MAX,
        _CONTAINER_STATE_INVALID = -EINVAL,
} ContainerState;

typedef enum ContainerResult {
        CONTAINER_RESULT_NONE, /* "": no run has ended yet */
        CONTAINER_SUCCESS,
        CONTAINER_EXIT_CODE,
        CONTAINER_SIGNAL,
        CONTAINER_CORE_DUMP,
        CONTAINER_OOM_KILL,
        CONTAINER_TIMEOUT,
        CONTAINER_LOST,
        _CONTAINER_RESULT_MAX,
        _CONTAINER_RESULT_INVALID = -EINVAL,
} ContainerResult;

const char *container_state_to_string(ContainerState state);
ContainerState container_state_from_string(const char *text);
const char *container_result_to_string(ContainerResult result);
ContainerResult container_result_from_string(const char *text);

/* The answer to a call that waited; error NULL: it succeeded. Called exactly once for each call that was accepted,
 * from the event loop or before the call returns, also when the client has gone meanwhile. */
typedef void (*container_done_t)(Container *container, const sd_bus_error *error, void *userdata);

typedef enum PendingKind {
        PENDING_START,
        PENDING_STOP,
        PENDING_WAIT,
        PENDING_REMOVE,
} PendingKind;

typedef struct Pending {
        PendingKind kind;
        Client *client; /* owned reference */
        container_done_t done;
        void *userdata;
        TAILQ_ENTRY(Pending) link;
} Pending;

struct Container {
        unsigned n_ref;
        Manager *manager; /* borrowed: outlives its containers */
        char *name, *unit; /* owned; the unit is "" without systemd */
        Spec *spec;       /* owned */
        uid_t owner;
        ContainerState state;
        bool linked;            /* known by its name */
        bool remove_on_failure; /* RunContainer: no object stays when the start fails */
        bool remove_on_exit;    /* nor when the run ends: the service is ending */

        uint64_t created_usec, started_usec, exited_usec; /* CLOCK_REALTIME; 0: not yet */
        LaunchStage failed_stage; /* of the last start that failed */
        int exit_code, exit_status;
        ContainerResult result;
        char *control_group;    /* owned, or NULL while it has none */

        TerminalSize wanted_size; /* stored by Resize before a start; rows 0: none */

        /* One run */
        StartOptions options;   /* owned: those of the start in course */
        Client *starter;        /* owned reference: who started this run */
        OnDisconnect on_disconnect;
        Process *process;       /* owned */
        Launch *launch;         /* borrowed from the launcher, until its `done` */
        Scope *scope;           /* owned */
        Cgroup *cgroup;         /* owned: direct mode */
        sd_bus_error failure;   /* of a start that fails, while it is cleaned up */
        sd_event_source *kill_timer; /* Stop's time-out */
        uint64_t kill_at_usec;  /* CLOCK_MONOTONIC, when kill_timer fires; UINT64_MAX: never */
        bool kill_sent;         /* Stop had to kill */
        sd_event_source *expiry; /* an AutoRemove container that nobody waits for */

        TAILQ_HEAD(, Pending) pending;
        TAILQ_ENTRY(Container) link; /* of the manager */
};

/* A container in state created. Takes the spec when it succeeds. */
int container_new(Manager *manager, const char *name, Spec *spec, uid_t owner, Container **ret);
Container *container_ref(Container *container);
Container *container_unref(Container *container);
DEFINE_CLEANUP(Container *, container_unref);

/* Starts a run. Takes the options in any case. When it returns 0, `done` comes with the outcome of the launch; the master of a
 * terminal is then to be had from container_take_master(). AlreadyRunning, InvalidArgs, NotSupported. */
int container_start(Container *container, StartOptions *options, Client *client, container_done_t done, void *userdata,
                    sd_bus_error *error);

/* The master for the reply to a start: the caller's, or -EBADF. */
int container_take_master(Container *container);

/* StopSignal, then SIGKILL after timeout_usec (UINT64_MAX: the spec's; 0: at once); cancels a start. `done` (may be
 * NULL) comes when the run is over; at once where there is none. */
int container_stop(Container *container, uint64_t timeout_usec, Client *client, container_done_t done, void *userdata,
                   sd_bus_error *error);

/* `done` comes when the run in course, or the next, has ended; at once when exited. An AutoRemove container is gone
 * before it is called. */
int container_wait(Container *container, Client *client, container_done_t done, void *userdata, sd_bus_error *error);

/* Removes the object; with force it is stopped by SIGKILL first. AlreadyRunning. */
int container_remove(Container *container, bool force, Client *client, container_done_t done, void *userdata,
                     sd_bus_error *error);

/* To init, by its pidfd. NotRunning; InvalidArgs (1 to 64). */
int container_signal(Container *container, int signal, sd_bus_error *error);

/* In force before the first instruction when the program does not run yet. InvalidArgs, NoTerminal. */
int container_resize(Container *container, uint16_t rows, uint16_t columns, sd_bus_error *error);

/* The init process while the container runs, else 0; and the foreground process group of its terminal, or 0. */
pid_t container_pid(const Container *container);
pid_t container_foreground_pid(const Container *container);

/* The size of the terminal, 0×0 without one. */
TerminalSize container_size(const Container *container);

/* Whoever this client was is no more: its calls are forgotten, its own start is cancelled. */
void container_client_gone(Container *container, Client *client);

/* For container-start.c: remembers the call that a start answers; the launch was successful; or it is over and cleaned
 * up, after container->failure was set. */
int container_expect_start(Container *container, Client *client, container_done_t done, void *userdata);
void container_on_running(Container *container, pid_t pid, int pidfd);
void container_on_start_failed(Container *container);
