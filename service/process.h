/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One process of a container: its pidfd, its terminal, and how it ended. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <systemd/sd-event.h>

#include "service/terminal.h"
#include "util/cleanup.h"

typedef struct Process Process;

/* It has ended and is reaped; code and status are recorded, its terminal is closed. */
typedef void (*process_exited_t)(Process *process, void *userdata);

struct Process {
        pid_t pid;          /* 0: not running */
        int pidfd;          /* owned */
        Terminal *terminal; /* owned, or NULL */
        int code, status;   /* as waitid(2) has them, once ended is set */
        bool ended;
        sd_event_source *exited;
        process_exited_t callback;
        void *userdata;
};

/* A process that does not run yet; takes the terminal (or NULL). */
int process_new(Terminal *terminal, Process **ret);

/* It runs: takes the pidfd of a child of the service and watches it. */
int process_begin(Process *process, sd_event *event, pid_t pid, int pidfd, process_exited_t callback, void *userdata);

/* A process that still runs is killed and reaped. Returns NULL. */
Process *process_free(Process *process);
DEFINE_CLEANUP(Process *, process_free);

/* pidfd_send_signal(2). -ESRCH when it does not run. */
int process_signal(const Process *process, int signal);

/* The foreground process group of its terminal as proc(5) tells (tpgid), 0 without one. */
pid_t process_foreground(const Process *process);
