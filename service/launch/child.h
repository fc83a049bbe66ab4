/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The launched process on its way from the clone to its program. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "service/launch/message.h"
#include "service/launch/users.h"

/* Everything the child knows. Descriptors are -EBADF when unset, and all CLOEXEC. */
typedef struct Child {
        int socket;
        LaunchPlan *plan;
        LaunchReport *report;
        LaunchBirth *birth;      /* of a process that goes between: the number of the child that it makes */
        int fds[_LAUNCH_FD_MAX]; /* by role */
        size_t n_numbered;
        struct {
                unsigned number;
                int fd;
        } numbered[LAUNCH_NUMBERED_MAX]; /* descriptors of the client's, by the number they shall have */
        uint32_t own_stdio;              /* bit n: the user is to own standard stream n */
        uint32_t gates;                  /* bit n: LaunchGate n has been opened */
        int root;                        /* the container's root, attached in this mount namespace */
        int tty;                         /* the slave of the terminal */
        int null;                        /* O_PATH: the null device, checked */
        int empty;                       /* an empty read-only directory, attached once it has been used */
        User *user;
} Child;

/* In the new process: takes the hello from the socket and becomes the program, or ends. clone_flags are
 * those that the process was really made with. */
_Noreturn void child_run(int socket, uint64_t clone_flags);

/* The same for a container that runs. This process, which is in none of its namespaces and is not seen in it,
 * joins all of them and becomes the user; then it clones the one that becomes the program, and ends. That one
 * is seen in the container from its birth, so whoever may trace it there finds nothing of the host's in it: no
 * directory, no descriptor, and no capability beyond the container's own (but CAP_SYS_ADMIN until a filter is
 * loaded without no_new_privs). user: the user namespace is joined too. */
_Noreturn void child_enter(int socket, bool user);
