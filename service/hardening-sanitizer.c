/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/hardening.h"

int hardening_forbid_tracing(void) {
        return 0;
}
