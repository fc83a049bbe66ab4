/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* berthd's side of the launcher, played by a test: starts berth-launch, builds plans, asks for children,
 * collects what they write, what they report and how they end. */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "service/launch/message.h"

#define FIXTURE_LIST_MAX 16
#define FIXTURE_DEADLINE_MSEC 20000

typedef struct Launcher {
        int control;
        pid_t pid;
} Launcher;

typedef struct TestStep {
        LaunchStepKind kind;
        uint32_t flags;
        const char *target, *source, *type, *data;
        uint64_t attr_set, attr_clear, attr_set_recursive, propagation;
        uint32_t major, minor, mode;
} TestStep;

/* A plan in a form that can be written down in a test. */
typedef struct TestPlan {
        uint64_t flags, clone_flags; /* clone_flags 0: mount, PID, UTS, IPC and network namespaces */
        const char *root, *hostname, *working_directory, *user;
        const char *arguments[FIXTURE_LIST_MAX];
        const char *environment[FIXTURE_LIST_MAX];
        const char *groups[FIXTURE_LIST_MAX];
        uint32_t uid, gid, has_gid;
        const TestStep *steps;
        size_t n_steps;
        const LaunchLimit *limits;
        size_t n_limits;
        const void *filter;
        size_t n_filter;
        uint64_t capabilities; /* all sets but ambient; 0: the ones that every root has here */
        int32_t oom_score_adjust;
        uint32_t rows, columns;
        int cgroup; /* not 0: the directory of a cgroup to clone into */
        int enter;  /* not 0: the pidfd of the init of a container to enter, with LAUNCH_PLAN_ENTER */
} TestPlan;

typedef struct TestRun {
        int socket, pidfd, output, master;
        pid_t pid;
        const volatile LaunchReport *shared;
        LaunchReport report; /* a copy, once it has ended */
        siginfo_t status;
        char text[65536]; /* standard output and error */
        size_t n;
} TestRun;

/* Starts the program at $BERTH_LAUNCH. */
void launcher_start(Launcher *launcher);

/* Closes the control socket and returns the exit status. */
int launcher_stop(Launcher *launcher);

/* A sealed plan. */
int plan_memory(const TestPlan *plan);

/* Asks for a child; fds of roles STDIN to TTY may be added to the hello. Returns the positive errno of
 * the reply. */
int run_begin(Launcher *launcher, const TestPlan *plan, const uint32_t *roles, const int *fds, size_t n_fds,
              TestRun *run);
void run_open_gate(TestRun *run, LaunchGate gate);

/* Whether the child's socket has something to read, or has ended, within this time. */
bool run_readable(TestRun *run, int msec);

/* Collects everything until the end. */
void run_end(TestRun *run);

/* Both, for a child without terminal and gates. */
void run_plan(Launcher *launcher, const TestPlan *plan, TestRun *run);

/* A root with busybox in it, below /tmp; removed again with everything in it. */
void busybox_root(char path[static 64]);
void remove_tree(const char *path);

/* printf into a buffer that the next 15 calls leave alone. */
const char *text(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Runs f in a process of its own as this user and group; its assertions count. */
void in_process(uid_t uid, void (*f)(void *), void *userdata);
