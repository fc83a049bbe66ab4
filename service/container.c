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
#include "util/unit-name.h"

#define EXPIRY_USEC (60U * 1000U * 1000U)
#define SIGNAL_MAX 64

static const char *const state_names[_CONTAINER_STATE_MAX] = {
        [CONTAINER_CREATED] = "created",
        [CONTAINER_STARTING] = "starting",
        [CONTAINER_RUNNING] = "running",
        [CONTAINER_STOPPING] = "stopping",
        [CONTAINER_EXITED] = "exited",
};

static const char *const result_names[_CONTAINER_RESULT_MAX] = {
        [CONTAINER_RESULT_NONE] = "",
        [CONTAINER_SUCCESS] = "success",
        [CONTAINER_EXIT_CODE] = "exit-code",
        [CONTAINER_SIGNAL] = "signal",
        [CONTAINER_CORE_DUMP] = "core-dump",
        [CONTAINER_OOM_KILL] = "oom-kill",
        [CONTAINER_TIMEOUT] = "timeout",
        [CONTAINER_LOST] = "lost",
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

const char *container_result_to_string(ContainerResult result) {
        return result >= 0 && result < _CONTAINER_RESULT_MAX ? result_names[result] : NULL;
}

ContainerResult container_result_from_string(const char *text) {
        for (ContainerResult s = 0; s < _CONTAINER_RESULT_MAX; s++)
                if (strcmp(result_names[s], text) == 0)
                        return s;
        return _CONTAINER_RESULT_INVALID;
}

static uint64_t now_realtime(void) {
        struct timespec ts;

        (void) clock_gettime(CLOCK_REALTIME, &ts);
        return (uint64_t) ts.tv_sec * 1000000U + (uint64_t) ts.tv_nsec / 1000U;
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
        container->options = (StartOptions) START_OPTIONS_INIT;
        TAILQ_INIT(&container->pending);
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
        (void) sd_event_source_disable_unref(container->kill_timer);
        (void) sd_event_source_disable_unref(container->expiry);
        (void) process_free(container->process);
        (void) scope_free(container->scope);
        (void) cgroup_free(container->cgroup);
        (void) client_unref(container->starter);
        options_done(&container->options);
        sd_bus_error_free(&container->failure);
        (void) spec_free(container->spec);
        free(container->control_group);
        free(container->name);
        free(container->unit);
        free(container);
        return NULL;
}

/* ---- calls that wait ------------------------------------------------------------------------------------------ */

static int pending_add(Container *container, PendingKind kind, Client *client, container_done_t done, void *userdata) {
        Pending *pending;

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

static void pending_finish(Container *container, Pending *pending, const sd_bus_error *error) {
        TAILQ_REMOVE(&container->pending, pending, link);
        pending->done(container, error, pending->userdata);
        (void) client_unref(pending->client);
        free(pending);
}

/* Answers all of one kind that are there now; what an answer's callback adds is not answered. */
static void pending_finish_all(Container *container, PendingKind kind, const sd_bus_error *error) {
        Pending *pending, *next;

        for (pending = TAILQ_FIRST(&container->pending); pending; pending = next) {
                next = TAILQ_NEXT(pending, link);
                if (pending->kind == kind)
                        pending_finish(container, pending, error);
        }
}

static bool pending_has(const Container *container, PendingKind kind) {
        Pending *pending;

        TAILQ_FOREACH(pending, &container->pending, link)
                if (pending->kind == kind)
                        return true;
        return false;
}

int container_expect_start(Container *container, Client *client, container_done_t done, void *userdata) {
        return pending_add(container, PENDING_START, client, done, userdata);
}

/* ---- the end of a run ----------------------------------------------------------------------------------------- */

static bool runs(const Container *container) {
        return container->state == CONTAINER_RUNNING || container->state == CONTAINER_STOPPING;
}

static int not_running(const Container *container, sd_bus_error *error) {
        (void) sd_bus_error_setf(error, BERTH_ERROR_NOT_RUNNING, "container %s is %s, not running", container->name,
                                 container_state_to_string(container->state));
        return -ESRCH;
}

static ContainerResult result_of(const Container *container) {
        if (container->kill_sent && container->exit_code == CLD_KILLED && container->exit_status == SIGKILL)
                return CONTAINER_TIMEOUT;
        switch (container->exit_code) {
        case CLD_EXITED:
                return container->exit_status == 0 ? CONTAINER_SUCCESS : CONTAINER_EXIT_CODE;
        case CLD_DUMPED:
                return CONTAINER_CORE_DUMP;
        default:
                return CONTAINER_SIGNAL;
        }
}

static int on_expired(sd_event_source *source, uint64_t usec, void *userdata) {
        _cleanup_(container_unrefp) Container *container = container_ref(userdata);

        container->expiry = sd_event_source_disable_unref(container->expiry);
        manager_unlink(container->manager, container);
        manager_removed(container->manager, container);
        return 0;
}

/* Lets go of all that a run had. */
static void release_run(Container *container) {
        container->kill_timer = sd_event_source_disable_unref(container->kill_timer);
        container->process = process_free(container->process);
        container->cgroup = cgroup_free(container->cgroup);
        container->starter = client_unref(container->starter);
        options_done(&container->options);
        free(container->control_group);
        container->control_group = NULL;
        if (container->manager->state)
                state_remove(container->manager->state, container->name);
}

static void on_process_exited(Process *process, void *userdata) {
        static const char *const changed[] = { "State",  "PID",        "ExitCode",     "ExitStatus",
                                               "Result", "ExitedUSec", "ControlGroup", NULL };
        _cleanup_(container_unrefp) Container *container = container_ref(userdata);
        bool remove;

        container->exit_code = process->code;
        container->exit_status = process->status;
        container->exited_usec = now_realtime();
        container->result = result_of(container);
        release_run(container);
        /* systemd collects the scope by itself when it finds it empty. */
        container->scope = scope_free(container->scope);
        container->state = CONTAINER_EXITED;
        log_container(LOG_INFO, container->name, container->unit, "Container %s ended: %s, %s %d", container->name,
                      container_result_to_string(container->result),
                      container->exit_code == CLD_EXITED ? "status" : "signal", container->exit_status);
        manager_notify_changed(container->manager, container, changed);
        manager_notify_exited(container->manager, container);

        remove = container->remove_on_exit || pending_has(container, PENDING_REMOVE) ||
                 (container->spec->auto_remove && pending_has(container, PENDING_WAIT));
        if (remove)
                manager_unlink(container->manager, container);
        pending_finish_all(container, PENDING_WAIT, NULL);
        pending_finish_all(container, PENDING_STOP, NULL);
        pending_finish_all(container, PENDING_REMOVE, NULL);
        if (remove)
                manager_removed(container->manager, container);
        else if (container->spec->auto_remove &&
                 sd_event_add_time_relative(container->manager->event, &container->expiry, CLOCK_MONOTONIC, EXPIRY_USEC,
                                            0, on_expired, container) < 0)
                log_container(LOG_WARNING, container->name, container->unit,
                              "Container %s stays until it is removed: no timer", container->name);
}

void container_on_start_failed(Container *container) {
        static const char *const changed[] = { "State", "FailedStage", "ControlGroup", NULL };
        _cleanup_(container_unrefp) _unused_ Container *self = container_ref(container);
        _cleanup_bus_error_ sd_bus_error failure = container->failure;
        bool remove = container->remove_on_failure || pending_has(container, PENDING_REMOVE);

        container->failure = SD_BUS_ERROR_NULL;
        release_run(container);
        container->state = CONTAINER_CREATED;
        log_container(LOG_NOTICE, container->name, container->unit, "Start failed: %s", failure.message);
        manager_notify_changed(container->manager, container, changed);
        if (remove)
                manager_unlink(container->manager, container);
        pending_finish_all(container, PENDING_START, &failure);
        pending_finish_all(container, PENDING_STOP, NULL);
        pending_finish_all(container, PENDING_REMOVE, NULL);
        if (remove) {
                pending_finish_all(container, PENDING_WAIT, &failure);
                manager_removed(container->manager, container);
        }
}

/* ---- running -------------------------------------------------------------------------------------------------- */

static void on_hung_up(Terminal *terminal, void *userdata) {
        Container *container = userdata;

        /* The kernel has told the program already; one that is PID 1 with default actions does not hear that. */
        if (container->on_disconnect == ON_DISCONNECT_KILL)
                (void) container_stop(container, SPEC_INFINITY, NULL, NULL, NULL, NULL);
}

void container_on_running(Container *container, pid_t pid, int pidfd) {
        static const char *const changed[] = { "State", "PID", "StartedUSec", "ControlGroup", NULL };
        _cleanup_(container_unrefp) _unused_ Container *self = container_ref(container);
        Process *process = container->process;
        int r;

        r = process_begin(process, container->manager->event, pid, pidfd, on_process_exited, container);
        if (r >= 0 && process->terminal)
                r = terminal_watch(process->terminal, container->manager->event, on_hung_up, container);
        if (r < 0) {
                (void) sd_bus_error_setf(&container->failure, BERTH_ERROR_LAUNCH_FAILED,
                                         "container %s: cannot watch its process: %s", container->name, strerror(-r));
                container->scope = scope_free(container->scope);
                container_on_start_failed(container); /* kills and reaps it */
                return;
        }
        container->remove_on_failure = false;
        container->started_usec = now_realtime();
        container->state = CONTAINER_RUNNING;
        log_container(LOG_INFO, container->name, container->unit, "Container %s started, PID %d", container->name, pid);
        manager_notify_changed(container->manager, container, changed);
        manager_notify_started(container->manager, container);
        pending_finish_all(container, PENDING_START, NULL);
        /* Nobody took it: then nobody holds it, and the program hears a hang-up. */
        (void) fd_close(container_take_master(container));
}

int container_take_master(Container *container) {
        if (!container->process || !container->process->terminal)
                return -EBADF;
        return terminal_take_master(container->process->terminal);
}

static int on_kill_time(sd_event_source *source, uint64_t usec, void *userdata) {
        Container *container = userdata;

        container->kill_timer = sd_event_source_disable_unref(container->kill_timer);
        container->kill_sent = true;
        (void) process_signal(container->process, SIGKILL);
        return 0;
}

/* Arms the SIGKILL of a Stop; a later time than the one that holds changes nothing. */
static int arm_kill(Container *container, uint64_t timeout_usec) {
        sd_event *event = container->manager->event;
        uint64_t now, at;
        int r;

        if (timeout_usec == UINT64_MAX)
                return 0;
        r = sd_event_now(event, CLOCK_MONOTONIC, &now);
        if (r < 0)
                return r;
        at = timeout_usec > UINT64_MAX - 1 - now ? UINT64_MAX - 1 : now + timeout_usec;
        if (at >= container->kill_at_usec)
                return 0;
        container->kill_timer = sd_event_source_disable_unref(container->kill_timer);
        r = sd_event_add_time(event, &container->kill_timer, CLOCK_MONOTONIC, at, 0, on_kill_time, container);
        if (r >= 0)
                container->kill_at_usec = at;
        return r;
}

/* Begins or joins a stop of a container that runs. */
static int stop_running(Container *container, uint64_t timeout_usec) {
        static const char *const changed[] = { "State", NULL };
        int r;

        if (container->state == CONTAINER_RUNNING) {
                container->state = CONTAINER_STOPPING;
                container->kill_at_usec = UINT64_MAX;
                manager_notify_changed(container->manager, container, changed);
                if (timeout_usec > 0)
                        (void) process_signal(container->process, container->spec->stop_signal);
        }
        if (timeout_usec > 0) {
                r = arm_kill(container, timeout_usec);
                if (r >= 0)
                        return 0;
        }
        return process_signal(container->process, SIGKILL);
}

int container_stop(Container *container, uint64_t timeout_usec, Client *client, container_done_t done, void *userdata,
                   sd_bus_error *error) {
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
                r = pending_add(container, PENDING_STOP, client, done, userdata);
                if (r < 0)
                        return r;
                if (container->launch)
                        launch_cancel(container->launch);
                return 0;
        case CONTAINER_RUNNING:
        case CONTAINER_STOPPING:
                r = pending_add(container, PENDING_STOP, client, done, userdata);
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
        pending_finish_all(container, PENDING_WAIT, &gone);
        manager_removed(container->manager, container);
}

int container_wait(Container *container, Client *client, container_done_t done, void *userdata, sd_bus_error *error) {
        if (container->state != CONTAINER_EXITED)
                return pending_add(container, PENDING_WAIT, client, done, userdata);
        if (container->spec->auto_remove)
                remove_now(container, done, userdata);
        else
                done(container, NULL, userdata);
        return 0;
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
                                         "container %s is %s: stop it first, or remove it with force", container->name,
                                         container_state_to_string(container->state));
                return -EBUSY;
        }
        r = pending_add(container, PENDING_REMOVE, client, done, userdata);
        if (r < 0)
                return r;
        return container_stop(container, 0, NULL, NULL, NULL, error);
}

int container_signal(Container *container, int signal, sd_bus_error *error) {
        int r;

        if (signal < 1 || signal > SIGNAL_MAX) {
                (void) sd_bus_error_setf(error, BERTH_ERROR_INVALID_ARGS, "signal %d is out of range (1 to %d)", signal,
                                         SIGNAL_MAX);
                return -EINVAL;
        }
        if (!runs(container))
                return not_running(container, error);
        r = process_signal(container->process, signal);
        if (r == -ESRCH)
                return not_running(container, error);
        return r;
}

int container_resize(Container *container, uint16_t rows, uint16_t columns, sd_bus_error *error) {
        TerminalSize size = { .rows = rows, .columns = columns };

        if (rows == 0 || columns == 0) {
                (void) sd_bus_error_set(error, BERTH_ERROR_INVALID_ARGS, "rows and columns must be 1 or more");
                return -EINVAL;
        }
        if (!container->spec->terminal) {
                (void) sd_bus_error_setf(error, BERTH_ERROR_NO_TERMINAL, "container %s has no terminal",
                                         container->name);
                return -ENOTTY;
        }
        if (!runs(container))
                container->wanted_size = size;
        if (container->process && container->process->terminal)
                return terminal_resize(container->process->terminal, size);
        return 0;
}

pid_t container_pid(const Container *container) {
        return runs(container) && container->process ? container->process->pid : 0;
}

pid_t container_foreground_pid(const Container *container) {
        return runs(container) && container->spec->terminal && container->process
                       ? process_foreground(container->process)
                       : 0;
}

TerminalSize container_size(const Container *container) {
        TerminalSize size;

        if (container->process && container->process->terminal &&
            terminal_get_size(container->process->terminal, &size) >= 0)
                return size;
        return container->wanted_size;
}

void container_client_gone(Container *container, Client *client) {
        _cleanup_(container_unrefp) _unused_ Container *self = container_ref(container);
        _cleanup_bus_error_ sd_bus_error gone = SD_BUS_ERROR_NULL;
        Pending *pending, *next;

        (void) sd_bus_error_set(&gone, BERTH_ERROR_CANCELLED, "the client has gone");
        for (pending = TAILQ_FIRST(&container->pending); pending; pending = next) {
                next = TAILQ_NEXT(pending, link);
                if (pending->client != client)
                        continue;
                if (pending->kind == PENDING_START) {
                        if (container->launch)
                                launch_cancel(container->launch);
                } else if (pending->kind != PENDING_REMOVE)
                        /* A Remove goes on, its pending call is what remembers it. */
                        pending_finish(container, pending, &gone);
        }
        if (container->starter == client && container->on_disconnect == ON_DISCONNECT_KILL && !container->spec->terminal &&
            container->state == CONTAINER_RUNNING)
                (void) container_stop(container, SPEC_INFINITY, NULL, NULL, NULL, NULL);
}
