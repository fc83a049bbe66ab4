/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A berthd in direct mode and its clients, for the tests of the system tier: one service per test, driven over
 * private connections as berthctl would. Ending it is a test of its own: it must exit with 0 and leave no process,
 * cgroup, mount or file. Nothing sleeps, everything has a deadline, and a test fails where it would wait for ever. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <systemd/sd-bus.h>

#include "tests/system/launch-fixture.h"
#include "tests/system/terminal.h"
#include "util/cleanup.h"

#define DIRECT_MS 20000U
#define DIRECT_CLIENTS_MAX 64U
#define DIRECT_USER 4242U /* nobody's */

#define _cleanup_bus_ _cleanup_(sd_bus_close_unrefp)

/* What goes on in berthd's name: its connection, signals and replies in the order in which they came. */
typedef struct Direct {
        char root[64];      /* a busybox root; the payload is /bin/payload */
        char directory[64]; /* of the socket, or of an ordinary user's programs; else empty */
        char socket[96];
        char cgroup[4096]; /* berthd's own, or empty */
        pid_t pid;
        int pidfd;
        size_t n_mounts;
        sd_bus *bus; /* the first client */
        sd_bus *clients[DIRECT_CLIENTS_MAX];
        size_t n_clients;
} Direct;

/* Of cmocka_unit_test_setup_teardown(): a service with one connection on a socketpair, which it lives for; one of an
 * ordinary user; one that listens. */
int direct_setup(void **state);
int direct_setup_user(void **state);
int direct_setup_listen(void **state);
int direct_teardown(void **state);

#define direct_test(f) cmocka_unit_test_setup_teardown(f, direct_setup, direct_teardown)
#define direct_user_test(f) cmocka_unit_test_setup_teardown(f, direct_setup_user, direct_teardown)
#define direct_listen_test(f) cmocka_unit_test_setup_teardown(f, direct_setup_listen, direct_teardown)

/* Of a test group: a mount namespace of its own, orphans come to this process. Needs root. */
int direct_group_setup(void **state);

/* One more client of a listening service, closed at the end. Or one that nobody closes for the caller. */
sd_bus *direct_connect(Direct *d);
sd_bus *direct_connect_own(const Direct *d);

/* As nobody but a bus' connection speaks: a socket, after the handshake, with descriptor passing agreed upon. */
int direct_connect_raw(const Direct *d);

/* /proc/PID of berthd: open descriptors; children, zombies too; processor time in clock ticks. */
size_t direct_count_fds(const Direct *d);
size_t direct_count_children(const Direct *d);
uint64_t direct_cpu_ticks(const Direct *d);

/* Cgroups below berthd's own; mounts in our mount namespace, which is berthd's. */
size_t direct_count_cgroups(const Direct *d);
size_t direct_count_mounts(void);

/* Waits until berthd has no more descriptors than this. */
void direct_expect_fds(const Direct *d, size_t n);

/* Waits until berthd has no other children and cgroups than an idle one has (berth-launch, its own group). */
void direct_expect_idle(const Direct *d);

/* CLOCK_MONOTONIC. */
uint64_t now_usec(void);

/* Handles what comes on the connection until *done is true. False when the deadline passes. */
bool bus_until(sd_bus *bus, const bool *done, unsigned deadline_ms);

/* Handles what comes until this time; it is how a test lets time pass. */
void bus_until_usec(sd_bus *bus, uint64_t usec);

/* Reads a descriptor to its end (end of file, or EIO of a master) into a malloced, NUL-terminated text. */
char *read_to_end(int fd, unsigned deadline_ms);

/* Runs a program with an empty standard input to its end; its standard output and error, malloced. Returns the exit
 * status, 128+n for a signal. */
int run_command(const char *const *argv, char **ret_output);

/* Where meson put the programs. */
const char *path_of_berthctl(void);
