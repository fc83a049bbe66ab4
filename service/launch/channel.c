/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/launch/channel.h"

#include "service/launch/sys.h"

typedef union Control {
        SysControl header;
        char buffer[sizeof(SysControl) + CHANNEL_FDS_MAX * sizeof(int)];
} Control;

int channel_receive(int socket, void *data, size_t size, int *fds, size_t *ret_n_fds) {
        Control control;
        SysVector vector = { data, size };
        SysMessage message = {
                .vectors = &vector,
                .n_vectors = 1,
                .control = &control,
                .control_length = sizeof(control),
        };
        size_t n_fds = 0;
        long n;

        do
                n = sys_recvmsg(socket, &message, SYS_MSG_CMSG_CLOEXEC);
        while (n == -EINTR);
        if (n < 0)
                return (int) n;
        if (message.control_length >= sizeof(control.header) && control.header.level == SOL_SOCKET &&
            control.header.type == SYS_SCM_RIGHTS && control.header.length >= sizeof(control.header)) {
                n_fds = (control.header.length - sizeof(control.header)) / sizeof(int);
                __builtin_memcpy(fds, control.buffer + sizeof(control.header), n_fds * sizeof(int));
        }
        if ((size_t) n == size && !(message.flags & (SYS_MSG_TRUNC | SYS_MSG_CTRUNC))) {
                *ret_n_fds = n_fds;
                return 1;
        }
        for (size_t i = 0; i < n_fds; i++)
                (void) sys_close(fds[i]);
        return n == 0 ? 0 : -EPROTO;
}

int channel_send(int socket, const void *data, size_t size, const int *fds, size_t n_fds) {
        Control control;
        SysVector vector = { (void *) (uintptr_t) data, size };
        SysMessage message = { .vectors = &vector, .n_vectors = 1 };
        long n;

        if (n_fds > 0) {
                control.header = (SysControl) {
                        .length = sizeof(control.header) + n_fds * sizeof(int),
                        .level = SOL_SOCKET,
                        .type = SYS_SCM_RIGHTS,
                };
                __builtin_memcpy(control.buffer + sizeof(control.header), fds, n_fds * sizeof(int));
                message.control = &control;
                message.control_length = control.header.length;
        }
        do
                n = sys_sendmsg(socket, &message, SYS_MSG_NOSIGNAL);
        while (n == -EINTR);
        return n < 0 ? (int) n : 0;
}
