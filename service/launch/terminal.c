/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/launch/terminal.h"

#include "service/launch/channel.h"
#include "service/launch/device.h"
#include "service/launch/report.h"
#include "service/launch/sys.h"

int terminal_make(Child *child, int devpts) {
        const LaunchPlan *plan = child->plan;
        const struct winsize size = {
                .ws_row = (unsigned short) (plan->rows && plan->columns ? plan->rows : 24),
                .ws_col = (unsigned short) (plan->rows && plan->columns ? plan->columns : 80),
                .ws_xpixel = (unsigned short) plan->x_pixels,
                .ws_ypixel = (unsigned short) plan->y_pixels,
        };
        const LaunchChildNews news = { .news = LAUNCH_NEWS_DEVPTS };
        _cleanup_close_ int master = -EBADF, slave = -EBADF;
        int unlocked = 0, r;

        if (!(plan->flags & LAUNCH_PLAN_TERMINAL)) {
                r = channel_send(child->socket, &news, sizeof(news), &devpts, 1);
                return r < 0 ? report_detail(child->report, r, "devpts") : 0;
        }
        master = sys_openat(devpts, "ptmx", O_RDWR | O_NOCTTY | O_NOFOLLOW | O_CLOEXEC, 0);
        if (master < 0)
                return report_detail(child->report, master, "ptmx");
        r = sys_ioctl(master, TIOCSPTLCK, (unsigned long) &unlocked);
        if (r >= 0)
                r = sys_ioctl(master, TIOCSWINSZ, (unsigned long) &size);
        if (r < 0)
                return report_detail(child->report, r, "ptmx");
        slave = sys_ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
        if (slave < 0)
                return report_detail(child->report, slave, "terminal");
        r = channel_send(child->socket, &news, sizeof(news), (const int[]) { devpts, master }, 2);
        if (r < 0)
                return report_detail(child->report, r, "terminal");
        child->tty = sys_take_fd(&slave);
        return 0;
}

int terminal_prepare(Child *child) {
        if (child->plan->flags & LAUNCH_PLAN_TERMINAL)
                return 0;
        for (int i = 0; i < 3; i++) {
                int *fd = child->fds + LAUNCH_FD_STDIN + i;

                if (*fd >= 0)
                        continue;
                *fd = device_open_null(child);
                if (*fd < 0)
                        return *fd;
        }
        return 0;
}

static int own_terminal(const Child *child) {
        struct statx st;
        int r;

        if (child->tty < 0)
                return -EBADF;
        r = sys_statx(child->tty, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &st);
        if (r >= 0 && st.stx_uid != child->user->uid)
                r = sys_fchown(child->tty, child->user->uid, (uint32_t) -1);
        return r < 0 ? r : sys_fchmod(child->tty, 0620);
}

/* So that the user can open /dev/stdout and its like again. */
static int own_streams(const Child *child) {
        for (int i = 0; i < 3; i++) {
                int fd = child->fds[LAUNCH_FD_STDIN + i], r;

                if (!(child->own_stdio & 1U << i))
                        continue;
                r = fd < 0 ? -EBADF : sys_fchown(fd, child->user->uid, child->user->gid);
                if (r < 0)
                        return r;
        }
        return 0;
}

int terminal_place(Child *child) {
        bool terminal = child->plan->flags & LAUNCH_PLAN_TERMINAL;
        int r;

        r = terminal ? own_terminal(child) : own_streams(child);
        if (r < 0)
                return report_detail(child->report, r, terminal ? "terminal" : "owner of a pipe");
        for (int i = 0; i < 3; i++) {
                r = sys_dup3(terminal ? child->tty : child->fds[LAUNCH_FD_STDIN + i], i, 0);
                if (r < 0)
                        return report_detail(child->report, r, "standard input, output and error");
        }
        return 0;
}

int terminal_take(Child *child) {
        int r;

        r = sys_setsid();
        if (r < 0)
                return report_detail(child->report, r, "setsid");
        if (child->plan->flags & LAUNCH_PLAN_TERMINAL) {
                r = sys_ioctl(0, TIOCSCTTY, 0);
                if (r < 0)
                        return report_detail(child->report, r, "terminal");
        }
        return 0;
}
