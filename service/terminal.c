/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/terminal.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "util/fd.h"
#include "util/log.h"

#define DEVPTS_MAX "1024"

struct Terminal {
        int master;      /* owned until handed over */
        int slave;       /* owned, O_NOCTTY */
        sd_event *event; /* owned once watched */
        sd_event_source *hang_up;
        terminal_hung_up_t callback;
        void *userdata;
};

int terminal_make_devpts(gid_t tty_gid) {
        _cleanup_fd_ int fs = -EBADF;
        char gid[16];
        int mount;

        fs = fsopen("devpts", FSOPEN_CLOEXEC);
        if (fs < 0)
                return -errno;
        (void) snprintf(gid, sizeof(gid), "%u", tty_gid);
        if (fsconfig(fs, FSCONFIG_SET_FLAG, "newinstance", NULL, 0) < 0 ||
            fsconfig(fs, FSCONFIG_SET_STRING, "ptmxmode", "0666", 0) < 0 ||
            fsconfig(fs, FSCONFIG_SET_STRING, "mode", "0620", 0) < 0 ||
            fsconfig(fs, FSCONFIG_SET_STRING, "max", DEVPTS_MAX, 0) < 0 ||
            (tty_gid != (gid_t) -1 && fsconfig(fs, FSCONFIG_SET_STRING, "gid", gid, 0) < 0) ||
            fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
                return -errno;
        mount = fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
        return mount < 0 ? -errno : mount;
}

static int open_slave(int master) {
        int unlocked = 0, slave;

        if (ioctl(master, TIOCSPTLCK, &unlocked) < 0)
                return -errno;
        slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
        return slave < 0 ? -errno : slave;
}

static Terminal *terminal_alloc(void) {
        Terminal *terminal;

        terminal = calloc(1, sizeof(*terminal));
        if (terminal)
                terminal->master = terminal->slave = -EBADF;
        return terminal;
}

int terminal_new(int devpts, TerminalSize size, Terminal **ret) {
        _cleanup_(terminal_freep) Terminal *terminal = NULL;
        int r;

        terminal = terminal_alloc();
        if (!terminal)
                return -ENOMEM;
        terminal->master = openat(devpts, "ptmx", O_RDWR | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC);
        if (terminal->master < 0)
                return -errno;
        terminal->slave = open_slave(terminal->master);
        if (terminal->slave < 0)
                return terminal->slave;
        r = terminal_resize(terminal, size);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(terminal);
        return 0;
}

int terminal_adopt(int master, Terminal **ret) {
        _cleanup_(terminal_freep) Terminal *terminal = NULL;

        terminal = terminal_alloc();
        if (!terminal) {
                (void) fd_close(master);
                return -ENOMEM;
        }
        terminal->master = master;
        terminal->slave = open_slave(master);
        if (terminal->slave < 0)
                return terminal->slave;
        *ret = TAKE_PTR(terminal);
        return 0;
}

Terminal *terminal_free(Terminal *terminal) {
        if (!terminal)
                return NULL;
        (void) sd_event_source_disable_unref(terminal->hang_up);
        (void) sd_event_unref(terminal->event);
        (void) fd_close(terminal->slave);
        (void) fd_close(terminal->master);
        free(terminal);
        return NULL;
}

int terminal_slave(const Terminal *terminal) {
        return terminal->slave;
}

int terminal_take_master(Terminal *terminal) {
        return TAKE_FD(terminal->master);
}

static int watch_slave(Terminal *terminal);

static int on_hang_up(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        Terminal *terminal = userdata;
        char path[32];
        struct stat st;
        int slave, r;

        terminal->hang_up = sd_event_source_disable_unref(terminal->hang_up);
        if (fstat(terminal->slave, &st) == 0 && st.st_nlink > 0) {
                /* The master lives: a vhangup(2) from inside, as login and getty do. It made this descriptor
                 * useless but not the terminal; a fresh one goes on. */
                (void) snprintf(path, sizeof(path), "/proc/self/fd/%d", terminal->slave);
                slave = open(path, O_RDWR | O_NOCTTY | O_CLOEXEC);
                r = slave < 0 ? -errno : 0;
                if (r >= 0) {
                        (void) fd_close(terminal->slave);
                        terminal->slave = slave;
                        r = watch_slave(terminal);
                }
                if (r >= 0)
                        return 0;
                errno = -r;
                log_message(LOG_WARNING, "Cannot watch a terminal after a vhangup: %m");
                return 0;
        }
        terminal->callback(terminal, terminal->userdata);
        return 0;
}

static int watch_slave(Terminal *terminal) {
        /* No event asked for: EPOLLHUP comes unasked, and input of the slave is the program's. */
        return sd_event_add_io(terminal->event, &terminal->hang_up, terminal->slave, 0, on_hang_up,
                               terminal);
}

int terminal_watch(Terminal *terminal, sd_event *event, terminal_hung_up_t callback, void *userdata) {
        terminal->event = sd_event_ref(event);
        terminal->callback = callback;
        terminal->userdata = userdata;
        return watch_slave(terminal);
}

int terminal_resize(Terminal *terminal, TerminalSize size) {
        struct winsize ws = {
                .ws_row = size.rows,
                .ws_col = size.columns,
                .ws_xpixel = size.x_pixels,
                .ws_ypixel = size.y_pixels,
        };

        if (ioctl(terminal->slave, TIOCSWINSZ, &ws) < 0)
                return errno == EIO ? 0 : -errno;
        return 0;
}

int terminal_get_size(const Terminal *terminal, TerminalSize *ret) {
        struct winsize ws;

        if (ioctl(terminal->slave, TIOCGWINSZ, &ws) < 0)
                return -errno;
        *ret = (TerminalSize) { ws.ws_row, ws.ws_col, ws.ws_xpixel, ws.ws_ypixel };
        return 0;
}
