/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/manager.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/capability.h>
#include <unistd.h>

#include "interfaces/names.h"
#include "util/log.h"
#include "util/strv.h"

#define GENERATED_TRIES 1000

/* What the service has not got it cannot hand on. */
static uint64_t lacking_capabilities(void) {
        cap_t own = cap_get_proc();
        uint64_t lacking = 0;

        for (int i = 0; own && i < cap_max_bits(); i++) {
                cap_flag_value_t permitted = CAP_SET;

                if (cap_get_flag(own, i, CAP_PERMITTED, &permitted) >= 0 && permitted == CAP_CLEAR)
                        lacking |= UINT64_C(1) << i;
        }
        (void) cap_free(own);
        return lacking;
}

static unsigned count_throttles(void) {
        long n = sysconf(_SC_NPROCESSORS_CONF);

        return n > 0 && access("/sys/devices/system/cpu/cpu0/thermal_throttle", F_OK) == 0 ? (unsigned) n
                                                                                           : 0;
}

int manager_new(sd_event *event, const char *launch_path, Manager **ret) {
        _cleanup_(manager_freep) Manager *manager = NULL;
        int r;

        manager = calloc(1, sizeof(*manager));
        if (!manager)
                return -ENOMEM;
        TAILQ_INIT(&manager->containers);
        TAILQ_INIT(&manager->observers);
        manager->event = sd_event_ref(event);
        manager->capabilities_lacking = lacking_capabilities();
        manager->n_throttle = count_throttles();
        manager->filters = seccomp_cache_new();
        if (!manager->filters)
                return -ENOMEM;
        r = launcher_new(event, launch_path, &manager->launcher);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(manager);
        return 0;
}

Manager *manager_free(Manager *manager) {
        if (!manager)
                return NULL;
        assert(TAILQ_EMPTY(&manager->containers));
        (void) launcher_free(manager->launcher);
        (void) seccomp_cache_free(manager->filters);
        (void) scope_manager_free(manager->scopes);
        (void) cgroup_tree_free(manager->cgroups);
        (void) state_free(manager->state);
        (void) sd_event_unref(manager->event);
        free(manager);
        return NULL;
}

/* ---- by name -------------------------------------------------------------------------------------------------- */

/* The tree holds containers; a search needs only something with a name, at the same place. */
static int compare_names(const void *a, const void *b) {
        return strcmp(((const Container *) a)->name, ((const Container *) b)->name);
}

Container *manager_get(const Manager *manager, const char *name) {
        Container key = { .name = (char *) name };
        Container *const *found;

        found = tfind(&key, (void *const *) &manager->by_name, compare_names);
        return found ? *found : NULL;
}

Container *manager_get_by_pid(const Manager *manager, pid_t pid) {
        Container *c;

        TAILQ_FOREACH(c, &manager->containers, link)
        if (c->linked && container_has_member(c, pid))
                return c;
        return NULL;
}

static int generate_name(Manager *manager, char **ret) {
        for (unsigned i = 0; i < GENERATED_TRIES; i++) {
                char *name;

                if (asprintf(&name, "c%llu", (unsigned long long) ++manager->next_generated) < 0)
                        return -ENOMEM;
                if (!manager_get(manager, name)) {
                        *ret = name;
                        return 0;
                }
                free(name);
        }
        return -EEXIST;
}

/* ---- creating ------------------------------------------------------------------------------------------------- */

static int check_limits(const Manager *manager, uid_t owner, sd_bus_error *error) {
        unsigned n = 0;
        Container *c;

        if (owner != 0)
                TAILQ_FOREACH(c, &manager->containers, link)
        n += c->owner == owner;
        if (manager->n_containers < MANAGER_CONTAINERS_MAX && n < MANAGER_CONTAINERS_MAX / 4)
                return 0;
        (void) sd_bus_error_setf(error, BERTH_ERROR_LIMIT_REACHED,
                                 "there are %u containers already, remove some",
                                 owner == 0 ? manager->n_containers : n);
        return -EDQUOT;
}

static bool has_controller(const Manager *manager, const char *controller, bool unified) {
        if (manager->scopes)
                return cgroup_host_has(controller, unified);
        return manager->cgroups && cgroup_tree_has(manager->cgroups, controller);
}

static int not_supported(const char *key, const char *why, sd_bus_error *error) {
        (void) sd_bus_error_setf(error, BERTH_ERROR_NOT_SUPPORTED, "%s: %s", key, why);
        return -EOPNOTSUPP;
}

static bool has_for_resources(const void *userdata, const char *controller, bool unified) {
        return has_controller(userdata, controller, unified);
}

int manager_check_resources(const Manager *manager, const Resources *resources, sd_bus_error *error) {
        return resources_check(resources, has_for_resources, manager, error);
}

/* What the spec may ask for and this host cannot do. */
static int check_host(const Manager *manager, const Spec *spec, sd_bus_error *error) {
        uint64_t missing;
        int r;

        r = manager_check_resources(manager, &spec->resources, error);
        if (r < 0)
                return r;
        if (spec->slice && !manager->scopes)
                return not_supported("Slice", "there are no slices without systemd", error);
        missing = spec->capabilities_named & manager->capabilities_lacking;
        if (missing && !manager->own_user_namespace) {
                char *name = cap_to_name(__builtin_ctzll(missing));

                (void) sd_bus_error_setf(error, BERTH_ERROR_NOT_SUPPORTED,
                                         "Capabilities: %s is not to be had on this host", name ?: "one");
                (void) cap_free(name);
                return -EOPNOTSUPP;
        }
        if (spec->user_namespace_host && manager->own_user_namespace)
                return not_supported("UserNamespace",
                                     "an ordinary user's containers always have one of their own", error);
        return 0;
}

static int link_container(Manager *manager, Container *container) {
        if (!tsearch(container, &manager->by_name, compare_names))
                return -ENOMEM;
        container->linked = true;
        (void) container_ref(container); /* not in the macro, which would do it more than once */
        TAILQ_INSERT_TAIL(&manager->containers, container, link);
        manager->n_containers++;
        return 0;
}

int manager_create(Manager *manager, const char *name, Spec *spec, const Client *client, Container **ret,
                   sd_bus_error *error) {
        _cleanup_(container_unrefp) Container *container = NULL;
        _cleanup_spec_ Spec *owned = spec;
        _cleanup_free_ char *generated = NULL;
        ManagerObserver *o;
        int r;

        if (manager->stopping) {
                (void) sd_bus_error_set(error, BERTH_ERROR_CANCELLED, "the service is ending, call again");
                return -ECANCELED;
        }
        if (!*name) {
                r = generate_name(manager, &generated);
                if (r < 0)
                        return r;
                name = generated;
        }
        r = spec_validate_name(name, error);
        if (r < 0)
                return r;
        if (manager_get(manager, name)) {
                (void) sd_bus_error_setf(error, BERTH_ERROR_NAME_IN_USE, "container %s exists already",
                                         name);
                return -EEXIST;
        }
        r = check_limits(manager, client->uid, error);
        if (r < 0)
                return r;
        r = check_host(manager, owned, error);
        if (r < 0)
                return r;
        r = container_new(manager, name, owned, client->uid, &container);
        if (r < 0)
                return r;
        TAKE_PTR(owned);
        r = link_container(manager, container);
        if (r < 0)
                return r;
        TAILQ_FOREACH(o, &manager->observers, link)
        if (o->added)
                o->added(container, o->userdata);
        *ret = container;
        return 0;
}

int manager_run(Manager *manager, const char *name, Spec *spec, StartOptions *options, Client *client,
                process_done_t done, void *userdata, Container **ret, sd_bus_error *error) {
        _cleanup_(container_unrefp) Container *reference = NULL;
        _cleanup_options_ StartOptions given = options_take(options);
        _cleanup_spec_ Spec *owned = spec;
        Container *container;
        int r;

        /* Before the object exists: nobody shall see one that could not even begin. */
        r = options_validate(&given, owned, error);
        if (r < 0)
                return r;
        r = manager_create(manager, name, TAKE_PTR(owned), client, &container, error);
        if (r < 0)
                return r;
        reference = container_ref(container);
        container->remove_on_failure = true;
        r = container_start(container, &given, client, done, userdata, error);
        if (r < 0 && container->state == CONTAINER_CREATED) {
                manager_unlink(manager, container);
                manager_removed(manager, container);
        }
        if (r >= 0 && ret)
                *ret = container;
        return r;
}

static void tell_if_empty(Manager *manager) {
        if (manager_empty(manager) && manager->emptied)
                manager->emptied(manager->emptied_userdata);
}

int manager_get_filter(Manager *manager, const Spec *spec, SeccompFilter **ret, sd_bus_error *error) {
        *ret = NULL;
        if (spec->seccomp != SPEC_SECCOMP_DEFAULT)
                return 0;
        return seccomp_cache_get_default(manager->filters, spec->capabilities, ret, error);
}

PlanContext manager_plan_context(const Manager *manager, TerminalSize size, const SeccompFilter *filter) {
        return (PlanContext) {
                .user_namespace = manager->own_user_namespace,
                .one_id = manager->own_user_namespace && user_map_one_id(&manager->user_map),
                .send_devpts = manager->own_user_namespace,
                .cgroup_gate = manager->scopes,
                .die_with_parent = manager->die_with_parent,
                .capabilities_lacking = manager->own_user_namespace ? 0 : manager->capabilities_lacking,
                .n_throttle = manager->n_throttle,
                .rows = size.rows,
                .columns = size.columns,
                .x_pixels = size.x_pixels,
                .y_pixels = size.y_pixels,
                .filter = filter ? filter->program : NULL,
                .n_filter = filter ? filter->n : 0,
                .filter_flags = filter ? filter->flags : 0,
        };
}

void manager_unlink(Manager *manager, Container *container) {
        if (!container->linked)
                return;
        container->linked = false;
        (void) tdelete(container, &manager->by_name, compare_names);
}

void manager_removed(Manager *manager, Container *container) {
        ManagerObserver *o;

        assert(!container->linked);
        exec_remove_all(container);
        TAILQ_FOREACH(o, &manager->observers, link)
        if (o->removed)
                o->removed(container, o->userdata);
        TAILQ_REMOVE(&manager->containers, container, link);
        manager->n_containers--;
        (void) container_unref(container);
        tell_if_empty(manager);
}

/* ---- all of them ---------------------------------------------------------------------------------------------- */

void manager_client_gone(Manager *manager, Client *client) {
        Container *c, *next;

        client->gone = true;
        /* A container can leave the list in this, but never takes another one with it. */
        for (c = TAILQ_FIRST(&manager->containers); c; c = next) {
                next = TAILQ_NEXT(c, link);
                container_client_gone(c, client);
        }
}

void manager_stop_all(Manager *manager, bool at_once) {
        Container *c, *next;

        manager->stopping = true;
        for (c = TAILQ_FIRST(&manager->containers); c; c = next) {
                next = TAILQ_NEXT(c, link);
                if (c->state == CONTAINER_CREATED || c->state == CONTAINER_EXITED)
                        (void) container_remove(c, true, NULL, NULL, NULL, NULL);
                else {
                        /* Nobody can ask for its status any more, so the object goes with the run. */
                        c->remove_on_failure = c->remove_on_exit = true;
                        (void) container_stop(c, at_once ? 0 : SPEC_INFINITY, NULL, NULL, NULL, NULL);
                }
        }
        tell_if_empty(manager);
}

bool manager_empty(const Manager *manager) {
        return TAILQ_EMPTY(&manager->containers) && manager->left_overs == 0;
}

void manager_stop_unit(const char *unit, void *userdata) {
        Manager *manager = userdata;
        Container *c;

        TAILQ_FOREACH(c, &manager->containers, link)
        if (strcmp(c->unit, unit) == 0) {
                log_container(LOG_INFO, c->name, c->unit, "systemd asks for the stop of container %s",
                              c->name);
                (void) container_stop(c, SPEC_INFINITY, NULL, NULL, NULL, NULL);
                return;
        }
}

/* ---- what a crash left ---------------------------------------------------------------------------------------- */

typedef struct LeftOver {
        Manager *manager;
        char *name;
} LeftOver;

static void left_over_gone(void *userdata) {
        LeftOver *left_over = userdata;
        Manager *manager = left_over->manager;

        state_remove(manager->state, left_over->name);
        manager->left_overs--;
        free(left_over->name);
        free(left_over);
        tell_if_empty(manager);
}

static void end_left_over(const char *name, const char *unit, void *userdata) {
        Manager *manager = userdata;
        LeftOver *left_over;
        int r;

        log_container(LOG_WARNING, name, unit,
                      "Container %s was left by a service that ended unexpectedly; it is ended now, its "
                      "status is lost",
                      name);
        left_over = calloc(1, sizeof(*left_over));
        if (!left_over)
                return;
        left_over->manager = manager;
        left_over->name = strdup(name);
        r = left_over->name ? scope_end_left_over(manager->scopes, unit, left_over_gone, left_over)
                            : -ENOMEM;
        if (r < 0) {
                log_container(LOG_ERR, name, unit, "Cannot end left-over %s: %s", unit, strerror(-r));
                free(left_over->name);
                free(left_over);
                return;
        }
        manager->left_overs++;
}

int manager_end_left_overs(Manager *manager) {
        if (!manager->state || !manager->scopes)
                return 0;
        return state_foreach(manager->state, end_left_over, manager);
}

/* ---- observers ------------------------------------------------------------------------------------------------ */

void manager_observe(Manager *manager, ManagerObserver *observer) {
        TAILQ_INSERT_TAIL(&manager->observers, observer, link);
}

void manager_unobserve(Manager *manager, ManagerObserver *observer) {
        TAILQ_REMOVE(&manager->observers, observer, link);
}

void manager_notify_changed(Manager *manager, Container *container, const char *const *properties) {
        ManagerObserver *o;

        TAILQ_FOREACH(o, &manager->observers, link)
        if (o->changed)
                o->changed(container, properties, o->userdata);
}

void manager_notify_started(Manager *manager, Container *container) {
        ManagerObserver *o;

        TAILQ_FOREACH(o, &manager->observers, link)
        if (o->started)
                o->started(container, o->userdata);
}

void manager_notify_exited(Manager *manager, Container *container) {
        ManagerObserver *o;

        TAILQ_FOREACH(o, &manager->observers, link)
        if (o->exited)
                o->exited(container, o->userdata);
}

void manager_notify_exec_added(Manager *manager, Exec *exec) {
        ManagerObserver *o;

        TAILQ_FOREACH(o, &manager->observers, link)
        if (o->exec_added)
                o->exec_added(exec, o->userdata);
}

void manager_notify_exec_exited(Manager *manager, Exec *exec) {
        ManagerObserver *o;

        TAILQ_FOREACH(o, &manager->observers, link)
        if (o->exec_exited)
                o->exec_exited(exec, o->userdata);
}

void manager_notify_exec_removed(Manager *manager, const Exec *exec) {
        ManagerObserver *o;

        TAILQ_FOREACH(o, &manager->observers, link)
        if (o->exec_removed)
                o->exec_removed(exec, o->userdata);
}

int manager_features(const Manager *manager, char ***ret) {
        const struct {
                const char *name;
                bool has;
        } features[] = {
                { "terminal", true },
                { "seccomp", true },
                { "ephemeral", true },
                { "user-namespace", manager->own_user_namespace },
                { "scope", manager->scopes },
                { "cgroup", manager->scopes || manager->cgroups },
                { "memory", has_controller(manager, "memory", false) },
                { "tasks", has_controller(manager, "pids", false) },
                { "cpu", has_controller(manager, "cpu", false) },
                { "io", has_controller(manager, "io", true) },
                { "cpuset", has_controller(manager, "cpuset", true) },
        };
        _cleanup_strv_ char **list = NULL;
        int r;

        for (size_t i = 0; i < ELEMENTSOF(features); i++) {
                if (!features[i].has)
                        continue;
                r = strv_append(&list, features[i].name);
                if (r < 0)
                        return r;
        }
        *ret = TAKE_PTR(list);
        return 0;
}
