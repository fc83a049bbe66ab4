/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/exec.h"

#include <assert.h>
#include <linux/capability.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "interfaces/names.h"
#include "service/cgroup.h"
#include "service/container.h"
#include "service/manager.h"
#include "service/plan.h"
#include "util/log.h"
#include "util/timer.h"

#define EXPIRY_USEC (60U * 1000U * 1000U)
#define SIGNAL_MAX 64

Exec *exec_ref(Exec *exec) {
        if (exec)
                exec->n_ref++;
        return exec;
}

Exec *exec_unref(Exec *exec) {
        if (!exec)
                return NULL;
        assert(exec->n_ref > 0);
        if (--exec->n_ref > 0)
                return NULL;
        (void) sd_event_source_disable_unref(exec->expiry);
        (void) sd_event_source_disable_unref(exec->kill_timer);
        (void) process_unref(exec->process);
        (void) spec_free(exec->spec);
        (void) container_unref(exec->container);
        free(exec);
        return NULL;
}

Exec *exec_find(Container *container, uint64_t number) {
        Exec *exec;

        TAILQ_FOREACH(exec, &container->execs, link)
        if (exec->number == number)
                return exec;
        return NULL;
}

static void unlink_exec(Exec *exec) {
        if (!exec->linked)
                return;
        exec->linked = false;
        TAILQ_REMOVE(&exec->container->execs, exec, link);
        exec->container->n_execs--;
}

/* Tells of the end of an object that is unlinked, and drops the list's reference. */
static void removed(Exec *exec) {
        if (exec->shown)
                manager_notify_exec_removed(exec->container->manager, exec);
        exec->shown = false;
        exec->expiry = sd_event_source_disable_unref(exec->expiry);
        (void) exec_unref(exec);
}

static int not_running(const Container *container, sd_bus_error *error) {
        (void) sd_bus_error_setf(error, BERTH_ERROR_NOT_RUNNING, "container %s is %s, not running",
                                 container->name, container_state_to_string(container->state));
        return -ESRCH;
}

static int paused(const Container *container, sd_bus_error *error) {
        (void) sd_bus_error_setf(error, BERTH_ERROR_PAUSED, "container %s is paused, resume it first",
                                 container->name);
        return -EAGAIN;
}

/* ---- what happens to the process ------------------------------------------------------------------------------ */

static void on_cloned(Process *process, pid_t pid, int pidfd) {
}

/* Only a new container makes one. */
static void on_devpts(Process *process, int devpts) {
        (void) fd_close(devpts);
}

static void on_running(Process *process) {
        Exec *exec = exec_of(process);

        exec->shown = true;
        manager_notify_exec_added(exec->container->manager, exec);
}

static void on_failed(Process *process, LaunchOutcome outcome) {
        _cleanup_(exec_unrefp) Exec *exec = exec_ref(exec_of(process));
        Container *container = exec->container;
        _cleanup_bus_error_ sd_bus_error failure = process_finish_failed(process), gone = SD_BUS_ERROR_NULL;
        bool ended = !container_runs(container) || container->state == CONTAINER_STOPPING ||
                     process_is_ending(container->init);

        /* Whatever it died of: there is no container any more that it could have run in. */
        if (ended && outcome != LAUNCH_TIMED_OUT)
                (void) sd_bus_error_setf(&gone, BERTH_ERROR_NOT_RUNNING, "container %s has ended",
                                         container->name);
        unlink_exec(exec);
        process_answer(process, PROCESS_PENDING_START, gone.name ? &gone : &failure);
        process_answer(process, PROCESS_PENDING_WAIT, gone.name ? &gone : &failure);
        removed(exec);
}

static int on_expired(sd_event_source *source, uint64_t usec, void *userdata) {
        Exec *exec = userdata;

        unlink_exec(exec);
        removed(exec);
        return 0;
}

static void on_exited(Process *process) {
        _cleanup_(exec_unrefp) Exec *exec = exec_ref(exec_of(process));
        Manager *manager = exec->container->manager;
        bool remove = process_awaited(process);

        exec->kill_timer = sd_event_source_disable_unref(exec->kill_timer);
        manager_notify_exec_exited(manager, exec);
        if (remove)
                unlink_exec(exec);
        process_answer(process, PROCESS_PENDING_WAIT, NULL);
        if (remove)
                removed(exec);
        else if (sd_event_add_time_relative(manager->event, &exec->expiry, CLOCK_MONOTONIC, EXPIRY_USEC, 0,
                                            on_expired, exec) < 0)
                log_message(LOG_WARNING, "The record of %s stays until it is removed: no timer",
                            process->name);
}

static int on_kill_time(sd_event_source *source, uint64_t usec, void *userdata) {
        Exec *exec = userdata;

        exec->kill_timer = sd_event_source_disable_unref(exec->kill_timer);
        exec->process->kill_sent = true;
        (void) process_signal_group(exec->process, SIGKILL);
        return 0;
}

/* OnDisconnect=kill: the group of the session's leader, as a terminal's hang-up would. */
static void end_exec(Exec *exec) {
        uint64_t timeout_usec = exec->spec->timeout_stop_usec;

        if (exec->kill_timer)
                return;
        (void) process_signal_group(exec->process, exec->spec->stop_signal);
        if (timer_start(exec->container->manager->event, timeout_usec, on_kill_time, exec,
                        &exec->kill_timer) < 0)
                (void) process_signal_group(exec->process, SIGKILL);
}

/* What ends with the init is not what the kernel chose. */
static bool on_oom_killed(Process *process) {
        Container *container = exec_of(process)->container;

        return container->control && !process_is_ending(container->init) &&
               cgroup_control_oom_killed(container->control, true);
}

static void on_hung_up(Process *process) {
        end_exec(exec_of(process));
}

static const ProcessHandler handler = {
        .cloned = on_cloned,
        .devpts = on_devpts,
        .running = on_running,
        .failed = on_failed,
        .exited = on_exited,
        .oom_killed = on_oom_killed,
        .hung_up = on_hung_up,
};

/* ---- starting ------------------------------------------------------------------------------------------------- */

/* Where init is now: a container may have moved it below its scope, where no process may be beside a sub-group. */
static int open_cgroup(const Container *container) {
        _cleanup_free_ char *path = NULL;
        int r;

        if (!container->cgroup && !container->manager->scopes)
                return -EBADF;
        r = cgroup_of_process(container->init->pid, &path);
        return r < 0 ? r : cgroup_open(path);
}

static int launch(Exec *exec, sd_bus_error *error) {
        _cleanup_(seccomp_filter_unrefp) SeccompFilter *filter = NULL;
        _cleanup_(terminal_freep) Terminal *terminal = NULL;
        Container *container = exec->container;
        Process *process = exec->process;
        Manager *manager = container->manager;
        TerminalSize size = process_first_size(process);
        _cleanup_free_ void *plan = NULL;
        _cleanup_fd_ int cgroup = -EBADF;
        PlanContext context;
        size_t plan_size;
        int r;

        r = manager_get_filter(manager, exec->spec, &filter, error);
        if (r < 0)
                return process_set_failure(process, LAUNCH_STAGE_SECCOMP, r, "default profile", error);
        if (exec->spec->terminal) {
                r = terminal_new(container->devpts, size, &terminal);
                if (r < 0)
                        return process_set_failure(process, LAUNCH_STAGE_TERMINAL, r, "", error);
        }
        cgroup = open_cgroup(container);
        if (cgroup < 0 && cgroup != -EBADF)
                return process_set_failure(process, LAUNCH_STAGE_CGROUP, cgroup, "", error);

        /* Its own doing, or somebody's who froze the whole container just now: a process would never get to its program. */
        if (cgroup >= 0 && cgroup_is_freezing(cgroup))
                return paused(container, error);

        context = manager_plan_context(manager, size, filter);
        context.enter = true;
        context.cgroup_gate = false;
        r = plan_build(exec->spec, &context, &plan, &plan_size);
        if (r < 0)
                return process_set_failure(process, LAUNCH_STAGE_CLONE, r, "plan", error);
        return process_launch(process,
                              &(ProcessLaunch) {
                                      .launcher = manager->launcher,
                                      .plan = plan,
                                      .plan_size = plan_size,
                                      .cgroup = cgroup,
                                      .enter = container->init->pidfd,
                                      .container = container->name,
                                      .unit = container->unit,
                                      .devpts = -EBADF,
                                      .terminal = TAKE_PTR(terminal),
                              },
                              error);
}

static bool has(const Spec *spec, int capability) {
        return spec->capabilities & UINT64_C(1) << capability;
}

/* Until its filter is loaded, a process without no_new_privs has CAP_SYS_ADMIN, and who may trace it could take it over
 * with that. In a user namespace of its own the container cannot trace what was born outside. */
static int check_tracers(const Container *container, const Spec *spec, sd_bus_error *error) {
        if (!container->tracers || container->manager->own_user_namespace || spec->no_new_privileges ||
            spec->seccomp == SPEC_SECCOMP_UNCONFINED || has(spec, CAP_SYS_ADMIN))
                return 0;
        (void) sd_bus_error_setf(error, BERTH_ERROR_NOT_SUPPORTED,
                                 "container %s has CAP_SYS_PTRACE: Exec in it wants NoNewPrivileges, or a "
                                 "SeccompProfile of unconfined",
                                 container->name);
        return -EOPNOTSUPP;
}

static int exec_new(Container *container, Spec *spec, Exec **ret) {
        _cleanup_(exec_unrefp) Exec *exec = NULL;
        _cleanup_free_ char *name = NULL;
        int r;

        exec = calloc(1, sizeof(*exec));
        if (!exec) {
                (void) spec_free(spec);
                return -ENOMEM;
        }
        exec->n_ref = 1;
        exec->container = container_ref(container);
        exec->spec = spec;
        exec->number = ++container->last_exec;
        if (asprintf(&name, "process %llu of container %s", (unsigned long long) exec->number,
                     container->name) < 0) {
                name = NULL;
                return -ENOMEM;
        }
        r = process_new(container->manager->event, name, &handler, exec, &exec->process);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(exec);
        return 0;
}

int exec_start(Container *container, Spec *spec, StartOptions *options, Client *client, process_done_t done,
               void *userdata, sd_bus_error *error) {
        _cleanup_options_ StartOptions given = options_take(options);
        _cleanup_(exec_unrefp) Exec *exec = NULL;
        _cleanup_spec_ Spec *owned = spec;
        int r;

        container_update_paused(container);
        if (container->state == CONTAINER_PAUSED ||
            (container->control && cgroup_is_freezing(cgroup_control_fd(container->control))))
                return paused(container, error);
        if (container->state != CONTAINER_RUNNING && container->state != CONTAINER_STARTING)
                return not_running(container, error);
        if (container->n_execs >= EXEC_PER_CONTAINER_MAX) {
                (void) sd_bus_error_setf(
                        error, BERTH_ERROR_LIMIT_REACHED,
                        "container %s has %u processes already, wait for some or remove them",
                        container->name, EXEC_PER_CONTAINER_MAX);
                return -EDQUOT;
        }
        if (given.on_disconnect == ON_DISCONNECT_DEFAULT)
                given.on_disconnect = owned->terminal ? ON_DISCONNECT_HANGUP : ON_DISCONNECT_KEEP;
        r = options_validate(&given, owned, error);
        if (r < 0)
                return r;
        r = check_tracers(container, owned, error);
        if (r < 0)
                return r;
        container->tracers = container->tracers ||
                             (has(owned, CAP_SYS_PTRACE) && !has(owned, CAP_SYS_ADMIN));
        r = exec_new(container, TAKE_PTR(owned), &exec);
        if (r < 0)
                return r;
        r = process_prepare_start(exec->process, exec->spec, &given, client, done, userdata);
        if (r < 0)
                return r;
        if (container->state == CONTAINER_STARTING)
                exec->waiting = true;
        else {
                r = launch(exec, error);
                if (r < 0) {
                        process_forget_start(exec->process);
                        return r;
                }
        }
        exec->linked = true;
        container->n_execs++;
        /* Not by a reference in the macro, which would take it more than once. */
        TAILQ_INSERT_TAIL(&container->execs, exec, link);
        TAKE_PTR(exec);
        return 0;
}

/* ---- the container's life ------------------------------------------------------------------------------------- */

/* Ends a start that waits or is under way. */
static void fail_start(Exec *exec, sd_bus_error *why) {
        exec->waiting = false;
        sd_bus_error_free(&exec->process->failure);
        exec->process->failure = *why;
        *why = SD_BUS_ERROR_NULL;
        on_failed(exec->process, LAUNCH_FAILED);
}

void exec_cancel_start(Exec *exec) {
        _cleanup_bus_error_ sd_bus_error error = SD_BUS_ERROR_NULL;

        if (!exec->waiting) {
                process_cancel_start(exec->process);
                return;
        }
        (void) sd_bus_error_setf(&error, BERTH_ERROR_CANCELLED, "%s: the start was cancelled",
                                 exec->process->name);
        fail_start(exec, &error);
}

void exec_container_running(Container *container) {
        Exec *exec, *next;

        for (exec = TAILQ_FIRST(&container->execs); exec; exec = next) {
                _cleanup_bus_error_ sd_bus_error error = SD_BUS_ERROR_NULL;

                next = TAILQ_NEXT(exec, link);
                if (!exec->waiting)
                        continue;
                exec->waiting = false;
                if (launch(exec, &error) < 0)
                        fail_start(exec, &error);
        }
}

void exec_container_ending(Container *container) {
        Exec *exec, *next;

        for (exec = TAILQ_FIRST(&container->execs); exec; exec = next) {
                _cleanup_bus_error_ sd_bus_error error = SD_BUS_ERROR_NULL;

                next = TAILQ_NEXT(exec, link);
                if (exec->waiting) {
                        (void) not_running(container, &error);
                        fail_start(exec, &error);
                } else
                        process_cancel_start(exec->process);
        }
}

void exec_remove_all(Container *container) {
        Exec *exec;

        while ((exec = TAILQ_FIRST(&container->execs))) {
                unlink_exec(exec);
                /* A start that was cancelled is not over yet: its end drops the reference. */
                if (!exec->process->launch)
                        removed(exec);
        }
}

void exec_client_gone(Container *container, Client *client) {
        Exec *exec, *next;

        for (exec = TAILQ_FIRST(&container->execs); exec; exec = next) {
                _cleanup_bus_error_ sd_bus_error error = SD_BUS_ERROR_NULL;

                next = TAILQ_NEXT(exec, link);
                if (exec->waiting && exec->process->starter == client) {
                        (void) sd_bus_error_set(&error, BERTH_ERROR_CANCELLED, "the client has gone");
                        fail_start(exec, &error);
                } else if (process_client_gone(exec->process, client))
                        end_exec(exec);
        }
}

/* ---- calls ---------------------------------------------------------------------------------------------------- */

int exec_signal(Exec *exec, int signal, sd_bus_error *error) {
        int r;

        if (signal < 1 || signal > SIGNAL_MAX) {
                (void) sd_bus_error_setf(error, BERTH_ERROR_INVALID_ARGS,
                                         "signal %d is out of range (1 to %d)", signal, SIGNAL_MAX);
                return -EINVAL;
        }
        r = process_signal(exec->process, signal);
        if (r == -ESRCH)
                (void) sd_bus_error_setf(error, BERTH_ERROR_NOT_RUNNING, "%s has ended",
                                         exec->process->name);
        return r;
}

int exec_resize(Exec *exec, uint16_t rows, uint16_t columns, sd_bus_error *error) {
        if (rows == 0 || columns == 0) {
                (void) sd_bus_error_set(error, BERTH_ERROR_INVALID_ARGS,
                                        "rows and columns must be 1 or more");
                return -EINVAL;
        }
        if (!exec->spec->terminal) {
                (void) sd_bus_error_setf(error, BERTH_ERROR_NO_TERMINAL, "%s has no terminal",
                                         exec->process->name);
                return -ENOTTY;
        }
        return process_resize(exec->process, rows, columns);
}

int exec_wait(Exec *exec, Client *client, process_done_t done, void *userdata, sd_bus_error *error) {
        _cleanup_(exec_unrefp) _unused_ Exec *self = exec_ref(exec);
        bool remove = exec->process->state == PROCESS_EXITED;
        int r;

        if (remove)
                unlink_exec(exec);
        r = process_wait(exec->process, client, done, userdata);
        if (remove)
                removed(exec);
        return r;
}

int exec_remove(Exec *exec, sd_bus_error *error) {
        if (exec->process->state != PROCESS_EXITED) {
                (void) sd_bus_error_setf(error, BERTH_ERROR_ALREADY_RUNNING, "%s still runs",
                                         exec->process->name);
                return -EBUSY;
        }
        unlink_exec(exec);
        removed(exec);
        return 0;
}
