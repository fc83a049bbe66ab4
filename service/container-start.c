/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The way of a container from created to running: everything that a launch needs is made here, and every way in which
 * it can fail ends here. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "interfaces/names.h"
#include "service/cgroup.h"
#include "service/container.h"
#include "service/manager.h"
#include "service/plan.h"
#include "util/log.h"

/* The group of terminals, in every distribution that has one. */
#define TTY_GID 5

#define DEFAULT_SLICE "berth.slice"
#define SCOPE_STOP_EXTRA_USEC (5U * 1000U * 1000U) /* PID 1 never overtakes us */

/* An error of a start as clients see it: which stage, what it was about, and why. */
static int set_failure(Container *container, LaunchStage stage, int error, const char *detail, sd_bus_error *ret) {
        const char *space = *detail ? " " : "", *name = BERTH_ERROR_LAUNCH_FAILED;

        container->failed_stage = stage;
        if (stage == LAUNCH_STAGE_EXEC && (error == -ENOENT || error == -ENOTDIR))
                name = BERTH_ERROR_COMMAND_NOT_FOUND;
        else if (stage == LAUNCH_STAGE_EXEC && (error == -EACCES || error == -ENOEXEC || error == -EISDIR))
                name = BERTH_ERROR_COMMAND_NOT_EXECUTABLE;
        else if (error == -EOPNOTSUPP)
                name = BERTH_ERROR_NOT_SUPPORTED;

        if (error == -EOPNOTSUPP && stage == LAUNCH_STAGE_ROOTFS && container->spec->ephemeral &&
            container->manager->own_user_namespace)
                (void) sd_bus_error_setf(ret, name,
                                         "container %s: Ephemeral cannot lie over the mount %s for an ordinary user, "
                                         "ReadOnly can",
                                         container->name, detail);
        else if (error == -EOWNERDEAD)
                (void) sd_bus_error_setf(ret, name, "container %s: %s%s%s: the starting process was killed",
                                         container->name, launch_stage_to_string(stage), space, detail);
        else if (error == -EREMOTEIO) /* detail is what the other side said */
                (void) sd_bus_error_setf(ret, name, "container %s: %s%s%s", container->name,
                                         launch_stage_to_string(stage), space, detail);
        else
                (void) sd_bus_error_setf(ret, name, "container %s: %s%s%s: %s", container->name,
                                         launch_stage_to_string(stage), space, detail, strerror(-error));
        return error;
}

static void on_scope_gone(void *userdata) {
        _cleanup_(container_unrefp) Container *container = userdata;

        container_on_start_failed(container);
}

static void on_launch_done(Launch *launch, const LaunchResult *result, void *userdata) {
        Container *container = userdata;
        Scope *scope;

        container->launch = NULL;
        switch (result->outcome) {
        case LAUNCH_RUNNING:
                container_on_running(container, result->pid, result->pidfd);
                return;
        case LAUNCH_FAILED:
                (void) set_failure(container, result->stage, result->error, result->detail, &container->failure);
                break;
        case LAUNCH_CANCELLED:
                (void) sd_bus_error_setf(&container->failure, BERTH_ERROR_CANCELLED,
                                         "container %s: the start was cancelled", container->name);
                break;
        case LAUNCH_TIMED_OUT:
                container->failed_stage = result->stage;
                (void) sd_bus_error_setf(&container->failure, BERTH_ERROR_TIMEOUT,
                                         "container %s: the start took longer than TimeoutStartUSec, at stage %s%s%s",
                                         container->name, launch_stage_to_string(result->stage),
                                         *result->detail ? " " : "", result->detail);
                break;
        }
        /* The process may have ended before systemd saw it: then nobody but us would ever stop the scope. */
        scope = TAKE_PTR(container->scope);
        if (scope && result->outcome != LAUNCH_TIMED_OUT) {
                scope_stop(scope, on_scope_gone, container_ref(container));
                return;
        }
        if (scope)
                scope_stop(scope, NULL, NULL);
        container_on_start_failed(container);
}

static void note_control_group(Container *container, pid_t pid) {
        char *path;

        if (cgroup_of_process(pid, &path) >= 0) {
                free(container->control_group);
                container->control_group = path;
        }
}

static void on_scope_ready(const sd_bus_error *error, void *userdata) {
        Container *container = userdata;
        int r;

        if (error) {
                container->scope = scope_free(container->scope);
                if (container->launch)
                        launch_fail(container->launch, LAUNCH_STAGE_SCOPE, -EREMOTEIO, error->message ?: error->name);
                return;
        }
        if (!container->launch)
                return;
        note_control_group(container, container->process->pid);
        r = launch_open_gate(container->launch, LAUNCH_GATE_CGROUP);
        if (r < 0 && r != -EPIPE) /* EPIPE: it is dead, which the launch tells of with its reason */
                launch_fail(container->launch, LAUNCH_STAGE_SCOPE, r, container->unit);
}

static int ask_for_scope(Container *container, pid_t pid, int pidfd) {
        const Spec *spec = container->spec;
        _cleanup_free_ char *description = NULL;
        ScopeParameters parameters;
        int r;

        if (asprintf(&description, "Container %s", container->name) < 0) {
                description = NULL;
                return -ENOMEM;
        }
        parameters = (ScopeParameters) {
                .unit = container->unit,
                .description = description,
                .slice = spec->slice ?: DEFAULT_SLICE,
                .pid = pid,
                .pidfd = pidfd,
                .stop_signal = spec->stop_signal,
                .timeout_stop_usec = spec->timeout_stop_usec >= UINT64_MAX - SCOPE_STOP_EXTRA_USEC
                                             ? UINT64_MAX
                                             : spec->timeout_stop_usec + SCOPE_STOP_EXTRA_USEC,
                .memory_max = spec->memory_max,
                .tasks_max = spec->tasks_max,
        };
        if (container->manager->state) {
                r = state_save(container->manager->state, container->name, container->unit);
                if (r < 0)
                        return r;
        }
        return scope_new(container->manager->scopes, &parameters, on_scope_ready, container, &container->scope);
}

static void on_cloned(Launch *launch, pid_t pid, int pidfd, void *userdata) {
        Container *container = userdata;
        int r;

        container->process->pid = pid;
        if (container->manager->scopes) {
                r = ask_for_scope(container, pid, pidfd);
                if (r < 0)
                        launch_fail(launch, LAUNCH_STAGE_SCOPE, r, container->unit);
        } else
                note_control_group(container, pid);
}

static void on_terminal(Launch *launch, int devpts, int master, void *userdata) {
        Container *container = userdata;
        Terminal *terminal;
        int r;

        if (container->process->terminal) {
                (void) fd_close(devpts);
                (void) fd_close(master);
                launch_fail(launch, LAUNCH_STAGE_TERMINAL, -EPROTO, "a second terminal");
                return;
        }
        r = terminal_adopt(devpts, master, &terminal);
        if (r < 0) {
                launch_fail(launch, LAUNCH_STAGE_TERMINAL, r, "");
                return;
        }
        container->process->terminal = terminal;
        /* A Resize that came while there was no terminal. */
        if (container->wanted_size.rows > 0)
                (void) terminal_resize(terminal, container->wanted_size);
}

static const LaunchHandler launch_handler = {
        .cloned = on_cloned,
        .terminal = on_terminal,
        .done = on_launch_done,
};

/* The size that the program finds: the start's own, else what Resize stored, else the default. */
static TerminalSize first_size(const Container *container) {
        const StartOptions *options = &container->options;
        TerminalSize size = container->wanted_size;

        if (options->rows > 0 && options->columns > 0)
                size = (TerminalSize) { options->rows, options->columns, options->x_pixels, options->y_pixels };
        if (size.rows == 0 || size.columns == 0)
                size = TERMINAL_SIZE_DEFAULT;
        return size;
}

static int make_process(Container *container, TerminalSize size, sd_bus_error *error) {
        _cleanup_(terminal_freep) Terminal *terminal = NULL;
        int r;

        if (container->spec->terminal && !container->manager->own_user_namespace) {
                r = terminal_new(TTY_GID, size, &terminal);
                if (r < 0)
                        return set_failure(container, LAUNCH_STAGE_TERMINAL, r, "devpts", error);
        }
        r = process_new(terminal, &container->process);
        if (r < 0)
                return set_failure(container, LAUNCH_STAGE_TERMINAL, r, "", error);
        TAKE_PTR(terminal);
        return 0;
}

static int make_cgroup(Container *container, sd_bus_error *error) {
        const Spec *spec = container->spec;
        int r;

        if (!container->manager->cgroups)
                return 0;
        r = cgroup_new(container->manager->cgroups, container->name, spec->memory_max, spec->tasks_max,
                       &container->cgroup);
        if (r < 0)
                return set_failure(container, LAUNCH_STAGE_CGROUP, r, container->name, error);
        return 0;
}

static int begin_launch(Container *container, sd_bus_error *error) {
        _cleanup_(seccomp_filter_unrefp) SeccompFilter *filter = NULL;
        Manager *manager = container->manager;
        const StartOptions *options = &container->options;
        const Spec *spec = container->spec;
        _cleanup_free_ void *plan = NULL;
        LaunchParameters parameters;
        PlanContext context;
        TerminalSize size;
        size_t plan_size;
        int r;

        size = first_size(container);
        if (spec->seccomp == SPEC_SECCOMP_DEFAULT) {
                r = seccomp_cache_get_default(manager->filters, spec->capabilities, &filter, error);
                if (r < 0)
                        return set_failure(container, LAUNCH_STAGE_SECCOMP, r, "default profile", error);
        }
        r = make_process(container, size, error);
        if (r < 0)
                return r;
        r = make_cgroup(container, error);
        if (r < 0)
                return r;

        context = (PlanContext) {
                .name = container->name,
                .user_namespace = manager->own_user_namespace,
                .one_id = manager->own_user_namespace && user_map_one_id(&manager->user_map),
                .make_terminal = manager->own_user_namespace,
                .cgroup_gate = manager->scopes,
                .capabilities_lacking = manager->own_user_namespace ? 0 : manager->capabilities_lacking,
                .n_throttle = manager->n_throttle,
                .die_with_parent = manager->die_with_parent,
                .rows = size.rows,
                .columns = size.columns,
                .x_pixels = size.x_pixels,
                .y_pixels = size.y_pixels,
                .filter = filter ? filter->program : NULL,
                .n_filter = filter ? filter->n : 0,
                .filter_flags = filter ? filter->flags : 0,
        };
        r = plan_build(spec, &context, &plan, &plan_size);
        if (r < 0)
                return set_failure(container, LAUNCH_STAGE_CLONE, r, "plan", error);

        parameters = (LaunchParameters) {
                .plan = plan,
                .plan_size = plan_size,
                .cgroup = container->cgroup ? cgroup_fd(container->cgroup) : -EBADF,
                .stdio = { options->stdio[0], options->stdio[1], options->stdio[2] },
                .devpts = container->process->terminal ? terminal_devpts(container->process->terminal) : -EBADF,
                .tty = container->process->terminal ? terminal_slave(container->process->terminal) : -EBADF,
                .map = manager->own_user_namespace ? &manager->user_map : NULL,
                .timeout_usec = spec->timeout_start_usec,
        };
        r = launch_start(manager->launcher, &parameters, &launch_handler, container, &container->launch);
        if (r < 0)
                return set_failure(container, LAUNCH_STAGE_CLONE, r, "berth-launch", error);
        /* The child's now: an end of file must reach the other side when the program closes its own. */
        options_done(&container->options);
        return 0;
}

static OnDisconnect effective_on_disconnect(const Container *container) {
        if (container->options.on_disconnect != ON_DISCONNECT_DEFAULT)
                return container->options.on_disconnect;
        return container->spec->terminal ? ON_DISCONNECT_KILL : ON_DISCONNECT_KEEP;
}

int container_start(Container *container, StartOptions *options, Client *client, container_done_t done, void *userdata,
                    sd_bus_error *error) {
        static const char *const changed[] = { "State",      "ExitCode",    "ExitStatus",  "Result",
                                               "ExitedUSec", "StartedUSec", "FailedStage", NULL };
        _cleanup_options_ StartOptions given = options_take(options);
        int r;

        assert(done);
        if (container->state != CONTAINER_CREATED && container->state != CONTAINER_EXITED) {
                (void) sd_bus_error_setf(error, BERTH_ERROR_ALREADY_RUNNING, "container %s is %s already",
                                         container->name, container_state_to_string(container->state));
                return -EBUSY;
        }
        if (container->manager->stopping) {
                (void) sd_bus_error_set(error, BERTH_ERROR_CANCELLED, "the service is ending, call again");
                return -ECANCELED;
        }
        r = options_validate(&given, container->spec, error);
        if (r < 0)
                return r;

        container->expiry = sd_event_source_disable_unref(container->expiry);
        container->options = options_take(&given);
        container->on_disconnect = effective_on_disconnect(container);
        container->exit_code = container->exit_status = 0;
        container->result = CONTAINER_RESULT_NONE;
        container->exited_usec = container->started_usec = 0;
        container->failed_stage = LAUNCH_STAGE_NONE;
        container->kill_sent = false;

        r = begin_launch(container, error);
        if (r >= 0)
                r = container_expect_start(container, client, done, userdata);
        if (r >= 0)
                container->starter = client_ref(client);
        if (r < 0) {
                if (container->launch)
                        /* Out of memory at the last step: it ends as a start that nobody waits for. */
                        launch_cancel(container->launch);
                else {
                        container->process = process_free(container->process);
                        container->cgroup = cgroup_free(container->cgroup);
                        options_done(&container->options);
                        container->state = CONTAINER_CREATED;
                        manager_notify_changed(container->manager, container, changed);
                        return r;
                }
        }
        container->state = CONTAINER_STARTING;
        manager_notify_changed(container->manager, container, changed);
        return r;
}
