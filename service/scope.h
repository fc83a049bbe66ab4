/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Transient scopes of systemd (org.freedesktop.systemd1(5), systemd.scope(5)): one for each container, asked for while
 * the child still mounts. Nothing here waits in place: every answer is a callback. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <systemd/sd-bus.h>

#include "service/resources.h"
#include "util/cleanup.h"

typedef struct ScopeManager ScopeManager;
typedef struct Scope Scope;

typedef struct ScopeParameters {
        const char *unit; /* berth-<name>.scope */
        const char *description;
        const char *slice;
        pid_t pid;
        int pidfd;
        int stop_signal;
        uint64_t timeout_stop_usec;
        const Resources *resources; /* borrowed: lives as long as the scope is not being stopped */
} ScopeParameters;

/* error NULL: the process is in its scope. Else what systemd said. Called once, from the event loop. */
typedef void (*scope_ready_t)(const sd_bus_error *error, void *userdata);

/* The scope is gone, or could not be stopped in time and is left to systemd. */
typedef void (*scope_gone_t)(void *userdata);

/* `systemctl stop` asked for a unit; to be answered by stopping what is in it. */
typedef void (*scope_stop_requested_t)(const char *unit, void *userdata);

/* Talks to systemd over this bus. Asks its version, which waits for the answer: to be called before the event loop.
 * -EHOSTUNREACH and the like when there is no systemd. */
int scope_manager_new(sd_bus *bus, scope_stop_requested_t stop_requested, void *userdata,
                      ScopeManager **ret);
ScopeManager *scope_manager_free(ScopeManager *manager);
DEFINE_CLEANUP(ScopeManager *, scope_manager_free);

/* Scopes that are still being stopped in the background. */
bool scope_manager_busy(const ScopeManager *manager);

/* Asks for a scope. A left-over unit of the same name is stopped first. *ret is the caller's. */
int scope_new(ScopeManager *manager, const ScopeParameters *parameters, scope_ready_t ready, void *userdata,
              Scope **ret);

/* Forgets a scope that systemd will collect when its last process is gone. Returns NULL. */
Scope *scope_free(Scope *scope);
DEFINE_CLEANUP(Scope *, scope_free);

/* Makes sure that the scope goes away although its process may have ended before systemd saw it: stops the unit, also
 * while its start job still runs. Takes the scope. `gone` comes from the event loop, after five seconds at the latest. */
void scope_stop(Scope *scope, scope_gone_t gone, void *userdata);

/* Ends what a crashed service left in this unit: SIGKILL to all, then stop. `gone` as above. */
int scope_end_left_over(ScopeManager *manager, const char *unit, scope_gone_t gone, void *userdata);

/* error NULL: the limits are in force. Called once, from the event loop. */
typedef void (*scope_updated_t)(const sd_bus_error *error, void *userdata);

/* Gives a unit that runs what was given of these limits. */
int scope_update(ScopeManager *manager, const char *unit, const Resources *resources,
                 scope_updated_t updated, void *userdata);
