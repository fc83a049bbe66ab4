/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A bus of the test's own ($BERTH_TEST_BUS: dbus-daemon or dbus-broker), systemd played on it, berthd serving on it, and
 * a client: all in a mount namespace whose /run is empty, driven by one event loop. Nothing waits but by that loop. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

#include "tests/bus/fake-systemd.h"

#define FIXTURE_DEADLINE_USEC (20U * 1000U * 1000U)
#define RECORDS "/run/berth/containers"

/* A program that the test runs, with what it wrote on standard output and error. */
typedef struct Program {
        pid_t pid; /* 0: none */
        sd_event_source *child, *io;
        int fd;
        bool ended;
        siginfo_t status; /* once it has ended */
        char *text;
} Program;

typedef struct Fixture {
        sd_event *event;
        char directory[64], root[64], *address;
        Program bus, service;
        int journal; /* dbus-broker-launch wants to log there */
        FakeSystemd *systemd;
        sd_bus *client;
        char *signals; /* "Member last-part-of-the-path arguments\n" of each signal of org.berth1 */
        int notify_socket, barrier;
        bool hold_barrier; /* a BARRIER=1 is kept in `barrier` until the test closes it */
        char *notified;    /* what sd_notify() said, each line ended */
        unsigned n_replies;
} Fixture;

/* Runs the loop until the condition holds. */
#define fixture_until(f, condition)                                                 \
        do {                                                                        \
                uint64_t _deadline = fixture_deadline(f);                           \
                while (!(condition))                                                \
                        fixture_turn(f, _deadline, #condition, __FILE__, __LINE__); \
        } while (0)

uint64_t fixture_deadline(Fixture *f);
void fixture_turn(Fixture *f, uint64_t deadline, const char *condition, const char *file, int line);

/* main() of every program here: needs root and a private mount namespace; runs the tests. */
int fixture_main(int (*run)(void));

/* For cmocka: with berthd serving, or (bare) with everything else. The second ends berthd if it runs, and holds it to
 * exit status 0, to leaving no process, no record and no mount. */
int fixture_setup(void **state);
int fixture_setup_bare(void **state);
int fixture_teardown(void **state);

/* berthd: starts with one argument or NULL, and serves when this returns; without waiting; ends by SIGTERM. */
void service_start(Fixture *f, const char *argument);
void service_launch(Fixture *f, const char *argument);
void service_stop(Fixture *f);

/* berthd has said that it serves. */
bool service_is_named(const Fixture *f);

/* It has written this to standard error. */
bool service_said(const Fixture *f, const char *part);

/* Any program, found in PATH; the list ends with NULL. */
void program_start(Fixture *f, Program *p, const char *const *argv);
void program_start_listening(Fixture *f, Program *p, int listen_fd,
                             const char *const *argv); /* LISTEN_FDS=1 */
void program_done(Program *p);

/* Runs one to its end; returns what it wrote (the caller's) and its exit status. */
char *program_run(Fixture *f, int *ret_status, const char *const *argv);

/* Another connection to the bus; attached to the loop. */
sd_bus *client_connect(Fixture *f);
sd_bus *client_close(sd_bus *bus);

/* In a process of its own, as this user: f's connection to the bus, and its value (0 to 100) in the end. */
int client_as_user(Fixture *f, uid_t uid, int (*do_it)(sd_bus *bus, void *userdata), void *userdata);

/* A call that runs. */
typedef struct Call {
        Fixture *f;
        sd_bus_slot *slot;
        sd_bus_message *reply; /* NULL: not answered yet */
        unsigned number;       /* of the reply among all replies */
} Call;

/* A message to send, to the manager (container NULL) or to a container by its name. */
sd_bus_message *call_new(sd_bus *bus, const char *container, const char *member);
Call *call_send(Fixture *f, sd_bus_message *m); /* takes m */
Call *call_begin(Fixture *f, sd_bus *bus, const char *container, const char *member, const char *types, ...);
Call *call_free(Call *call);

/* Waits for the reply. The name of the error, or NULL; the message is call->reply's. */
const char *call_wait(Call *call);
const char *call_error_message(Call *call);

/* Waits for a success, frees. */
void call_succeed(Call *call);

/* Waits for this error with a message that has this in it, frees. */
void call_fail(Call *call, const char *name, const char *text);

/* Spec and options in a form that can be written down; what is 0 or NULL is not given. */
typedef struct TestSpec {
        const char *name, *script; /* run by sh -c */
        const char *program;       /* instead of the script: without arguments */
        bool terminal, auto_remove;
        int output; /* a descriptor for StandardOutput */
        uint64_t timeout_start_usec, timeout_stop_usec;
        int stop_signal;
        const char *on_disconnect, *slice;
} TestSpec;

Call *call_run(Fixture *f, sd_bus *bus, const TestSpec *spec);    /* RunContainer */
Call *call_create(Fixture *f, sd_bus *bus, const TestSpec *spec); /* CreateContainer */
Call *call_start(Fixture *f, sd_bus *bus, const TestSpec *spec);  /* Start of the container of that name */

/* A property of a container as text; the caller's. */
char *container_property(Fixture *f, const char *container, const char *property);

/* Whether the container is known. */
bool container_exists(Fixture *f, const char *container);

/* Waits for the end of a run. */
void container_wait(Fixture *f, const char *container, int code, int status, const char *result);

/* A script that does this at SIGTERM, and waits until it would: a PID 1 without a handler hears nothing. */
#define AT_TERM(what) "trap '" what "' TERM; >/data/ready; sleep 1000 & wait"
void container_ready(Fixture *f);

/* Whether a descriptor has something to read, or its end, right now. */
bool readable(int fd);

/* A pipe; CLOEXEC. */
void make_pipe(int *ret_read, int *ret_write);

/* The names of the records in /run/berth/containers, separated by spaces; the caller's. */
char *records(void);

void text_append(char **text, const char *format, ...) __attribute__((format(printf, 2, 3)));
