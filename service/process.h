/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One process of a container: init, or one added by Exec. From its launch to its exit record: the pidfd, the terminal,
 * and the calls that wait for its start and its end. What a container does about it (scope, state, signals on the bus)
 * is the owner's, told by callbacks. process.c has its life, process-start.c the way to running. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

#include "service/client.h"
#include "service/launcher.h"
#include "service/options.h"
#include "service/spec.h"
#include "service/terminal.h"
#include "util/cleanup.h"

typedef struct Process Process;

typedef enum ProcessState {
        PROCESS_IDLE, /* no run yet, or the last start failed */
        PROCESS_STARTING,
        PROCESS_RUNNING,
        PROCESS_EXITED,
        _PROCESS_STATE_MAX,
        _PROCESS_STATE_INVALID = -EINVAL,
} ProcessState;

typedef enum ProcessResult {
        PROCESS_RESULT_NONE, /* "": no run has ended yet */
        PROCESS_SUCCESS,
        PROCESS_EXIT_CODE,
        PROCESS_SIGNAL,
        PROCESS_CORE_DUMP,
        PROCESS_OOM_KILL,
        PROCESS_TIMEOUT,
        PROCESS_LOST,
        _PROCESS_RESULT_MAX,
        _PROCESS_RESULT_INVALID = -EINVAL,
} ProcessResult;

const char *process_state_to_string(ProcessState state);
ProcessState process_state_from_string(const char *text);
const char *process_result_to_string(ProcessResult result);
ProcessResult process_result_from_string(const char *text);

/* The answer to a call that waited; error NULL: it succeeded. Called exactly once for each call that was accepted,
 * from the event loop or before the call returns, also when the client has gone meanwhile. */
typedef void (*process_done_t)(Process *process, const sd_bus_error *error, void *userdata);

/* What the owner is told of. */
typedef struct ProcessHandler {
        /* It exists and is being set up; with a cgroup gate the owner opens it (process_open_gate()). */
        void (*cloned)(Process *process, pid_t pid, int pidfd);
        /* The devpts that the child made; the callee's. */
        void (*devpts)(Process *process, int devpts);
        /* execve succeeded. The calls that wait for the start are answered after this. */
        void (*running)(Process *process);
        /* The start failed or was cancelled and no process is left; `failure` says why. The owner cleans up and calls
         * process_finish_failed(). */
        void (*failed)(Process *process, LaunchOutcome outcome);
        /* It has ended; the exit record is there, the terminal closed. The owner answers with process_answer(). */
        void (*exited)(Process *process);
        /* It has just ended by SIGKILL: whether that was for want of memory. Asked before all else. May be NULL. */
        bool (*oom_killed)(Process *process);
        /* Every copy of the master is closed, and on_disconnect is `kill`. */
        void (*hung_up)(Process *process);
} ProcessHandler;

typedef enum ProcessPendingKind {
        PROCESS_PENDING_START,
        PROCESS_PENDING_WAIT,
} ProcessPendingKind;

typedef struct ProcessPending {
        ProcessPendingKind kind;
        Client *client; /* owned reference */
        process_done_t done;
        void *userdata;
        TAILQ_ENTRY(ProcessPending) link;
} ProcessPending;

struct Process {
        unsigned n_ref;
        sd_event *event;               /* owned reference */
        const ProcessHandler *handler; /* borrowed */
        void *owner;                   /* borrowed: whatever the handler needs; its container */
        char *name; /* owned: for messages, "container web" or "process 3 of container web" */
        ProcessState state;

        const Spec *spec;     /* borrowed from the owner: what the last start was to run */
        StartOptions options; /* owned: of the start in course */
        Client *starter;      /* owned reference: who started this run */
        OnDisconnect on_disconnect;
        Launch *launch;       /* borrowed from the launcher, until it is done */
        sd_bus_error failure; /* owned: of a start that failed, until it is answered */
        LaunchStage failed_stage;

        pid_t pid; /* 0: none */
        int pidfd; /* owned */
        sd_event_source *exit_source;
        int stdio[3];       /* owned: the client's ends of pipes until the start is answered, or -EBADF */
        Terminal *terminal; /* owned, or NULL */
        TerminalSize wanted_size; /* stored by Resize before a start; rows 0: none */

        int exit_code, exit_status; /* as waitid(2) has them */
        ProcessResult result;
        bool kill_sent;                     /* a Stop had to kill it: its death by SIGKILL is a time-out */
        bool timed_out;                     /* RuntimeMaxUSec is over, however it ends now */
        uint64_t started_usec, exited_usec; /* CLOCK_REALTIME; 0: not yet */

        TAILQ_HEAD(, ProcessPending) pending;
};

/* An idle process with one reference. */
int process_new(sd_event *event, const char *name, const ProcessHandler *handler, void *owner,
                Process **ret);
Process *process_ref(Process *process);
/* One that still runs is killed and reaped. Returns NULL. */
Process *process_unref(Process *process);
DEFINE_CLEANUP(Process *, process_unref);

/* What a launch needs beside the start options. */
typedef struct ProcessLaunch {
        Launcher *launcher;
        const void *plan; /* built by the owner with process_first_size() */
        size_t plan_size;
        int cgroup;         /* -EBADF: none */
        int enter;          /* the pidfd of the container's init, or -EBADF: a new container */
        int devpts;         /* the detached devpts for a new container to attach, or -EBADF */
        Terminal *terminal; /* taken; NULL: none, or the child makes it */
        const UserMap *map; /* NULL: none */
        const char *container,
                *unit; /* for the journal: the container's name, and its scope; "" without systemd */
} ProcessLaunch;

/* Makes the process starting: resets the last run's record, takes the options, remembers the call. No launch yet. */
int process_prepare_start(Process *process, const Spec *spec, StartOptions *options, Client *client,
                          process_done_t done, void *userdata);

/* The size that the program finds: the start's own, else what Resize stored, else the default. */
TerminalSize process_first_size(const Process *process);

/* Begins the launch. On an error *error has what to answer, the process is idle and the call is forgotten. */
int process_launch(Process *process, ProcessLaunch *launch, sd_bus_error *error);

/* Takes a start back that has not got to its launch: idle again, the call forgotten without an answer. */
void process_forget_start(Process *process);

/* Sets an error of this start, as clients see it: stage, what it was about, and why. Returns error. */
int process_set_failure(Process *process, LaunchStage stage, int error, const char *detail,
                        sd_bus_error *ret);

/* Lets a child past its cgroup gate; or makes its start fail. */
void process_open_gate(Process *process);
void process_fail_start(Process *process, LaunchStage stage, int error, const char *detail);

/* Ends a start; `failed` follows. Nothing happens when none is in course. */
void process_cancel_start(Process *process);

/* Idle after a failed start; returns the failure for the owner to answer with, the caller's to free. */
sd_bus_error process_finish_failed(Process *process);

/* `done` comes when the run in course, or the next, has ended; at once when it has. */
int process_wait(Process *process, Client *client, process_done_t done, void *userdata);

/* Answers all calls of a kind that wait now. */
void process_answer(Process *process, ProcessPendingKind kind, const sd_bus_error *error);
bool process_awaited(const Process *process);

/* pidfd_send_signal(2). -ESRCH when it does not run. */
int process_signal(const Process *process, int signal);

/* The same to its process group, which it leads: setsid(2) is part of every launch. */
int process_signal_group(const Process *process, int signal);

/* It is on its way out, though its end can't be waited for yet: a PID namespace ends only when all in it are reaped. */
bool process_is_ending(const Process *process);

/* Rows and columns must be 1 or more; stored when it does not run, without effect when the terminal is gone. */
int process_resize(Process *process, uint16_t rows, uint16_t columns);
TerminalSize process_size(const Process *process);

/* The master for the reply to a start: the caller's, or -EBADF. */
int process_take_master(Process *process);

/* The client's end of the pipe of a standard stream, for the reply to a start: the caller's, or -EBADF. */
int process_take_stream(Process *process, unsigned stream);

/* The foreground process group of its terminal as proc(5) tells (tpgid), 0 without one. */
pid_t process_foreground(const Process *process);

/* Drops the calls of a client that has gone, answering them with Cancelled; its own start is cancelled. True when it
 * started the run in course without a terminal and wants it to end with it. */
bool process_client_gone(Process *process, Client *client);
