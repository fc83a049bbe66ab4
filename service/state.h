/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What must be known after a crash: one small record for each container that has a scope, in /run/berth. A record is
 * written before the scope is asked for and removed when the container has ended. */
#pragma once

#include "util/cleanup.h"

#define STATE_DIRECTORY "/run/berth/containers"

typedef struct State State;

/* Opens the directory of records (made if need be, 0700). */
int state_open(const char *path, State **ret);
State *state_free(State *state);
DEFINE_CLEANUP(State *, state_free);

/* Writes a container's record, atomically. `name` is a valid container name. */
int state_save(State *state, const char *name, const char *unit);

/* Removes it; none is fine. */
void state_remove(State *state, const char *name);

/* Calls back for every record. One that is torn or foreign (not a regular file of root's, not of this form, a unit that
 * is not the name's own) is said, removed, and not told of. */
typedef void (*state_record_t)(const char *name, const char *unit, void *userdata);
int state_foreach(State *state, state_record_t callback, void *userdata);
