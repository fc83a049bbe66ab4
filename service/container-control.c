/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What can be done to a container as a whole while it runs: stopping its processes and letting them go on, signals to all
 * of them, who they are and what they use. All of it by its control group; by its PID namespace where it has none. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/pidfd.h>

#include "interfaces/names.h"
#include "service/cgroup.h"
#include "service/container.h"
#include "service/manager.h"
#include "util/log.h"

static int no_control_group(const Container *container, const char *call, sd_bus_error *error) {
        (void) sd_bus_error_setf(error, BERTH_ERROR_NOT_SUPPORTED,
                                 "%s: container %s has no control group that can do this", call,
                                 container->name);
        return -EOPNOTSUPP;
}

/* ---- frozen and thawed ------------------------------------------------------------------------------------------ */

static void set_state(Container *container, ContainerState state) {
        static const char *const changed[] = { "State", NULL };

        container->state = state;
        manager_notify_changed(container->manager, container, changed);
}

static void on_frozen(bool frozen, void *userdata) {
        _cleanup_(container_unrefp) Container *container = container_ref(userdata);

        if (frozen && container->state == CONTAINER_RUNNING) {
                set_state(container, CONTAINER_PAUSED);
                container_answer(container, CONTAINER_PENDING_PAUSE, NULL);
        } else if (!frozen && container->state == CONTAINER_PAUSED) {
                set_state(container, CONTAINER_RUNNING);
                container_answer(container, CONTAINER_PENDING_RESUME, NULL);
        }
}

/* The group is the container's alone: its scope, or the one that we made. What is written to its files hits all in it, so
 * nothing else is ever taken for it, whatever a process of the container's was found in. */
static bool is_own_group(const Container *container) {
        const char *last;

        if (!container->control_group)
                return false;
        if (container->cgroup)
                return strcmp(container->control_group, cgroup_path(container->cgroup)) == 0;
        last = strrchr(container->control_group, '/');
        return container->manager->scopes && last && strcmp(last + 1, container->unit) == 0;
}

void container_open_control(Container *container) {
        int r;

        /* Without a group of its own it is in the service's. */
        if (!is_own_group(container))
                return;
        container->control = cgroup_control_free(container->control);
        r = cgroup_control_new(container->manager->event, container->control_group, on_frozen, container,
                               &container->control);
        if (r < 0)
                log_container(LOG_WARNING, container->name, container->unit,
                              "Cannot watch control group %s: %s", container->control_group, strerror(-r));
}

void container_update_paused(Container *container) {
        if (container->control)
                cgroup_control_update(container->control);
}

/* Why a Pause or a Resume that waits will not come true. */
static void cancel(Container *container, ContainerPendingKind kind, const char *by) {
        _cleanup_bus_error_ sd_bus_error error = SD_BUS_ERROR_NULL;

        (void) sd_bus_error_setf(&error, BERTH_ERROR_CANCELLED, "container %s: cancelled by %s",
                                 container->name, by);
        container_answer(container, kind, &error);
}

/* Asks for one state; `waiting` waits for it and `other` for the opposite. */
static int freeze(Container *container, bool frozen, Client *client, container_done_t done, void *userdata,
                  sd_bus_error *error) {
        const ContainerState wanted = frozen ? CONTAINER_PAUSED : CONTAINER_RUNNING;
        const ContainerPendingKind waiting = frozen ? CONTAINER_PENDING_PAUSE : CONTAINER_PENDING_RESUME,
                                   other = frozen ? CONTAINER_PENDING_RESUME : CONTAINER_PENDING_PAUSE;
        const char *call = frozen ? "Pause" : "Resume";
        _cleanup_(container_unrefp) _unused_ Container *self = container_ref(container);
        int r;

        container_update_paused(container);
        if (container->state != CONTAINER_RUNNING && container->state != CONTAINER_PAUSED)
                return container_not_running(container, error);
        if (!container->control)
                return no_control_group(container, call, error);
        r = cgroup_control_freeze(container->control, frozen);
        if (r == -ENOENT)
                return no_control_group(container, call, error);
        if (r == -ENODEV)
                return container_not_running(container, error);
        if (r < 0)
                return r;
        r = container_expect(container, waiting, client, done, userdata);
        if (r < 0)
                return r;
        cancel(container, other, call);
        container_update_paused(container);
        if (container->state == wanted)
                container_answer(container, waiting, NULL);
        return 0;
}

int container_pause(Container *container, Client *client, container_done_t done, void *userdata,
                    sd_bus_error *error) {
        return freeze(container, true, client, done, userdata, error);
}

int container_resume(Container *container, Client *client, container_done_t done, void *userdata,
                     sd_bus_error *error) {
        return freeze(container, false, client, done, userdata, error);
}

void container_thaw(Container *container) {
        if (container->control)
                (void) cgroup_control_freeze(container->control, false);
        cancel(container, CONTAINER_PENDING_PAUSE, "Stop");
        cancel(container, CONTAINER_PENDING_RESUME, "Stop");
}

/* ---- its processes ---------------------------------------------------------------------------------------------- */

int container_members(const Container *container, Members *ret, sd_bus_error *error) {
        int r;

        if (!container_runs(container))
                return container_not_running(container, error);
        r = container->control ? members_in_cgroup(cgroup_control_fd(container->control), ret)
                               : members_in_namespace(container->init->pid, ret);
        if (r == -ENOENT || r == -ENODEV)
                return container_not_running(container, error);
        if (r == -E2BIG) {
                (void) sd_bus_error_setf(error, BERTH_ERROR_LIMIT_REACHED,
                                         "container %s has more than %u processes", container->name,
                                         MEMBERS_MAX);
                return r;
        }
        if (r == -EOPNOTSUPP)
                return no_control_group(container, "ListProcesses", error);
        return r;
}

bool container_has_member(const Container *container, pid_t pid) {
        if (!container_runs(container))
                return false;
        return container->control ? member_of_cgroup(pid, container->control_group)
                                  : member_of_namespace(pid, container->init->pid);
}

/* By a descriptor, since the number may have become another process' since it was read. */
static void signal_member(const Container *container, pid_t pid, int signal) {
        _cleanup_fd_ int pidfd = pidfd_open(pid, 0);

        if (pidfd >= 0 && container_has_member(container, pid))
                (void) pidfd_send_signal(pidfd, signal, NULL, 0);
}

int container_signal_all(Container *container, int signal, sd_bus_error *error) {
        _cleanup_members_ Members members = {};
        int r;

        r = container_check_signal(container, signal, error);
        if (r < 0)
                return r;
        if (signal == SIGKILL) {
                /* The kernel ends all of a PID namespace with its init. */
                if (!container->control || cgroup_control_kill(container->control) < 0)
                        (void) process_signal(container->init, SIGKILL);
                return 0;
        }
        r = container_members(container, &members, error);
        if (r < 0)
                return r;
        for (size_t i = 0; i < members.n; i++)
                signal_member(container, members.pids[i], signal);
        return 0;
}

/* ---- what it uses ----------------------------------------------------------------------------------------------- */

int container_statistics(const Container *container, Statistic ret[STATISTICS_MAX], size_t *ret_n,
                         sd_bus_error *error) {
        int r;

        if (!container_runs(container))
                return container_not_running(container, error);
        if (!container->control)
                return no_control_group(container, "GetStatistics", error);
        r = statistics_read(cgroup_control_fd(container->control), ret, ret_n);
        return r == -ENODEV || r == -ENOENT ? container_not_running(container, error) : r;
}

/* ---- its limits ------------------------------------------------------------------------------------------------- */

/* An Update that systemd has not answered yet. */
typedef struct Update {
        Container *container; /* owned reference */
        Spec *limits;         /* owned */
        container_done_t done;
        void *userdata;
} Update;

static Update *update_free(Update *update) {
        (void) spec_free(update->limits);
        (void) container_unref(update->container);
        free(update);
        return NULL;
}
DEFINE_CLEANUP(Update *, update_free);

static void on_updated(const sd_bus_error *error, void *userdata) {
        _cleanup_(update_freep) Update *update = userdata;
        _cleanup_bus_error_ sd_bus_error failure = SD_BUS_ERROR_NULL;
        Container *container = update->container;

        if (error)
                (void) sd_bus_error_setf(&failure, BERTH_ERROR_NOT_SUPPORTED,
                                         "container %s: systemd refuses the limits: %s", container->name,
                                         error->message ?: error->name);
        else if (resources_merge(&container->spec->resources, &update->limits->resources) < 0)
                (void) sd_bus_error_set_errno(&failure, -ENOMEM);
        if (update->done)
                update->done(container, failure.name ? &failure : NULL, update->userdata);
        else if (failure.name)
                log_container(LOG_WARNING, container->name, container->unit, "%s", failure.message);
}

static int ask_systemd(Container *container, Spec *limits, container_done_t done, void *userdata) {
        _cleanup_(update_freep) Update *update = NULL;
        int r;

        update = calloc(1, sizeof(*update));
        if (!update) {
                (void) spec_free(limits);
                return -ENOMEM;
        }
        *update = (Update) { container_ref(container), limits, done, userdata };
        r = scope_update(container->manager->scopes, container->unit, &limits->resources, on_updated,
                         update);
        if (r >= 0)
                TAKE_PTR(update);
        return r;
}

static int write_limits(Container *container, const Resources *limits, sd_bus_error *error) {
        const char *key;
        int r;

        r = resources_write(limits, cgroup_control_fd(container->control), &key);
        if (r == -EINVAL || r == -ERANGE)
                (void) sd_bus_error_setf(error, BERTH_ERROR_INVALID_ARGS,
                                         "container %s: the kernel does not take this value of %s",
                                         container->name, key);
        else if (r == -ENOENT)
                (void) sd_bus_error_setf(error, BERTH_ERROR_NOT_SUPPORTED, "%s: there is no file for it",
                                         key);
        return r;
}

int container_update(Container *container, Spec *limits, Client *client, container_done_t done,
                     void *userdata, sd_bus_error *error) {
        _cleanup_spec_ Spec *owned = limits;
        int r;

        if (container->state == CONTAINER_STOPPING)
                return container_not_running(container, error);
        r = manager_check_resources(container->manager, &owned->resources, error);
        if (r < 0)
                return r;
        if (container_runs(container)) {
                if (container->manager->scopes)
                        return ask_systemd(container, TAKE_PTR(owned), done, userdata);
                /* Without a group there can be nothing but infinity in it. */
                if (container->control) {
                        r = write_limits(container, &owned->resources, error);
                        if (r < 0)
                                return r;
                }
        }
        r = resources_merge(&container->spec->resources, &owned->resources);
        if (r < 0)
                return r;
        container->late_limits = container->state == CONTAINER_STARTING;
        done(container, NULL, userdata);
        return 0;
}

void container_apply_late_limits(Container *container) {
        _cleanup_bus_error_ sd_bus_error error = SD_BUS_ERROR_NULL;
        _cleanup_spec_ Spec *limits = NULL;
        int r = 0;

        if (!container->late_limits)
                return;
        container->late_limits = false;
        limits = spec_new();
        if (!limits || resources_merge(&limits->resources, &container->spec->resources) < 0)
                r = -ENOMEM;
        else if (container->manager->scopes)
                r = ask_systemd(container, TAKE_PTR(limits), NULL, NULL);
        else if (container->control)
                r = write_limits(container, &limits->resources, &error);
        if (r < 0)
                log_container(LOG_WARNING, container->name, container->unit,
                              "Cannot set the limits that container %s was given while it started: %s",
                              container->name, error.message ?: strerror(-r));
}
