/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* berthd's side of the launcher: asks berth-launch for a child, opens its gates, and says once how it went. It knows
 * plans and processes, not containers. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <systemd/sd-event.h>

#include "service/launch/message.h"
#include "service/usermap.h"
#include "util/cleanup.h"

typedef struct Launcher Launcher;
typedef struct Launch Launch;

/* The API's name of a stage, "" for none. */
const char *launch_stage_to_string(LaunchStage stage);
LaunchStage launch_stage_from_string(const char *text);

/* A launcher that starts berth-launch when it is first needed, with the limit of open files that holds now, and again should it die. `path` is berth-launch's. */
int launcher_new(sd_event *event, const char *path, Launcher **ret);

/* Ends berth-launch and waits for it; launches that are not over are cancelled and told of. Returns NULL. */
Launcher *launcher_free(Launcher *launcher);
DEFINE_CLEANUP(Launcher *, launcher_free);

typedef enum LaunchOutcome {
        LAUNCH_RUNNING,   /* execve succeeded */
        LAUNCH_FAILED,    /* stage and error tell where and why */
        LAUNCH_CANCELLED, /* launch_cancel() was called */
        LAUNCH_TIMED_OUT, /* stage tells where it was */
} LaunchOutcome;

typedef struct LaunchResult {
        LaunchOutcome outcome;
        LaunchStage stage;
        int error;          /* negative errno, with LAUNCH_FAILED; -EOWNERDEAD: the child was killed */
        const char *detail; /* borrowed for the call; a path or name, may be "" */
        pid_t pid;          /* with LAUNCH_RUNNING */
        int pidfd;          /* owned by whoever gets the result, with LAUNCH_RUNNING */
} LaunchResult;

typedef struct LaunchHandler {
        /* The child exists and mounts; whoever has a cgroup gate puts it into its cgroup and opens the gate. */
        void (*cloned)(Launch *launch, pid_t pid, int pidfd, void *userdata);
        /* The child made its devpts and, with a terminal, the master of a pty (else -EBADF): the callee's. */
        void (*devpts)(Launch *launch, int devpts, int master, void *userdata);
        /* The end, exactly once, from the event loop and never from launch_start(); unless it runs, the child is
         * dead and reaped by then. The launch is freed afterwards. */
        void (*done)(Launch *launch, const LaunchResult *result, void *userdata);
} LaunchHandler;

/* A descriptor by the number that the program shall find it under: 3 to LAUNCH_NUMBER_MAX, each once. */
typedef struct NumberedFd {
        unsigned number;
        int fd;
} NumberedFd;

typedef struct LaunchParameters {
        const void *plan; /* borrowed for the call */
        size_t plan_size;
        int cgroup; /* borrowed: cloned into it; -EBADF: none */
        int enter; /* borrowed: the pidfd of a container's init, to run in that container; -EBADF: a new one */
        int stdio[3];               /* borrowed; -EBADF: the null device */
        const NumberedFd *numbered; /* borrowed, LAUNCH_NUMBERED_MAX at most */
        size_t n_numbered;
        unsigned
                own_stdio; /* bit n: stdio[n] is a pipe of the service's, to be given to the program's user */
        int devpts, tty;   /* borrowed; -EBADF: none */
        const UserMap *map;    /* borrowed for the call; NULL: no user namespace is made */
        uint64_t timeout_usec; /* UINT64_MAX: none */
} LaunchParameters;

/* Begins a launch. 0 and *ret, borrowed: the launcher owns it until `done` has been called. Negative errno when
 * nothing was begun. The handler is borrowed for the launch's life. */
int launch_start(Launcher *launcher, const LaunchParameters *parameters, const LaunchHandler *handler,
                 void *userdata, Launch **ret);

/* Lets the child go on past a gate; one that is dead already tells of that itself. */
int launch_open_gate(Launch *launch, LaunchGate gate);

/* Ends the launch: `done` follows with LAUNCH_CANCELLED as soon as the child is reaped, even if it was just about to
 * succeed. Calling it twice is harmless. */
void launch_cancel(Launch *launch);

/* As launch_cancel(), but `done` tells of a failure of this stage. */
void launch_fail(Launch *launch, LaunchStage stage, int error, const char *detail);
