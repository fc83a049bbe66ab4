/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/hardening.h"

#include <errno.h>
#include <sys/prctl.h>
#include <unistd.h>

int hardening_forbid_tracing(void) {
        /* An ordinary user's processes must stay dumpable, or their own /proc files were root's. */
        if (geteuid() != 0)
                return 0;
        return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ? -errno : 0;
}
