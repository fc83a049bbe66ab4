/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The way of a container from created to running: everything that a launch needs is made here, and every way in which
 * it can fail ends here. */
#include <assert.h>
#include <errno.h>
#include <linux/capability.h>
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

static void on_scope_gone(void *userdata) {
        _cleanup_(container_unrefp) Container *container = userdata;

        container_on_start_failed(container);
}

void container_on_failed(Process *init, LaunchOutcome outcome) {
        Container *container = container_of(init);
        Scope *scope = TAKE_PTR(container->scope);

        /* The process may have ended before systemd saw it: then nobody but us would ever stop the scope. */
        if (scope && outcome != LAUNCH_TIMED_OUT) {
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
                container_open_control(container);
        }
}

static void on_scope_ready(const sd_bus_error *error, void *userdata) {
        Container *container = userdata;

        if (error) {
                container->scope = scope_free(container->scope);
                process_fail_start(container->init, LAUNCH_STAGE_SCOPE, -EREMOTEIO,
                                   error->message ?: error->name);
                return;
        }
        note_control_group(container, container->init->pid);
        process_open_gate(container->init);
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
                .resources = &spec->resources,
        };
        if (container->manager->state) {
                r = state_save(container->manager->state, container->name, container->unit);
                if (r < 0)
                        return r;
        }
        return scope_new(container->manager->scopes, &parameters, on_scope_ready, container,
                         &container->scope);
}

void container_on_cloned(Process *init, pid_t pid, int pidfd) {
        Container *container = container_of(init);
        int r;

        if (!container->manager->scopes) {
                note_control_group(container, pid);
                return;
        }
        r = ask_for_scope(container, pid, pidfd);
        if (r < 0)
                process_fail_start(init, LAUNCH_STAGE_SCOPE, r, container->unit);
}

void container_on_devpts(Process *init, int devpts) {
        Container *container = container_of(init);

        (void) fd_close(container->devpts);
        container->devpts = devpts;
}

/* The container's devpts and, where its program has one, the terminal of init: made before the container is. An ordinary
 * user's container makes them itself. */
static int make_terminal(Container *container, TerminalSize size, Terminal **ret, sd_bus_error *error) {
        int r;

        *ret = NULL;
        if (container->manager->own_user_namespace)
                return 0;
        r = terminal_make_devpts(TTY_GID);
        if (r < 0)
                return process_set_failure(container->init, LAUNCH_STAGE_TERMINAL, r, "devpts", error);
        (void) fd_close(container->devpts);
        container->devpts = r;
        if (!container->spec->terminal)
                return 0;
        r = terminal_new(container->devpts, size, ret);
        if (r < 0)
                return process_set_failure(container->init, LAUNCH_STAGE_TERMINAL, r, "", error);
        return 0;
}

static int make_cgroup(Container *container, sd_bus_error *error) {
        const char *key;
        int r;

        if (!container->manager->cgroups)
                return 0;
        r = cgroup_new(container->manager->cgroups, container->name, &container->spec->resources, &key,
                       &container->cgroup);
        if (r < 0)
                return process_set_failure(container->init, LAUNCH_STAGE_CGROUP, r, key, error);
        return 0;
}

static int begin_launch(Container *container, sd_bus_error *error) {
        _cleanup_(seccomp_filter_unrefp) SeccompFilter *filter = NULL;
        _cleanup_(terminal_freep) Terminal *terminal = NULL;
        TerminalSize size = process_first_size(container->init);
        Manager *manager = container->manager;
        const Spec *spec = container->spec;
        _cleanup_free_ void *plan = NULL;
        PlanContext context;
        size_t plan_size;
        int r;

        r = manager_get_filter(manager, spec, &filter, error);
        if (r < 0)
                return process_set_failure(container->init, LAUNCH_STAGE_SECCOMP, r, "default profile",
                                           error);
        r = make_terminal(container, size, &terminal, error);
        if (r < 0)
                return r;
        r = make_cgroup(container, error);
        if (r < 0)
                return r;

        context = manager_plan_context(manager, size, filter);
        context.name = container->name;
        r = plan_build(spec, &context, &plan, &plan_size);
        if (r < 0)
                return process_set_failure(container->init, LAUNCH_STAGE_CLONE, r, "plan", error);
        return process_launch(container->init,
                              &(ProcessLaunch) {
                                      .launcher = manager->launcher,
                                      .plan = plan,
                                      .plan_size = plan_size,
                                      .cgroup = container->cgroup ? cgroup_fd(container->cgroup) : -EBADF,
                                      .enter = -EBADF,
                                      .container = container->name,
                                      .unit = container->unit,
                                      .devpts = container->devpts,
                                      .terminal = TAKE_PTR(terminal),
                                      .map = manager->own_user_namespace ? &manager->user_map : NULL,
                              },
                              error);
}

int container_start(Container *container, StartOptions *options, Client *client, process_done_t done,
                    void *userdata, sd_bus_error *error) {
        static const char *const changed[] = { "State",       "ExitCode",   "ExitStatus",
                                               "Result",      "ExitedUSec", "StartedUSec",
                                               "FailedStage", "Unit",       NULL };
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
        if (given.on_disconnect == ON_DISCONNECT_DEFAULT)
                given.on_disconnect = container->spec->terminal ? ON_DISCONNECT_KILL : ON_DISCONNECT_KEEP;
        r = process_prepare_start(container->init, container->spec, &given, client, done, userdata);
        if (r < 0)
                return r;
        container->expiry = sd_event_source_disable_unref(container->expiry);
        container->state = CONTAINER_STARTING;
        container->tracers = container->spec->capabilities & UINT64_C(1) << CAP_SYS_PTRACE &&
                             !(container->spec->capabilities & UINT64_C(1) << CAP_SYS_ADMIN);
        r = begin_launch(container, error);
        if (r < 0) {
                process_forget_start(container->init);
                container_release_run(container);
                container->state = CONTAINER_CREATED;
        }
        manager_notify_changed(container->manager, container, changed);
        return r;
}
