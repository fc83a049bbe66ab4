/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A program added to a running container by Exec: its number, its own spec and its record. It is an object on the bus
 * from the moment it runs until its record goes. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <systemd/sd-bus.h>

#include "service/client.h"
#include "service/options.h"
#include "service/process.h"
#include "service/spec.h"

#define EXEC_PER_CONTAINER_MAX 4096U

typedef struct Container Container;

typedef struct Exec {
        unsigned n_ref;
        Container *container; /* owned reference */
        uint64_t number;      /* never used twice in a container */
        Spec *spec;           /* owned: only the part that is a process' */
        Process *process;     /* owned reference */
        bool waiting;         /* for its container, which is just starting */
        bool linked;          /* of the container's list */
        bool shown;           /* observers know it */
        sd_event_source *expiry, *kill_timer;
        TAILQ_ENTRY(Exec) link;
} Exec;

Exec *exec_ref(Exec *exec);
Exec *exec_unref(Exec *exec);
DEFINE_CLEANUP(Exec *, exec_unref);

/* The Exec that a process belongs to. */
static inline Exec *exec_of(const Process *process) {
        return process->owner;
}

/* Starts another program in a container (Exec): takes spec and options in any case. `done` comes with the outcome of
 * the launch. NotRunning; LimitReached; InvalidArgs, NotSupported for the options. */
int exec_start(Container *container, Spec *spec, StartOptions *options, Client *client, process_done_t done,
               void *userdata, sd_bus_error *error);

/* What containers and bus know it by; NULL without one. Borrowed. */
Exec *exec_find(Container *container, uint64_t number);

/* Ends a start, waiting or under way: its `done` follows, for one that waits before this returns. */
void exec_cancel_start(Exec *exec);

/* As those of a container. */
int exec_signal(Exec *exec, int signal, sd_bus_error *error);
int exec_resize(Exec *exec, uint16_t rows, uint16_t columns, sd_bus_error *error);
int exec_wait(Exec *exec, Client *client, process_done_t done, void *userdata, sd_bus_error *error);

/* Removes the record of one that has ended; AlreadyRunning. */
int exec_remove(Exec *exec, sd_bus_error *error);

/* For the container: it runs, and those that wait can begin; or it ends, and they fail with NotRunning. */
void exec_container_running(Container *container);
void exec_container_ending(Container *container);

/* All records go, before the container does. Every process has ended by then, but a start that was cancelled may still be
 * on its way out: it holds the container until it is. */
void exec_remove_all(Container *container);

/* A client has gone. */
void exec_client_gone(Container *container, Client *client);
