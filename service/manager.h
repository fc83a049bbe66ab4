/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* All containers by name, and what they share: the launcher, systemd's scopes or a control group sub-tree, compiled
 * filters, records. Faces (connections) observe it; it knows none of them. */
#pragma once

#include <search.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <systemd/sd-event.h>

#include "service/cgroup.h"
#include "service/client.h"
#include "service/container.h"
#include "service/launcher.h"
#include "service/options.h"
#include "service/plan.h"
#include "service/scope.h"
#include "service/seccomp.h"
#include "service/spec.h"
#include "service/state.h"
#include "service/usermap.h"

#define MANAGER_CONTAINERS_MAX 16384U /* for each uid but root: a quarter of it */

/* What happens, in the order in which it happens. Every function may be NULL. */
typedef struct ManagerObserver {
        void (*added)(Container *container, void *userdata);
        void (*removed)(const Container *container, void *userdata);
        void (*changed)(Container *container, const char *const *properties, void *userdata);
        void (*started)(Container *container, void *userdata);
        void (*exited)(Container *container, void *userdata);
        void (*exec_added)(Exec *exec, void *userdata);
        void (*exec_exited)(Exec *exec, void *userdata);
        void (*exec_removed)(const Exec *exec, void *userdata);
        void *userdata;
        TAILQ_ENTRY(ManagerObserver) link;
} ManagerObserver;

typedef struct Manager {
        sd_event *event;               /* owned reference */
        Launcher *launcher;            /* owned */
        SeccompCache *filters;         /* owned */
        ScopeManager *scopes;          /* owned; NULL without systemd */
        CgroupTree *cgroups;           /* owned; NULL with systemd, or where there is none */
        State *state;                  /* owned; NULL without systemd */
        bool own_user_namespace;       /* an ordinary user's: every container gets one */
        bool die_with_parent;          /* direct mode: the containers are not to outlive the service */
        UserMap user_map;              /* with own_user_namespace */
        uint64_t capabilities_lacking; /* not to be had here, in the service's own user namespace */
        unsigned
                n_throttle; /* processors that show how they were throttled, which containers shall not see */
        bool stopping;      /* nothing new is started */
        uint64_t next_generated;
        unsigned left_overs; /* scopes of a crashed service that are being ended */

        void *by_name;                      /* tsearch(3) tree */
        TAILQ_HEAD(, Container) containers; /* each referenced, in the order of their making */
        unsigned n_containers;
        TAILQ_HEAD(, ManagerObserver) observers;

        void (*emptied)(void *userdata); /* the last container went, or the last left-over was ended */
        void *emptied_userdata;
} Manager;

/* A manager without scopes, groups and records: the owner sets those fields before the first container. */
int manager_new(sd_event *event, const char *launch_path, Manager **ret);

/* Every container must be gone. Returns NULL. */
Manager *manager_free(Manager *manager);
DEFINE_CLEANUP(Manager *, manager_free);

/* Borrowed, or NULL. */
Container *manager_get(const Manager *manager, const char *name);

/* The one that a process is in, borrowed, or NULL. */
Container *manager_get_by_pid(const Manager *manager, pid_t pid);

/* Creates a container; an empty name has one generated. Takes the spec in any case. *ret is borrowed. NameInUse, InvalidName,
 * NotSupported naming the key that this host cannot honour, LimitReached, Cancelled while the service ends. */
int manager_create(Manager *manager, const char *name, Spec *spec, const Client *client, Container **ret,
                   sd_bus_error *error);

/* Creates and starts (RunContainer): as above, and the container is gone again when the start fails. Takes the options.
 * `done` as for container_start(); on an error it is not called and nothing is left. *ret (ret may be NULL) is borrowed. */
int manager_run(Manager *manager, const char *name, Spec *spec, StartOptions *options, Client *client,
                process_done_t done, void *userdata, Container **ret, sd_bus_error *error);

/* Takes the container out of the tree: its name is free. manager_removed() tells of it, and drops the manager's
 * reference; the caller keeps one over both. */
void manager_unlink(Manager *manager, Container *container);
void manager_removed(Manager *manager, Container *container);

/* To be called when a client has gone. */
void manager_client_gone(Manager *manager, Client *client);

/* Ends all containers: Stop with the timeouts of their specs, or at once. `emptied` follows when the last is gone. */
void manager_stop_all(Manager *manager, bool at_once);

/* There is no container in any state, and nothing of a crashed service's either. */
bool manager_empty(const Manager *manager);

/* Ends the scopes that the records of a crashed service tell of, and says so. */
int manager_end_left_overs(Manager *manager);

/* `systemctl stop` asked for this unit (scope_stop_requested_t). */
void manager_stop_unit(const char *unit, void *userdata);

void manager_observe(Manager *manager, ManagerObserver *observer);
void manager_unobserve(Manager *manager, ManagerObserver *observer);

/* What this build and host can do, a malloced list (strv_free()). */
int manager_features(const Manager *manager, char ***ret);

/* NotSupported naming the key whose controller this host lacks. */
int manager_check_resources(const Manager *manager, const Resources *resources, sd_bus_error *error);

/* For what is started: the filter of a spec (*ret NULL: unconfined), and what a plan has from the manager. */
int manager_get_filter(Manager *manager, const Spec *spec, SeccompFilter **ret, sd_bus_error *error);
PlanContext manager_plan_context(const Manager *manager, TerminalSize size, const SeccompFilter *filter);

/* For container.c and exec.c: tell the observers. */
void manager_notify_changed(Manager *manager, Container *container, const char *const *properties);
void manager_notify_started(Manager *manager, Container *container);
void manager_notify_exited(Manager *manager, Container *container);
void manager_notify_exec_added(Manager *manager, Exec *exec);
void manager_notify_exec_exited(Manager *manager, Exec *exec);
void manager_notify_exec_removed(Manager *manager, const Exec *exec);
