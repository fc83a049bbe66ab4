/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/exit-status.h"

#include <stddef.h>
#include <string.h>
#include <sys/wait.h>

#include "client/globals.h"

int exit_status(int code, int status, const char *result) {
        if (strcmp(result, "lost") == 0)
                return EXIT_BERTH;
        return code == CLD_EXITED ? status & 0xff : EXIT_SIGNAL + status;
}

const char *exit_status_remark(const char *result) {
        if (strcmp(result, "lost") == 0)
                return "the container ended, but its exit status was lost";
        if (strcmp(result, "oom-kill") == 0)
                return "the container ran out of memory and was killed";
        if (strcmp(result, "timeout") == 0)
                return "the container didn't end in time and was killed";
        return NULL;
}
