/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/journal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <syslog.h>

#include "util/cleanup.h"
#include "util/fd.h"

int journal_stream(const char *path, const char *identifier, const char *unit) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        _cleanup_free_ char *header = NULL;
        _cleanup_fd_ int fd = -EBADF;
        ssize_t n;
        int r;

        if (strlen(path) >= sizeof(address.sun_path))
                return -ENAMETOOLONG;
        (void) strcpy(address.sun_path, path);
        /* Priority; then no prefixes with levels in the lines, which are a stranger's; nothing forwarded. */
        if (asprintf(&header, "%s\n%s\n%d\n0\n0\n0\n0\n", identifier, unit, LOG_INFO) < 0) {
                header = NULL;
                return -ENOMEM;
        }
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0 || connect(fd, (const struct sockaddr *) &address, sizeof(address)) < 0)
                return -errno;
        /* The program only writes. */
        if (shutdown(fd, SHUT_RD) < 0)
                return -errno;
        n = send(fd, header, strlen(header), MSG_NOSIGNAL);
        if (n < 0)
                return -errno;
        if ((size_t) n != strlen(header))
                return -EAGAIN;
        r = fd_set_nonblock(fd, 0);
        return r < 0 ? r : TAKE_FD(fd);
}
