/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/scope.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/queue.h>

#include "interfaces/names.h"
#include "util/log.h"

#define DRIVER_NAME "org.freedesktop.DBus"
#define SYSTEMD_NAME "org.freedesktop.systemd1"
#define SYSTEMD_PATH "/org/freedesktop/systemd1"
#define SYSTEMD_MANAGER "org.freedesktop.systemd1.Manager"

#define VERSION_TIMEOUT_USEC (5U * 1000U * 1000U)
#define STOP_DEADLINE_USEC (5U * 1000U * 1000U)
#define LEFT_OVER_TRIES 5

typedef enum ScopePhase {
        SCOPE_ASKED,    /* StartTransientUnit has not been answered */
        SCOPE_STARTING, /* the start job runs */
        SCOPE_CLEARING, /* a left-over of the same name is being stopped, then we ask again */
        SCOPE_ACTIVE,
        SCOPE_STOPPING, /* StopUnit asked, or its job runs */
        SCOPE_DEAD,
} ScopePhase;

struct Scope {
        TAILQ_ENTRY(Scope) link;
        ScopeManager *manager; /* borrowed: outlives its scopes */
        ScopePhase phase;
        char *unit, *description, *slice; /* owned */
        ScopeParameters parameters;       /* its strings are the three above */
        char *job;                        /* owned: the path of the job waited for */
        unsigned tries;
        sd_bus_slot *call; /* the call that runs */
        sd_event_source *deadline;
        bool stop_wanted; /* scope_stop() was called: the manager owns the scope now */
        scope_ready_t ready;
        scope_gone_t gone;
        void *userdata;
};

struct ScopeManager {
        sd_bus *bus; /* owned reference */
        unsigned version;
        char *owner; /* owned: the unique name behind systemd's, or NULL while it has none */
        sd_bus_slot *owner_changed, *job_removed, *request_stop;
        scope_stop_requested_t stop_requested;
        void *userdata;
        TAILQ_HEAD(, Scope) scopes;
};

static void scope_ask(Scope *scope);
static void scope_ask_stop(Scope *scope);

Scope *scope_free(Scope *scope) {
        if (!scope)
                return NULL;
        TAILQ_REMOVE(&scope->manager->scopes, scope, link);
        (void) sd_bus_slot_unref(scope->call);
        (void) sd_event_source_disable_unref(scope->deadline);
        free(scope->unit);
        free(scope->description);
        free(scope->slice);
        free(scope->job);
        free(scope);
        return NULL;
}

static void tell_ready(Scope *scope, const sd_bus_error *error) {
        scope_ready_t ready = scope->ready;

        scope->ready = NULL;
        if (ready)
                ready(error, scope->userdata);
}

/* The unit is gone, or was never there. */
static void scope_dead(Scope *scope) {
        scope_gone_t gone = scope->gone;
        void *userdata = scope->userdata;

        scope->phase = SCOPE_DEAD;
        if (!scope->stop_wanted)
                return;
        (void) scope_free(scope);
        if (gone)
                gone(userdata);
}

static void start_failed(Scope *scope, const sd_bus_error *error) {
        if (scope->stop_wanted) {
                scope_dead(scope);
                return;
        }
        scope->phase = SCOPE_DEAD;
        tell_ready(scope, error);
}

/* A stop is over: of the scope itself, or of the left-over that was in its way. */
static void stop_done(Scope *scope) {
        if (scope->phase == SCOPE_CLEARING && !scope->stop_wanted)
                scope_ask(scope);
        else
                scope_dead(scope);
}

static int on_stop_answered(sd_bus_message *message, void *userdata, sd_bus_error *unused) {
        const sd_bus_error *error = sd_bus_message_get_error(message);
        Scope *scope = userdata;
        const char *job;

        scope->call = sd_bus_slot_unref(scope->call);
        if (!error && sd_bus_message_read(message, "o", &job) >= 0) {
                free(scope->job);
                scope->job = strdup(job);
                if (scope->job)
                        return 0; /* on_job_removed() goes on */
        } else if (error && !sd_bus_error_has_name(error, "org.freedesktop.systemd1.NoSuchUnit"))
                log_message(LOG_WARNING, "Cannot stop %s: %s", scope->unit, error->message);

        stop_done(scope);
        return 0;
}

/* A scope with a controller is stopped by asking that, which is us, and then by waiting for its processes; ours is dead by
 * now, and a scope that it was dead before it came to would wait for ever. Abandoned, it has nobody to ask. One that is
 * not running yet cannot be, and does not need it. */
static int abandon(Scope *scope) {
        _cleanup_bus_message_ sd_bus_message *m = NULL;
        int r;

        r = sd_bus_message_new_method_call(scope->manager->bus, &m, SYSTEMD_NAME, SYSTEMD_PATH,
                                           SYSTEMD_MANAGER, "AbandonScope");
        if (r < 0)
                return r;
        r = sd_bus_message_set_expect_reply(m, 0);
        if (r < 0)
                return r;
        r = sd_bus_message_append(m, "s", scope->unit);
        if (r < 0)
                return r;
        return sd_bus_send(scope->manager->bus, m, NULL);
}

static void scope_ask_stop(Scope *scope) {
        int r;

        r = abandon(scope);
        if (r >= 0)
                r = sd_bus_call_method_async(scope->manager->bus, &scope->call, SYSTEMD_NAME, SYSTEMD_PATH,
                                             SYSTEMD_MANAGER, "StopUnit", on_stop_answered, scope, "ss",
                                             scope->unit, "replace");
        if (r < 0) {
                log_message(LOG_WARNING, "Cannot ask for the end of %s: %s", scope->unit, strerror(-r));
                scope_dead(scope);
        }
}

/* Replaces a start job that still runs: the unit is stopped after it, or in its place. */
static void scope_begin_stop(Scope *scope) {
        free(scope->job);
        scope->job = NULL;
        scope->phase = SCOPE_STOPPING;
        scope_ask_stop(scope);
}

static int on_start_answered(sd_bus_message *message, void *userdata, sd_bus_error *unused) {
        const sd_bus_error *error = sd_bus_message_get_error(message);
        Scope *scope = userdata;
        const char *job;
        int r;

        scope->call = sd_bus_slot_unref(scope->call);
        if (error) {
                if (sd_bus_error_has_name(error, "org.freedesktop.systemd1.UnitExists") &&
                    !scope->stop_wanted && scope->tries++ < LEFT_OVER_TRIES) {
                        /* The last one of this name has not been collected yet. It is never taken for ours. */
                        scope->phase = SCOPE_CLEARING;
                        scope_ask_stop(scope);
                        return 0;
                }
                start_failed(scope, error);
                return 0;
        }
        r = sd_bus_message_read(message, "o", &job);
        if (r >= 0) {
                free(scope->job);
                scope->job = strdup(job);
                r = scope->job ? 0 : -ENOMEM;
        }
        if (r < 0) {
                _cleanup_bus_error_ sd_bus_error e = SD_BUS_ERROR_NULL;

                (void) sd_bus_error_set_errno(&e, r);
                start_failed(scope, &e);
                return 0;
        }
        scope->phase = SCOPE_STARTING;
        if (scope->stop_wanted)
                scope_begin_stop(scope);
        return 0;
}

static int append_properties(sd_bus_message *m, const ScopeManager *manager, const ScopeParameters *p) {
        int r;

        r = sd_bus_message_open_container(m, 'a', "(sv)");
        if (r < 0)
                return r;
        r = sd_bus_message_append(m, "(sv)(sv)(sv)(sv)(sv)(sv)(sv)(sv)", "Description", "s", p->description,
                                  "Slice", "s", p->slice, "Delegate", "b", 1, "CollectMode", "s",
                                  "inactive-or-failed", "Controller", "s", BERTH_BUS_NAME, "KillSignal", "i",
                                  p->stop_signal, "TimeoutStopUSec", "t", p->timeout_stop_usec, "After",
                                  "as", 1, "berthd.service");
        if (r < 0)
                return r;
        if (manager->version >= 253) {
                r = sd_bus_message_append(m, "(sv)", "OOMPolicy", "s", "continue");
                if (r < 0)
                        return r;
        }
        /* As device-filter.h: nodes of anything can be made, and none but these opened. */
        r = sd_bus_message_append(m, "(sv)(sv)", "DevicePolicy", "s", "closed", "DeviceAllow", "a(ss)", 5,
                                  "/dev/tty", "rw", "/dev/ptmx", "rw", "char-pts", "rw", "char-*", "m",
                                  "block-*", "m");
        if (r < 0)
                return r;
        r = resources_append(p->resources, m);
        if (r < 0)
                return r;
        if (manager->version >= 255)
                r = sd_bus_message_append(m, "(sv)", "PIDFDs", "ah", 1, p->pidfd);
        else
                r = sd_bus_message_append(m, "(sv)", "PIDs", "au", 1, (uint32_t) p->pid);
        if (r < 0)
                return r;
        return sd_bus_message_close_container(m);
}

static void scope_ask(Scope *scope) {
        _cleanup_bus_message_ sd_bus_message *m = NULL;
        ScopeManager *manager = scope->manager;
        int r;

        scope->phase = SCOPE_ASKED;
        r = sd_bus_message_new_method_call(manager->bus, &m, SYSTEMD_NAME, SYSTEMD_PATH, SYSTEMD_MANAGER,
                                           "StartTransientUnit");
        if (r >= 0)
                r = sd_bus_message_append(m, "ss", scope->unit, "fail");
        if (r >= 0)
                r = append_properties(m, manager, &scope->parameters);
        if (r >= 0)
                r = sd_bus_message_append(m, "a(sa(sv))", 0);
        if (r >= 0)
                r = sd_bus_call_async(manager->bus, &scope->call, m, on_start_answered, scope, 0);
        if (r < 0) {
                _cleanup_bus_error_ sd_bus_error e = SD_BUS_ERROR_NULL;

                (void) sd_bus_error_set_errno(&e, r);
                start_failed(scope, &e);
        }
}

static void on_job_done(Scope *scope, const char *result) {
        free(scope->job);
        scope->job = NULL;
        switch (scope->phase) {
        case SCOPE_STARTING:
                if (strcmp(result, "done") != 0) {
                        _cleanup_bus_error_ sd_bus_error e = SD_BUS_ERROR_NULL;

                        (void) sd_bus_error_setf(&e, SD_BUS_ERROR_FAILED, "job ended with '%s'", result);
                        start_failed(scope, &e);
                        return;
                }
                scope->phase = SCOPE_ACTIVE;
                tell_ready(scope, NULL);
                return;
        case SCOPE_CLEARING:
        case SCOPE_STOPPING:
                stop_done(scope);
                return;
        case SCOPE_ASKED:
        case SCOPE_ACTIVE:
        case SCOPE_DEAD:
                return;
        }
}

/* A match by a well-known name lets every sender through: whoever is on the bus can send a signal straight to us. */
static bool from_systemd(const ScopeManager *manager, sd_bus_message *message) {
        const char *sender = sd_bus_message_get_sender(message);

        return sender && manager->owner && strcmp(sender, manager->owner) == 0;
}

static int on_owner_changed(sd_bus_message *message, void *userdata, sd_bus_error *unused) {
        const char *name, *after, *sender = sd_bus_message_get_sender(message);
        ScopeManager *manager = userdata;

        if (!sender || strcmp(sender, DRIVER_NAME) != 0 ||
            sd_bus_message_read(message, "sss", &name, NULL, &after) < 0 || strcmp(name, SYSTEMD_NAME) != 0)
                return 0;
        free(manager->owner);
        manager->owner = *after ? strdup(after) : NULL;
        return 0;
}

static int on_job_removed(sd_bus_message *message, void *userdata, sd_bus_error *unused) {
        const char *job, *unit, *result;
        ScopeManager *manager = userdata;
        Scope *scope;

        if (!from_systemd(manager, message))
                return 0;
        if (sd_bus_message_read(message, "uoss", NULL, &job, &unit, &result) < 0)
                return 0;
        TAILQ_FOREACH(scope, &manager->scopes, link)
        if (scope->job && strcmp(scope->job, job) == 0) {
                on_job_done(scope, result);
                return 0;
        }
        return 0;
}

static int on_request_stop(sd_bus_message *message, void *userdata, sd_bus_error *unused) {
        ScopeManager *manager = userdata;
        _cleanup_free_ char *unit = NULL;

        if (from_systemd(manager, message) &&
            sd_bus_path_decode(sd_bus_message_get_path(message), SYSTEMD_PATH "/unit", &unit) > 0)
                manager->stop_requested(unit, manager->userdata);
        return 0;
}

int scope_manager_new(sd_bus *bus, scope_stop_requested_t stop_requested, void *userdata,
                      ScopeManager **ret) {
        _cleanup_(scope_manager_freep) ScopeManager *manager = NULL;
        _cleanup_bus_message_ sd_bus_message *call = NULL, *reply = NULL;
        const char *version;
        int r;

        manager = calloc(1, sizeof(*manager));
        if (!manager)
                return -ENOMEM;
        TAILQ_INIT(&manager->scopes);
        manager->bus = sd_bus_ref(bus);
        manager->stop_requested = stop_requested;
        manager->userdata = userdata;

        /* First the match, then the question that tells who it is. */
        r = sd_bus_add_match(bus, &manager->owner_changed,
                             "type='signal',sender='" DRIVER_NAME
                             "',path='/org/freedesktop/DBus',interface='" DRIVER_NAME
                             "',member='NameOwnerChanged',arg0='" SYSTEMD_NAME "'",
                             on_owner_changed, manager);
        if (r < 0)
                return r;
        r = sd_bus_message_new_method_call(bus, &call, SYSTEMD_NAME, SYSTEMD_PATH,
                                           "org.freedesktop.DBus.Properties", "Get");
        if (r < 0)
                return r;
        r = sd_bus_message_append(call, "ss", SYSTEMD_MANAGER, "Version");
        if (r < 0)
                return r;
        r = sd_bus_call(bus, call, VERSION_TIMEOUT_USEC, NULL, &reply);
        if (r < 0)
                return r;
        r = sd_bus_message_read(reply, "v", "s", &version);
        if (r < 0)
                return r;
        manager->version = (unsigned) strtoul(version, NULL, 10);
        manager->owner = strdup(sd_bus_message_get_sender(reply));
        if (!manager->owner)
                return -ENOMEM;

        /* No Subscribe: systemd sends JobRemoved to whoever queued the job in any case. */
        r = sd_bus_match_signal(bus, &manager->job_removed, SYSTEMD_NAME, SYSTEMD_PATH, SYSTEMD_MANAGER,
                                "JobRemoved", on_job_removed, manager);
        if (r < 0)
                return r;
        r = sd_bus_match_signal(bus, &manager->request_stop, SYSTEMD_NAME, NULL,
                                "org.freedesktop.systemd1.Scope", "RequestStop", on_request_stop, manager);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(manager);
        return 0;
}

ScopeManager *scope_manager_free(ScopeManager *manager) {
        if (!manager)
                return NULL;
        while (!TAILQ_EMPTY(&manager->scopes))
                (void) scope_free(TAILQ_FIRST(&manager->scopes));
        (void) sd_bus_slot_unref(manager->owner_changed);
        (void) sd_bus_slot_unref(manager->job_removed);
        (void) sd_bus_slot_unref(manager->request_stop);
        (void) sd_bus_unref(manager->bus);
        free(manager->owner);
        free(manager);
        return NULL;
}

bool scope_manager_busy(const ScopeManager *manager) {
        Scope *scope;

        TAILQ_FOREACH(scope, &manager->scopes, link)
        if (scope->stop_wanted)
                return true;
        return false;
}

static int scope_alloc(ScopeManager *manager, const ScopeParameters *p, Scope **ret) {
        Scope *scope;

        scope = calloc(1, sizeof(*scope));
        if (!scope)
                return -ENOMEM;
        scope->manager = manager;
        TAILQ_INSERT_TAIL(&manager->scopes, scope, link);
        scope->parameters = *p;
        scope->parameters.unit = scope->unit = strdup(p->unit);
        scope->parameters.description = scope->description = strdup(p->description ?: "");
        scope->parameters.slice = scope->slice = strdup(p->slice ?: "");
        if (!scope->unit || !scope->description || !scope->slice) {
                (void) scope_free(scope);
                return -ENOMEM;
        }
        *ret = scope;
        return 0;
}

int scope_new(ScopeManager *manager, const ScopeParameters *p, scope_ready_t ready, void *userdata,
              Scope **ret) {
        Scope *scope;
        int r;

        r = scope_alloc(manager, p, &scope);
        if (r < 0)
                return r;
        scope->userdata = userdata;
        scope_ask(scope);
        if (scope->phase == SCOPE_DEAD) {
                (void) scope_free(scope);
                return -EIO;
        }
        scope->ready = ready;
        *ret = scope;
        return 0;
}

static int on_stop_deadline(sd_event_source *source, uint64_t usec, void *userdata) {
        Scope *scope = userdata;
        scope_gone_t gone = scope->gone;
        void *gone_data = scope->userdata;

        /* systemd is slow: nobody waits any longer, the clean-up itself goes on. */
        log_message(LOG_WARNING, "systemd has not stopped %s yet", scope->unit);
        scope->deadline = sd_event_source_disable_unref(scope->deadline);
        scope->gone = NULL;
        if (gone)
                gone(gone_data);
        return 0;
}

/* From now on the manager owns it, and somebody waits for its end, though not for ever. */
static void want_stop(Scope *scope, scope_gone_t gone, void *userdata) {
        scope->stop_wanted = true;
        scope->ready = NULL;
        scope->gone = gone;
        scope->userdata = userdata;
        if (sd_event_add_time_relative(sd_bus_get_event(scope->manager->bus), &scope->deadline,
                                       CLOCK_MONOTONIC, STOP_DEADLINE_USEC, 0, on_stop_deadline, scope) < 0)
                log_message(LOG_WARNING, "Cannot watch the time that %s takes to stop", scope->unit);
}

void scope_stop(Scope *scope, scope_gone_t gone, void *userdata) {
        want_stop(scope, gone, userdata);
        switch (scope->phase) {
        case SCOPE_ASKED:
        case SCOPE_CLEARING:
        case SCOPE_STOPPING:
                return; /* the answer goes on */
        case SCOPE_STARTING:
        case SCOPE_ACTIVE:
        case SCOPE_DEAD:
                scope_begin_stop(scope);
                return;
        }
}

static int on_left_over_killed(sd_bus_message *message, void *userdata, sd_bus_error *unused) {
        Scope *scope = userdata;

        scope->call = sd_bus_slot_unref(scope->call);
        scope_ask_stop(scope);
        return 0;
}

int scope_end_left_over(ScopeManager *manager, const char *unit, scope_gone_t gone, void *userdata) {
        Scope *scope;
        int r;

        r = scope_alloc(manager, &(const ScopeParameters) { .unit = unit }, &scope);
        if (r < 0)
                return r;
        scope->phase = SCOPE_STOPPING;
        r = sd_bus_call_method_async(manager->bus, &scope->call, SYSTEMD_NAME, SYSTEMD_PATH, SYSTEMD_MANAGER,
                                     "KillUnit", on_left_over_killed, scope, "ssi", unit, "all", SIGKILL);
        if (r < 0) {
                (void) scope_free(scope);
                return r;
        }
        want_stop(scope, gone, userdata);
        return 0;
}

/* ---- limits ----------------------------------------------------------------------------------------------------- */

typedef struct ScopeUpdate {
        scope_updated_t updated;
        void *userdata;
} ScopeUpdate;

static int on_updated(sd_bus_message *message, void *userdata, sd_bus_error *unused) {
        _cleanup_free_ ScopeUpdate *update = userdata;

        update->updated(sd_bus_message_get_error(message), update->userdata);
        return 0;
}

int scope_update(ScopeManager *manager, const char *unit, const Resources *resources,
                 scope_updated_t updated, void *userdata) {
        _cleanup_bus_message_ sd_bus_message *m = NULL;
        _cleanup_free_ ScopeUpdate *update = NULL;
        int r;

        update = malloc(sizeof(*update));
        if (!update)
                return -ENOMEM;
        *update = (ScopeUpdate) { updated, userdata };
        r = sd_bus_message_new_method_call(manager->bus, &m, SYSTEMD_NAME, SYSTEMD_PATH, SYSTEMD_MANAGER,
                                           "SetUnitProperties");
        if (r >= 0)
                r = sd_bus_message_append(m, "sb", unit, 1); /* until it is gone, not in files */
        if (r >= 0)
                r = sd_bus_message_open_container(m, 'a', "(sv)");
        if (r >= 0)
                r = resources_append(resources, m);
        if (r >= 0)
                r = sd_bus_message_close_container(m);
        if (r >= 0)
                r = sd_bus_call_async(manager->bus, NULL, m, on_updated, update, 0);
        if (r < 0)
                return r;
        TAKE_PTR(update);
        return 0;
}
