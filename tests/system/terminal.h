/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A person at a terminal, for tests: starts a program on a real pty, or takes the master of one that exists,
 * types, waits with a deadline for what should come, and looks at the screen as libvterm draws it. Nothing
 * sleeps. Whatever can't work in a healthy test (no pty, no memory) aborts. */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "util/cleanup.h"

typedef struct TerminalTest TerminalTest;

/* Starts argv (argv[0] is looked for in PATH) as session leader on a new terminal of this size. */
TerminalTest *terminal_test_spawn(const char *const *argv, unsigned rows, unsigned columns);

/* A terminal whose master came from elsewhere; it is taken over. The size is the screen's only. */
TerminalTest *terminal_test_attach(int master, unsigned rows, unsigned columns);

/* Ends the program if it runs, closes the master. Accepts NULL, returns NULL. */
TerminalTest *terminal_test_free(TerminalTest *t);
DEFINE_CLEANUP(TerminalTest *, terminal_test_free);
#define _cleanup_terminal_test_ _cleanup_(terminal_test_freep)

/* The program's, for display and kill(2): it is our child and not waited for before terminal_test_wait(). */
pid_t terminal_test_pid(const TerminalTest *t);

/* Still the helper's. */
int terminal_test_master(const TerminalTest *t);

/* Types. Reads meanwhile, so that neither side waits for the other for ever. */
void terminal_test_send(TerminalTest *t, const void *bytes, size_t n);
void terminal_test_type(TerminalTest *t, const char *text);

/* A new size, of the terminal and of the screen. */
void terminal_test_resize(TerminalTest *t, unsigned rows, unsigned columns);

/* Reads until text has come after what the last call found. False, with what came instead on standard error,
 * when the deadline passes or the output ends. */
bool terminal_test_expect(TerminalTest *t, const char *text, unsigned deadline_ms);

/* Reads to the end of the output (EIO). False when the deadline passes first. */
bool terminal_test_expect_end(TerminalTest *t, unsigned deadline_ms);

/* Reads until a line of the screen, from 0, is text, spaces at its end not counted. */
bool terminal_test_expect_line(TerminalTest *t, unsigned row, const char *text, unsigned deadline_ms);

/* All output so far. Borrowed, until the next call; *ret_size may be NULL. NUL-terminated. */
const char *terminal_test_output(TerminalTest *t, size_t *ret_size);

/* A line of the screen as it is now in UTF-8, without the spaces at its end. Borrowed, until the next
 * call. */
const char *terminal_test_line(TerminalTest *t, unsigned row);

/* Reads on until the program has ended, and then to the end of its output. Returns the exit status, 128+n
 * for signal n, or -1 when the deadline passes. */
int terminal_test_wait(TerminalTest *t, unsigned deadline_ms);
