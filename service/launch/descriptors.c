/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/launch/descriptors.h"

#include "service/launch/report.h"
#include "service/launch/sys.h"

static bool is_number(const Child *child, int fd) {
        for (size_t i = 0; i < child->n_numbered; i++)
                if ((int) child->numbered[i].number == fd)
                        return true;
        return false;
}

int descriptors_add(Child *child, unsigned number, int fd) {
        if (number < 3 || number > LAUNCH_NUMBER_MAX || child->n_numbered >= LAUNCH_NUMBERED_MAX ||
            is_number(child, (int) number))
                return -EINVAL;
        child->numbered[child->n_numbered].number = number;
        child->numbered[child->n_numbered].fd = fd;
        child->n_numbered++;
        return 0;
}

/* A number that will be overwritten is left for the next one above that will not be. */
static int make_way(const Child *child, int *fd) {
        int at = *fd;

        if (at < 0 || !is_number(child, at))
                return 0;
        for (;;) {
                int moved;

                moved = sys_fcntl(*fd, F_DUPFD_CLOEXEC, (unsigned long) at + 1);
                if (moved < 0)
                        return moved;
                if (!is_number(child, moved)) {
                        (void) sys_close(*fd);
                        *fd = moved;
                        return 0;
                }
                (void) sys_close(moved);
                at = moved;
        }
}

int descriptors_place(Child *child) {
        int r;

        r = make_way(child, &child->socket);
        for (size_t i = 0; i < child->n_numbered && r >= 0; i++)
                r = make_way(child, &child->numbered[i].fd);
        for (size_t i = 0; i < child->n_numbered && r >= 0; i++)
                r = sys_dup3(child->numbered[i].fd, (int) child->numbered[i].number, O_CLOEXEC);
        return r < 0 ? report_detail(child->report, r, "file descriptors") : 0;
}

int descriptors_pass(Child *child) {
        for (size_t i = 0; i < child->n_numbered; i++) {
                int r;

                r = sys_fcntl((int) child->numbered[i].number, F_SETFD, 0);
                if (r < 0)
                        return report_detail(child->report, r, "file descriptors");
        }
        return 0;
}
