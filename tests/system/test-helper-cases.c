/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The service's own programs beside its containers, in one process: each keeps its own status when all of them end in
 * the same moment. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "service/helper.h"
#include "service/manager.h"
#include "tests/system/direct.h"
#include "util/fd.h"

#define CONTAINERS 200U
#define HELPERS 40U

typedef struct Scene Scene;

typedef struct Actor {
        Scene *scene;
        unsigned number;
        int code, status;
        bool started, ended;
} Actor;

struct Scene {
        sd_event *event;
        Manager *manager;
        Client *client;
        Actor containers[CONTAINERS], helpers[HELPERS];
        unsigned n_started, n_ended;
};

static int status_of(unsigned number) {
        return (int) (number * 7 % 256);
}

static void on_started(Process *process, const sd_bus_error *error, void *userdata) {
        Actor *actor = userdata;

        if (error)
                fail_msg("container %u: %s", actor->number, error->message);
        actor->started = true;
        actor->scene->n_started++;
}

static void on_waited(Process *process, const sd_bus_error *error, void *userdata) {
        Actor *actor = userdata;

        assert_null(error);
        actor->code = process->exit_code;
        actor->status = process->exit_status;
        assert_false(actor->ended);
        actor->ended = true;
        actor->scene->n_ended++;
}

static void on_helper(Helper *helper, int code, int status, void *userdata) {
        Actor *actor = userdata;

        actor->code = code;
        actor->status = status;
        assert_false(actor->ended);
        actor->ended = true;
        actor->scene->n_ended++;
}

/* Runs the loop until the count is reached. */
static void run_until(Scene *scene, const unsigned *count, unsigned wanted) {
        uint64_t end = now_usec() + DIRECT_MS * 1000ULL;

        while (*count < wanted) {
                uint64_t now = now_usec();

                if (now >= end)
                        fail_msg("only %u of %u", *count, wanted);
                assert_true(sd_event_run(scene->event, end - now) >= 0);
        }
}

static Spec *new_spec(const char *root, unsigned number) {
        const char *const command[] = { "sh", "-c", text("read x; exit %d", status_of(number)), NULL };
        _cleanup_bus_error_ sd_bus_error error = SD_BUS_ERROR_NULL;
        Spec *spec;

        spec = spec_new();
        assert_non_null(spec);
        assert_true(spec_set_root_directory(spec, root, &error) >= 0);
        assert_true(spec_set_command(spec, (char *const *) command, &error) >= 0);
        assert_true(spec_validate(spec, &error) >= 0);
        return spec;
}

static void start_container(Scene *scene, const char *root, Actor *actor, int input) {
        _cleanup_options_ StartOptions options = START_OPTIONS_INIT;
        _cleanup_bus_error_ sd_bus_error error = SD_BUS_ERROR_NULL;
        const char *name = text("c%u", actor->number);

        options.stdio_given = true;
        options.stdio[0] = fd_dup(input);
        assert_true(options.stdio[0] >= 0);
        if (manager_run(scene->manager, name, new_spec(root, actor->number), &options, scene->client,
                        on_started, actor, NULL, &error) < 0)
                fail_msg("%s: %s", name, error.message);
        assert_true(container_wait(manager_get(scene->manager, name), scene->client, on_waited, actor,
                                   &error) >= 0);
}

static void start_helper(Scene *scene, const char *fifo, Actor *actor) {
        const char *const command[] = { "sh", "-c",
                                        text("read x <%s; exit %d", fifo, status_of(actor->number) ^ 1),
                                        NULL };
        Helper *helper;

        assert_int_equal(
                helper_start(scene->event, (char *const *) command, UINT64_MAX, on_helper, actor, &helper),
                0);
}

static void test_helpers_and_containers_keep_their_statuses(void **state) {
        const char *launch = getenv("BERTH_LAUNCH");
        char root[64], fifo[96];
        Scene *scene;
        sigset_t set;
        int pair[2], writer;

        assert_non_null(launch);
        (void) sigemptyset(&set);
        (void) sigaddset(&set, SIGCHLD);
        assert_int_equal(sigprocmask(SIG_BLOCK, &set, NULL), 0);
        busybox_root(root);
        (void) snprintf(fifo, sizeof(fifo), "%s/fifo", root);
        assert_int_equal(mkfifo(fifo, 0600), 0);
        writer = open(fifo, O_RDWR | O_CLOEXEC);
        assert_true(writer >= 0);
        assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
        scene = calloc(1, sizeof(*scene));
        assert_non_null(scene);
        assert_true(sd_event_new(&scene->event) >= 0);
        assert_int_equal(manager_new(scene->event, launch, &scene->manager), 0);
        assert_int_equal(client_new(NULL, true, &scene->client), 0);
        scene->client->uid = 0;

        for (unsigned i = 0; i < CONTAINERS; i++) {
                scene->containers[i] = (Actor) { .scene = scene, .number = i };
                start_container(scene, root, &scene->containers[i], pair[0]);
        }
        (void) close(pair[0]);
        run_until(scene, &scene->n_started, CONTAINERS);
        for (unsigned i = 0; i < HELPERS; i++) {
                scene->helpers[i] = (Actor) { .scene = scene, .number = i };
                start_helper(scene, fifo, &scene->helpers[i]);
        }
        assert_int_equal(scene->n_ended, 0);
        /* Both kinds read the end of their input now, and nothing is handled before that. */
        (void) close(pair[1]);
        for (unsigned i = 0; i < HELPERS; i++)
                assert_int_equal(write(writer, "\n", 1), 1);
        run_until(scene, &scene->n_ended, CONTAINERS + HELPERS);

        for (unsigned i = 0; i < CONTAINERS; i++) {
                assert_int_equal(scene->containers[i].code, CLD_EXITED);
                assert_int_equal(scene->containers[i].status, status_of(i));
        }
        for (unsigned i = 0; i < HELPERS; i++) {
                assert_int_equal(scene->helpers[i].code, CLD_EXITED);
                assert_int_equal(scene->helpers[i].status, status_of(i) ^ 1);
        }
        manager_stop_all(scene->manager, true);
        assert_true(manager_empty(scene->manager));
        (void) manager_free(scene->manager);
        (void) client_unref(scene->client);
        (void) sd_event_unref(scene->event);
        free(scene);
        (void) close(writer);
        remove_tree(root);
        /* Nobody's child was left unread, and berth-launch is gone too. */
        assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
        assert_int_equal(errno, ECHILD);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_helpers_and_containers_keep_their_statuses),
        };

        return cmocka_run_group_tests(tests, direct_group_setup, NULL);
}
