/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/container.h"

#include <assert.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "interfaces/names.h"
#include "service/cgroup.h"
#include "service/manager.h"
#include "util/log.h"
#include "util/timer.h"
#include "util/unit-name.h"

#define EXPIRY_USEC (60U * 1000U * 1000U)
#define SIGNAL_MAX 64

static const char *const state_names[_CONTAINER_STATE_MAX] = {
        [CONTAINER_CREATED] = "created", [CONTAINER_STARTING] = "starting", [CONTAINER_RUNNING] = "running",
        [CONTAINER_PAUSED] = "paused",   [CONTAINER_STOPPING] = "stopping", [CONTAINER_EXITED] = "exited",
};

const char *container_state_to_string(ContainerState state) {
        return state >= 0 && state < _CONTAINER_STATE_MAX ? state_names[state] : NULL;
}

ContainerState container_state_from_string(const char *text) {
        for (ContainerState s = 0; s < _CONTAINER_STATE_MAX; s++)
                if (strcmp(state_names[s], text) == 0)
                        return s;
        return _CONTAINER_STATE_INVALID;
}

static uint64_t now_realtime(void) {
        struct timespec ts;

        (void) clock_gettime(CLOCK_REALTIME, &ts);
        return (uint64_t) ts.tv_sec * 1000000U + (uint64_t) ts.tv_nsec / 1000U;
}

static int make_init(Container *container) {
        _cleanup_free_ char *name = NULL;

        if (asprintf(&name, "container %s", container->name) < 0) {
                name = NULL;
                return -ENOMEM;
        }
        return process_new(container->manager->event, name, &container_init_handler, container,
                           &container->init);
}

int container_new(Manager *manager, const char *name, Spec *spec, uid_t owner, Container **ret) {
        _cleanup_(container_unrefp) Container *container = NULL;
        int r;

        container = calloc(1, sizeof(*container));
        if (!container)
                return -ENOMEM;
        container->n_ref = 1;
        container->manager = manager;
        container->owner = owner;
        container->created_usec = now_realtime();
        container->devpts = -EBADF;
        TAILQ_INIT(&container->pending);
        TAILQ_INIT(&container->execs);
        container->name = strdup(name);
        if (!container->name)
                return -ENOMEM;
        if (manager->scopes) {
                r = unit_name_scope(name, &container->unit);
                if (r < 0)
                        return r;
        } else {
                container->unit = strdup("");
                if (!container->unit)
                        return -ENOMEM;
        }
        r = make_init(container);
        if (r < 0)
                return r;
        container->spec = spec;
        *ret = TAKE_PTR(container);
        return 0;
}

Container *container_ref(Container *container) {
        if (container)
                container->n_ref++;
        return container;
}

Container *container_unref(Container *container) {
        if (!container)
                return NULL;
        assert(container->n_ref > 0);
        if (--container->n_ref > 0)
                return NULL;
        assert(TAILQ_EMPTY(&container->pending));
        assert(TAILQ_EMPTY(&container->execs));
        (void) sd_event_source_disable_unref(container->kill_timer);
        (void) sd_event_source_disable_unref(container->runtime_timer);
        (void) sd_event_source_disable_unref(container->expiry);
        (void) process_unref(container->init);
        (void) scope_free(container->scope);
        (void) cgroup_control_free(container->control);
        (void) cgroup_free(container->cgroup);
        (void) fd_close(container->devpts);
        (void) spec_free(container->spec);
        free(container->control_group);
        free(container->name);
        free(container->unit);
        free(container);
        return NULL;
}

/* ---- calls that wait ------------------------------------------------------------------------------------------ */

int container_expect(Container *container, ContainerPendingKind kind, Client *client, container_done_t done,
                     void *userdata) {
        ContainerPending *pending;

        if (!done)
                return 0;
        pending = calloc(1, sizeof(*pending));
        if (!pending)
                return -ENOMEM;
        pending->kind = kind;
        pending->client = client_ref(client);
        pending->done = done;
        pending->userdata = userdata;
        TAILQ_INSERT_TAIL(&container->pending, pending, link);
        return 0;
}

static ContainerPending *pending_find(const Container *container, ContainerPendingKind kind,
                                      const Client *client) {
        ContainerPending *pending;

        TAILQ_FOREACH(pending, &container->pending, link)
        if (pending->kind == kind && (!client || pending->client == client))
                return pending;
        return NULL;
}

static void pending_answer(Container *container, ContainerPending *pending, const sd_bus_error *error) {
        container_done_t done = pending->done;
        void *userdata = pending->userdata;

        TAILQ_REMOVE(&container->pending, pending, link);
        (void) client_unref(pending->client);
        free(pending);
        done(container, error, userdata);
}

void container_answer(Container *container, ContainerPendingKind kind, const sd_bus_error *error) {
        ContainerPending *pending;

        while ((pending = pending_find(container, kind, NULL)))
                pending_answer(container, pending, error);
}

/* ---- the end of a run ----------------------------------------------------------------------------------------- */

bool container_runs(const Container *container) {
        return container->state == CONTAINER_RUNNING || container->state == CONTAINER_PAUSED ||
               container->state == CONTAINER_STOPPING;
}

int container_not_running(const Container *container, sd_bus_error *error) {
        (void) sd_bus_error_setf(error, BERTH_ERROR_NOT_RUNNING, "container %s is %s, not running",
                                 container->name, container_state_to_string(container->state));
        return -ESRCH;
}

static int on_expired(sd_event_source *source, uint64_t usec, void *userdata) {
        _cleanup_(container_unrefp) Container *container = container_ref(userdata);

        container->expiry = sd_event_source_disable_unref(container->expiry);
        manager_unlink(container->manager, container);
        manager_removed(container->manager, container);
        return 0;
}

void container_release_run(Container *container) {
        container->kill_timer = sd_event_source_disable_unref(container->kill_timer);
        container->runtime_timer = sd_event_source_disable_unref(container->runtime_timer);
        container->late_limits = false;
        container->control = cgroup_control_free(container->control);
        container->cgroup = cgroup_free(container->cgroup);
        container->devpts = fd_close(container->devpts);
        free(container->control_group);
        container->control_group = NULL;
        if (container->manager->state)
                state_remove(container->manager->state, container->name);
}

static void on_init_exited(Process *init) {
        static const char *const changed[] = { "State",        "PID",    "ExitCode",
                                               "ExitStatus",   "Result", "ExitedUSec",
                                               "ControlGroup", "Unit",   NULL };
        _cleanup_(container_unrefp) Container *container = container_ref(container_of(init));
        _cleanup_bus_error_ sd_bus_error ended = SD_BUS_ERROR_NULL;
        bool remove;

        container_release_run(container);
        /* systemd collects the scope by itself when it finds it empty. */
        container->scope = scope_free(container->scope);
        container->state = CONTAINER_EXITED;
        (void) container_not_running(container, &ended);
        log_container(LOG_INFO, container->name, container->unit, "Container %s ended: %s, %s %d",
                      container->name, process_result_to_string(init->result),
                      init->exit_code == CLD_EXITED ? "status" : "signal", init->exit_status);
        manager_notify_changed(container->manager, container, changed);
        manager_notify_exited(container->manager, container);

        remove = container->remove_on_exit || pending_find(container, CONTAINER_PENDING_REMOVE, NULL) ||
                 (container->spec->auto_remove && process_awaited(init));
        if (remove)
                manager_unlink(container->manager, container);
        process_answer(init, PROCESS_PENDING_WAIT, NULL);
        container_answer(container, CONTAINER_PENDING_STOP, NULL);
        container_answer(container, CONTAINER_PENDING_PAUSE, &ended);
        container_answer(container, CONTAINER_PENDING_RESUME, &ended);
        container_answer(container, CONTAINER_PENDING_REMOVE, NULL);
        if (remove)
                manager_removed(container->manager, container);
        else if (container->spec->auto_remove &&
                 sd_event_add_time_relative(container->manager->event, &container->expiry, CLOCK_MONOTONIC,
                                            EXPIRY_USEC, 0, on_expired, container) < 0)
                log_container(LOG_WARNING, container->name, container->unit,
                              "Container %s stays until it is removed: no timer", container->name);
}

void container_on_start_failed(Container *container) {
        static const char *const changed[] = { "State", "FailedStage", "ControlGroup", "Unit", NULL };
        _cleanup_(container_unrefp) _unused_ Container *self = container_ref(container);
        _cleanup_bus_error_ sd_bus_error failure = process_finish_failed(container->init);
        bool remove = container->remove_on_failure ||
                      pending_find(container, CONTAINER_PENDING_REMOVE, NULL);

        container_release_run(container);
        container->state = CONTAINER_CREATED;
        log_container(LOG_NOTICE, container->name, container->unit, "Start failed: %s", failure.message);
        exec_container_ending(container);
        manager_notify_changed(container->manager, container, changed);
        if (remove)
                manager_unlink(container->manager, container);
        process_answer(container->init, PROCESS_PENDING_START, &failure);
        container_answer(container, CONTAINER_PENDING_STOP, NULL);
        container_answer(container, CONTAINER_PENDING_REMOVE, NULL);
        if (remove) {
                process_answer(container->init, PROCESS_PENDING_WAIT, &failure);
                manager_removed(container->manager, container);
        }
}

/* ---- running -------------------------------------------------------------------------------------------------- */

static void on_init_hung_up(Process *init) {
        (void) container_stop(container_of(init), SPEC_INFINITY, NULL, NULL, NULL, NULL);
}

static int on_runtime_over(sd_event_source *source, uint64_t usec, void *userdata) {
        Container *container = userdata;

        container->runtime_timer = sd_event_source_disable_unref(container->runtime_timer);
        if (container->state == CONTAINER_STOPPING)
                return 0;
        log_container(LOG_NOTICE, container->name, container->unit,
                      "Container %s has had its RuntimeMaxUSec", container->name);
        container->init->timed_out = true;
        (void) container_stop(container, SPEC_INFINITY, NULL, NULL, NULL, NULL);
        return 0;
}

static void begin_runtime(Container *container) {
        uint64_t usec = container->spec->runtime_max_usec;

        if (timer_start(container->manager->event, usec, on_runtime_over, container,
                        &container->runtime_timer) < 0)
                log_container(LOG_WARNING, container->name, container->unit,
                              "RuntimeMaxUSec of container %s is not watched: no timer", container->name);
}

static void on_init_running(Process *init) {
        static const char *const changed[] = { "State", "PID", "StartedUSec", "ControlGroup", NULL };
        Container *container = container_of(init);

        container->remove_on_failure = false;
        container->state = CONTAINER_RUNNING;
        log_container(LOG_INFO, container->name, container->unit, "Container %s started, PID %d",
                      container->name, init->pid);
        manager_notify_changed(container->manager, container, changed);
        manager_notify_started(container->manager, container);
        begin_runtime(container);
        container_apply_late_limits(container);
        exec_container_running(container);
        container_update_paused(container);
}

static bool on_init_oom_killed(Process *init) {
        Container *container = container_of(init);

        return container->control && cgroup_control_oom_killed(container->control, true);
}

const ProcessHandler container_init_handler = {
        .cloned = container_on_cloned,
        .devpts = container_on_devpts,
        .running = on_init_running,
        .failed = container_on_failed,
        .exited = on_init_exited,
        .oom_killed = on_init_oom_killed,
        .hung_up = on_init_hung_up,
};

static int on_kill_time(sd_event_source *source, uint64_t usec, void *userdata) {
        Container *container = userdata;

        container->kill_timer = sd_event_source_disable_unref(container->kill_timer);
        container->init->kill_sent = true;
        (void) process_signal(container->init, SIGKILL);
        return 0;
}

/* Arms the SIGKILL of a Stop; a later time than the one that holds changes nothing. */
static int arm_kill(Container *container, uint64_t timeout_usec) {
        sd_event *event = container->manager->event;
        uint64_t at;
        int r;

        if (timeout_usec == UINT64_MAX)
                return 0;
        r = timer_at(event, timeout_usec, &at);
        if (r < 0)
                return r;
        if (at >= container->kill_at_usec)
                return 0;
        container->kill_timer = sd_event_source_disable_unref(container->kill_timer);
        r = sd_event_add_time(event, &container->kill_timer, CLOCK_MONOTONIC, at, 0, on_kill_time,
                              container);
        if (r >= 0)
                container->kill_at_usec = at;
        return r;
}

/* Begins or joins a stop of a container that runs. */
static int stop_running(Container *container, uint64_t timeout_usec) {
        static const char *const changed[] = { "State", NULL };
        int r;

        if (container->state != CONTAINER_STOPPING) {
                container->state = CONTAINER_STOPPING;
                container->kill_at_usec = UINT64_MAX;
                exec_container_ending(container);
                manager_notify_changed(container->manager, container, changed);
                if (timeout_usec > 0)
                        (void) process_signal(container->init, container->spec->stop_signal);
                container_thaw(container);
        }
        if (timeout_usec > 0) {
                r = arm_kill(container, timeout_usec);
                if (r >= 0)
                        return 0;
        }
        container->init->kill_sent = true;
        return process_signal(container->init, SIGKILL);
}

int container_stop(Container *container, uint64_t timeout_usec, Client *client, container_done_t done,
                   void *userdata, sd_bus_error *error) {
        int r;

        if (timeout_usec == UINT64_MAX)
                timeout_usec = container->spec->timeout_stop_usec;
        switch (container->state) {
        case CONTAINER_CREATED:
        case CONTAINER_EXITED:
                if (done)
                        done(container, NULL, userdata);
                return 0;
        case CONTAINER_STARTING:
                r = container_expect(container, CONTAINER_PENDING_STOP, client, done, userdata);
                if (r < 0)
                        return r;
                process_cancel_start(container->init);
                return 0;
        case CONTAINER_RUNNING:
        case CONTAINER_PAUSED:
        case CONTAINER_STOPPING:
                r = container_expect(container, CONTAINER_PENDING_STOP, client, done, userdata);
                if (r < 0)
                        return r;
                (void) stop_running(container, timeout_usec);
                return 0;
        case _CONTAINER_STATE_MAX:
        case _CONTAINER_STATE_INVALID:
                break;
        }
        return -EINVAL;
}

/* Unlinks, answers, tells: the order that org.berth1(5) promises for an end of the object. */
static void remove_now(Container *container, container_done_t done, void *userdata) {
        _cleanup_(container_unrefp) _unused_ Container *self = container_ref(container);
        _cleanup_bus_error_ sd_bus_error gone = SD_BUS_ERROR_NULL;

        container->expiry = sd_event_source_disable_unref(container->expiry);
        manager_unlink(container->manager, container);
        if (done)
                done(container, NULL, userdata);
        (void) sd_bus_error_setf(&gone, BERTH_ERROR_NO_SUCH_CONTAINER, "container %s has been removed",
                                 container->name);
        process_answer(container->init, PROCESS_PENDING_WAIT, &gone);
        manager_removed(container->manager, container);
}

int container_wait(Container *container, Client *client, process_done_t done, void *userdata,
                   sd_bus_error *error) {
        _cleanup_(container_unrefp) _unused_ Container *self = container_ref(container);
        bool remove = container->state == CONTAINER_EXITED && container->spec->auto_remove;
        int r;

        /* An AutoRemove container that has ended: this is its one answer, and the name is free before it. */
        if (remove) {
                container->expiry = sd_event_source_disable_unref(container->expiry);
                manager_unlink(container->manager, container);
        }
        r = process_wait(container->init, client, done, userdata);
        if (remove)
                manager_removed(container->manager, container);
        return r;
}

int container_remove(Container *container, bool force, Client *client, container_done_t done, void *userdata,
                     sd_bus_error *error) {
        int r;

        if (container->state == CONTAINER_CREATED || container->state == CONTAINER_EXITED) {
                remove_now(container, done, userdata);
                return 0;
        }
        if (!force) {
                (void) sd_bus_error_setf(error, BERTH_ERROR_ALREADY_RUNNING,
                                         "container %s is %s: stop it first, or remove it with force",
                                         container->name, container_state_to_string(container->state));
                return -EBUSY;
        }
        r = container_expect(container, CONTAINER_PENDING_REMOVE, client, done, userdata);
        if (r < 0)
                return r;
        return container_stop(container, 0, NULL, NULL, NULL, error);
}

int container_check_signal(const Container *container, int signal, sd_bus_error *error) {
        if (signal < 1 || signal > SIGNAL_MAX) {
                (void) sd_bus_error_setf(error, BERTH_ERROR_INVALID_ARGS,
                                         "signal %d is out of range (1 to %d)", signal, SIGNAL_MAX);
                return -EINVAL;
        }
        return container_runs(container) ? 0 : container_not_running(container, error);
}

int container_signal(Container *container, int signal, sd_bus_error *error) {
        int r;

        r = container_check_signal(container, signal, error);
        if (r < 0)
                return r;
        r = process_signal(container->init, signal);
        if (r == -ESRCH)
                return container_not_running(container, error);
        return r;
}

int container_resize(Container *container, uint16_t rows, uint16_t columns, sd_bus_error *error) {
        if (rows == 0 || columns == 0) {
                (void) sd_bus_error_set(error, BERTH_ERROR_INVALID_ARGS,
                                        "rows and columns must be 1 or more");
                return -EINVAL;
        }
        if (!container->spec->terminal) {
                (void) sd_bus_error_setf(error, BERTH_ERROR_NO_TERMINAL, "container %s has no terminal",
                                         container->name);
                return -ENOTTY;
        }
        return process_resize(container->init, rows, columns);
}

pid_t container_pid(const Container *container) {
        return container_runs(container) ? container->init->pid : 0;
}

const char *container_unit(const Container *container) {
        return container_runs(container) || container->state == CONTAINER_STARTING ? container->unit : "";
}

void container_client_gone(Container *container, Client *client) {
        _cleanup_(container_unrefp) _unused_ Container *self = container_ref(container);
        _cleanup_bus_error_ sd_bus_error gone = SD_BUS_ERROR_NULL;
        ContainerPending *pending;

        (void) sd_bus_error_set(&gone, BERTH_ERROR_CANCELLED, "the client has gone");
        /* They go on without their call; a Remove's call is what remembers it, and stays. */
        for (ContainerPendingKind kind = 0; kind <= CONTAINER_PENDING_RESUME; kind++)
                while (kind != CONTAINER_PENDING_REMOVE && (pending = pending_find(container, kind, client)))
                        pending_answer(container, pending, &gone);
        exec_client_gone(container, client);
        if (process_client_gone(container->init, client) &&
            (container->state == CONTAINER_RUNNING || container->state == CONTAINER_PAUSED))
                (void) container_stop(container, SPEC_INFINITY, NULL, NULL, NULL, NULL);
}
