/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The end of a launch: the program. */
#pragma once

/* Executes arguments[0], looked for in the environment's PATH when it has no slash. Nothing but execve(2)
 * is called. Returns negative errno: that of the search in PATH is EACCES when something of the name was
 * there. */
int exec_program(char *const *arguments, char *const *environment);
