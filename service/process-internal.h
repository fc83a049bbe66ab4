/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What process.c and process-start.c share. */
#pragma once

#include "service/process.h"

/* CLOCK_REALTIME in microseconds. */
uint64_t process_now(void);

/* Remembers a call that waits. */
int process_expect(Process *process, ProcessPendingKind kind, Client *client, process_done_t done,
                   void *userdata);

/* Takes the pidfd of the running child and watches it and the terminal. */
int process_watch(Process *process, pid_t pid, int pidfd);

/* Kills and reaps what still runs. */
void process_kill(Process *process);

/* Closes the client's ends of pipes that nobody took. */
void process_close_streams(Process *process);

/* Lets go of what one run had: terminal, options, starter. */
void process_end_run(Process *process);
