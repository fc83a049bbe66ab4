/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/launch/limits.h"

#include "service/launch/path.h"
#include "service/launch/plan.h"
#include "service/launch/report.h"
#include "service/launch/sys.h"
#include "service/launch/text.h"

static const char *limit_name(uint32_t resource) {
        /* In the order of the numbers, which are the same on all architectures that berth runs on. */
        static const char names[][18] = {
                "RLIMIT_CPU",      "RLIMIT_FSIZE", "RLIMIT_DATA",   "RLIMIT_STACK",
                "RLIMIT_CORE",     "RLIMIT_RSS",   "RLIMIT_NPROC",  "RLIMIT_NOFILE",
                "RLIMIT_MEMLOCK",  "RLIMIT_AS",    "RLIMIT_LOCKS",  "RLIMIT_SIGPENDING",
                "RLIMIT_MSGQUEUE", "RLIMIT_NICE",  "RLIMIT_RTPRIO", "RLIMIT_RTTIME",
        };

        return resource < sizeof(names) / sizeof(names[0]) ? names[resource] : "resource limit";
}

int limits_set_oom_score(Child *child) {
        _cleanup_close_ int self = -EBADF, fd = -EBADF;
        int32_t value = child->plan->oom_score_adjust;
        char text[16], *end = text + sizeof(text), *to;
        long n;

        if (!(child->plan->flags & LAUNCH_PLAN_OOM_SCORE_ADJUST))
                return 0;
        to = text_append(text, end, value < 0 ? "-" : "");
        to = text_append_number(to, end, value < 0 ? -(int64_t) value : value);
        self = path_open_self();
        if (self < 0)
                return report_detail(child->report, self, "/proc/self");
        fd = sys_openat(self, "oom_score_adj", O_WRONLY | O_CLOEXEC, 0);
        n = fd < 0 ? fd : sys_write(fd, text, (size_t) (to - text));
        return n < 0 ? report_detail(child->report, (int) n, "oom_score_adj") : 0;
}

int limits_set(Child *child) {
        const LaunchLimit *limits = launch_plan_array(child->plan, &child->plan->limits);

        for (uint32_t i = 0; i < child->plan->limits.n; i++) {
                const SysLimit limit = { .soft = limits[i].soft, .hard = limits[i].hard };
                int r;

                r = sys_setrlimit(limits[i].resource, &limit);
                if (r < 0)
                        return report_detail(child->report, r, limit_name(limits[i].resource));
        }
        return 0;
}
