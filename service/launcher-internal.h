/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What launcher.c (berth-launch and the requests to it) and launch.c (one launch) share. */
#pragma once

#include <sys/queue.h>
#include <sys/resource.h>

#include "service/launcher.h"

struct Launch {
        TAILQ_ENTRY(Launch) link;
        Launcher *launcher; /* borrowed: outlives its launches */
        uint32_t id;
        int theirs;        /* owned: the child's end of it, until the request is sent */
        int cgroup, enter; /* owned likewise */
        uint64_t clone_flags;
        uint32_t request_flags;
        bool replied; /* the child is known, or that there will be none */
        bool stepped; /* a process goes between: its end is the answer */
        bool closed;  /* the child's end of its socket is closed: it runs, or is dead */
        bool reaped;  /* there is no child, or not any more */
        bool ended;   /* the outcome is decided: the child is being killed, or runs */
        int socket;   /* owned: berthd's end of the child's socket */
        pid_t pid;
        int pidfd;            /* owned */
        LaunchReport *report; /* owned mapping */
        bool has_map;
        UserMap map;
        UserMapWrite *map_write; /* owned while it runs */
        sd_event_source *socket_source, *deadline;
        sd_event_source
                *pidfd_source; /* off until the end is decided: a program that ran keeps its status */

        LaunchOutcome outcome;
        LaunchStage stage;
        int error;
        char detail[LAUNCH_DETAIL_MAX];

        const LaunchHandler *handler; /* borrowed */
        void *userdata;
};

typedef struct Step Step;

struct Launcher {
        sd_event *event; /* owned */
        char *path;      /* owned */
        struct rlimit
                files; /* what berth-launch and so the containers get, whatever the service raises for itself */
        int control; /* owned: -EBADF while berth-launch does not run */
        int pidfd;   /* owned: berth-launch's */
        sd_event_source *control_source;
        uint32_t next_id;
        TAILQ_HEAD(, Launch) launches;
        TAILQ_HEAD(, Step) steps;
};

/* Makes sure that berth-launch runs. */
int launcher_ensure(Launcher *launcher);

/* Sends the requests that wait, in their order, as far as the socket takes them. */
void launcher_flush(Launcher *launcher);

/* Ends the process that goes between for the launch of this id, if there is one. */
void launcher_end_step(Launcher *launcher, uint32_t id);

/* At the end of the service, when nothing is left that could still make a child: brings a launch that was cancelled one
 * step nearer to its end, waiting for the killed child if there is one. */
void launch_reap(Launch *launch);

/* The process that goes between has ended; the launch is over unless it told of a child. */
void launch_on_step_exited(Launch *launch);

/* berth-launch has made the child, or could not: error is a positive errno. Takes pidfd. With both an error and a pid, the
 * child is there and is to be ended. */
void launch_on_reply(Launch *launch, int error, pid_t pid, int pidfd);
