/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One container: its spec, its state machine, and the calls that wait for it (org.berth1(5), "Life of a container").
 * container.c has the states, container-start.c the way from created to running, container-control.c what is done to one
 * that runs. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <systemd/sd-bus.h>

#include "service/cgroup-control.h"
#include "service/client.h"
#include "service/exec.h"
#include "service/launcher.h"
#include "service/members.h"
#include "service/options.h"
#include "service/process.h"
#include "service/scope.h"
#include "service/spec.h"
#include "service/statistics.h"

typedef struct Manager Manager;
typedef struct Container Container;
typedef struct Cgroup Cgroup;

typedef enum ContainerState {
        CONTAINER_CREATED,
        CONTAINER_STARTING,
        CONTAINER_RUNNING,
        CONTAINER_PAUSED,
        CONTAINER_STOPPING,
        CONTAINER_EXITED,
        _CONTAINER_STATE_MAX,
        _CONTAINER_STATE_INVALID = -EINVAL,
} ContainerState;

const char *container_state_to_string(ContainerState state);
ContainerState container_state_from_string(const char *text);
/* The answer to a call that waited; error NULL: it succeeded. Called exactly once for each call that was accepted,
 * from the event loop or before the call returns, also when the client has gone meanwhile. */
typedef void (*container_done_t)(Container *container, const sd_bus_error *error, void *userdata);

typedef enum ContainerPendingKind {
        CONTAINER_PENDING_STOP,
        CONTAINER_PENDING_REMOVE,
        CONTAINER_PENDING_PAUSE,
        CONTAINER_PENDING_RESUME,
} ContainerPendingKind;

typedef struct ContainerPending {
        ContainerPendingKind kind;
        Client *client; /* owned reference */
        container_done_t done;
        void *userdata;
        TAILQ_ENTRY(ContainerPending) link;
} ContainerPending;

struct Container {
        unsigned n_ref;
        Manager *manager;  /* borrowed: outlives its containers */
        char *name, *unit; /* owned; the unit is "" without systemd */
        Spec *spec;        /* owned */
        uid_t owner;
        ContainerState state;
        bool linked;            /* known by its name */
        bool remove_on_failure; /* RunContainer: no object stays when the start fails */
        bool remove_on_exit;    /* nor when the run ends: the service is ending */

        uint64_t created_usec; /* CLOCK_REALTIME */
        char *control_group;   /* owned, or NULL while it has none */
        Process *init;         /* owned reference; there from the beginning, through all runs */

        TAILQ_HEAD(, Exec) execs; /* each referenced: those that start, run, or have a record */
        unsigned n_execs;
        uint64_t last_exec; /* the number given last */
        bool tracers;       /* a process in it may trace whatever it sees, and has no CAP_SYS_ADMIN itself */

        /* One run */
        int devpts;                     /* owned: the container's devpts, as a descriptor of the mount */
        Scope *scope;                   /* owned */
        Cgroup *cgroup;                 /* owned: direct mode */
        CgroupControl *control;         /* owned: of either; NULL where there is none */
        sd_event_source *kill_timer;    /* Stop's time-out */
        bool late_limits;               /* Update came while it was starting */
        sd_event_source *runtime_timer; /* RuntimeMaxUSec */
        uint64_t kill_at_usec;          /* CLOCK_MONOTONIC, when kill_timer fires; UINT64_MAX: never */
        sd_event_source *expiry;        /* an AutoRemove container that nobody waits for */

        TAILQ_HEAD(, ContainerPending) pending;
        TAILQ_ENTRY(Container) link; /* of the manager */
};

/* A container in state created. Takes the spec when it succeeds. */
int container_new(Manager *manager, const char *name, Spec *spec, uid_t owner, Container **ret);
Container *container_ref(Container *container);
Container *container_unref(Container *container);
DEFINE_CLEANUP(Container *, container_unref);

/* Starts a run. Takes the options in any case. When it returns 0, `done` comes with the outcome of the launch; the master of a
 * terminal is then to be had from process_take_master(). AlreadyRunning, InvalidArgs, NotSupported. */
int container_start(Container *container, StartOptions *options, Client *client, process_done_t done,
                    void *userdata, sd_bus_error *error);

/* StopSignal, then SIGKILL after timeout_usec (UINT64_MAX: the spec's; 0: at once); cancels a start. `done` (may be
 * NULL) comes when the run is over; at once where there is none. */
int container_stop(Container *container, uint64_t timeout_usec, Client *client, container_done_t done,
                   void *userdata, sd_bus_error *error);

/* `done` comes when the run in course, or the next, has ended; at once when exited. An AutoRemove container is gone
 * before it is called. */
int container_wait(Container *container, Client *client, process_done_t done, void *userdata,
                   sd_bus_error *error);

/* Removes the object; with force it is stopped by SIGKILL first. AlreadyRunning. */
int container_remove(Container *container, bool force, Client *client, container_done_t done, void *userdata,
                     sd_bus_error *error);

/* To init, by its pidfd. NotRunning; InvalidArgs (1 to 64). */
int container_signal(Container *container, int signal, sd_bus_error *error);

/* To all its processes. SIGKILL ends them at once; of others, a process that is forked meanwhile may get none. As above. */
int container_signal_all(Container *container, int signal, sd_bus_error *error);

/* All its processes are stopped, by the freezer of control groups, or let go on: `done` comes when it is so. The state follows
 * the group, whoever froze it. NotRunning, NotSupported; Cancelled by the opposite call or by Stop. */
int container_pause(Container *container, Client *client, container_done_t done, void *userdata,
                    sd_bus_error *error);
int container_resume(Container *container, Client *client, container_done_t done, void *userdata,
                     sd_bus_error *error);

/* Other limits, those that `limits` was given: in force when `done` comes; for the next run where there is none, and for this
 * one after its start. Takes the spec that has them in any case. NotRunning, NotSupported, InvalidArgs. */
int container_update(Container *container, Spec *limits, Client *client, container_done_t done,
                     void *userdata, sd_bus_error *error);

/* For container.c: it runs, and may have been told other limits than it was started with. */
void container_apply_late_limits(Container *container);

/* Its processes, in no order; freed by members_done(). NotRunning; LimitReached. */
int container_members(const Container *container, Members *ret, sd_bus_error *error);
bool container_has_member(const Container *container, pid_t pid);

/* NotRunning, NotSupported. */
int container_statistics(const Container *container, Statistic ret[STATISTICS_MAX], size_t *ret_n,
                         sd_bus_error *error);

/* In force before the first instruction when the program does not run yet. InvalidArgs, NoTerminal. */
int container_resize(Container *container, uint16_t rows, uint16_t columns, sd_bus_error *error);

/* The init process while the container runs, else 0. */
pid_t container_pid(const Container *container);

/* The scope unit of the run in course; "" without systemd and between runs. */
const char *container_unit(const Container *container);

/* Whoever this client was is no more: its calls are forgotten, its own start is cancelled. */
void container_client_gone(Container *container, Client *client);

/* The container that a process belongs to. */
static inline Container *container_of(const Process *process) {
        return process->owner;
}

/* Whether there are processes of it: from running to the end of stopping. */
bool container_runs(const Container *container);

/* For the files of a container. NotRunning, with the state; a signal's number, and that there is whom to send it to. */
int container_not_running(const Container *container, sd_bus_error *error);
int container_check_signal(const Container *container, int signal, sd_bus_error *error);

/* Remembers a call that waits, answers all of a kind. */
int container_expect(Container *container, ContainerPendingKind kind, Client *client, container_done_t done,
                     void *userdata);
void container_answer(Container *container, ContainerPendingKind kind, const sd_bus_error *error);

/* Opens the control group that the container has got. */
void container_open_control(Container *container);

/* Makes the state what the group is at this moment; or a Stop has begun, and nothing is to be frozen any more. */
void container_update_paused(Container *container);
void container_thaw(Container *container);

/* For container-start.c, the handlers of init that it shares: the run is over or was none, all of it is let go. */
void container_release_run(Container *container);
extern const ProcessHandler container_init_handler;
void container_on_cloned(Process *process, pid_t pid, int pidfd);
void container_on_devpts(Process *process, int devpts);
void container_on_failed(Process *process, LaunchOutcome outcome);
void container_on_start_failed(Container *container);
