/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/launch/report.h"

#include "service/launch/sys.h"
#include "service/launch/text.h"

void report_stage(LaunchReport *report, LaunchStage stage) {
        report->detail[0] = 0;
        __atomic_store_n(&report->stage, (uint32_t) stage, __ATOMIC_RELEASE);
}

int report_detail(LaunchReport *report, int error, const char *detail) {
        (void) text_append(report->detail, report->detail + sizeof(report->detail), detail);
        return error;
}

void report_exit(LaunchReport *report, int error) {
        __atomic_store_n(&report->error, -error, __ATOMIC_RELEASE);
        sys_exit(1);
}
