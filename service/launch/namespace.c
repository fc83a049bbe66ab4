/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/launch/namespace.h"

#include <linux/sockios.h>

#include "service/launch/plan.h"
#include "service/launch/report.h"
#include "service/launch/sys.h"
#include "service/launch/text.h"

int namespace_become_root(Child *child) {
        int r;

        if (!(child->plan->flags & LAUNCH_PLAN_SETGROUPS_DENIED)) {
                r = sys_setgroups(0, NULL);
                if (r < 0)
                        return report_detail(child->report, r, "setgroups");
        }
        r = sys_setresgid(0);
        if (r >= 0)
                r = sys_setresuid(0);
        /* Not before: until the maps are written they are files that an ordinary berthd must own. */
        if (r >= 0)
                r = sys_prctl(PR_SET_DUMPABLE, 0, 0);
        return r < 0 ? report_detail(child->report, r, "user namespace") : 0;
}

int namespace_join_user(Child *child) {
        int init = child->fds[LAUNCH_FD_INIT], r;

        r = init < 0 ? -EBADF : sys_setns(init, CLONE_NEWUSER);
        if (r < 0)
                return report_detail(child->report, r, "user namespace of the container");
        return namespace_become_root(child);
}

int namespace_enter(Child *child) {
        int init = child->fds[LAUNCH_FD_INIT], r;

        r = init < 0 ? -EBADF : sys_setns(init, child->plan->clone_flags | CLONE_NEWPID);
        if (r < 0)
                return report_detail(child->report, r, "namespaces of the container");
        child->root = sys_openat(AT_FDCWD, "/", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
        return child->root < 0 ? report_detail(child->report, child->root, "/") : 0;
}

/* struct ifreq: linux/if.h needs the C library's socket header. */
typedef struct InterfaceRequest {
        char name[16];
        short flags;
        char rest[22];
} InterfaceRequest;

#define INTERFACE_UP 0x1

/* A socket of any family asks the network namespace that it was made in; this one needs no IPv4. */
static int raise_loopback(void) {
        InterfaceRequest request = { .name = "lo" };
        _cleanup_close_ int socket = -EBADF;
        int r;

        socket = sys_socket(SYS_AF_UNIX, SYS_SOCK_DGRAM | O_CLOEXEC);
        if (socket < 0)
                return socket;
        r = sys_ioctl(socket, SIOCGIFFLAGS, (unsigned long) &request);
        if (r < 0)
                return r;
        request.flags |= INTERFACE_UP;
        return sys_ioctl(socket, SIOCSIFFLAGS, (unsigned long) &request);
}

int namespace_configure(Child *child) {
        const char *hostname = launch_plan_string(child->plan, child->plan->hostname);
        int r;

        if (child->plan->flags & LAUNCH_PLAN_NETWORK_LOOPBACK) {
                r = raise_loopback();
                if (r < 0)
                        return report_detail(child->report, r, "lo");
        }
        if (hostname) {
                r = sys_sethostname(hostname, text_length(hostname));
                if (r < 0)
                        return report_detail(child->report, r, hostname);
        }
        return 0;
}
