/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "util/fd.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/cleanup.h"

int fd_close(int fd) {
        int saved = errno;

        if (fd >= 0)
                (void) close(fd);
        errno = saved;
        return -EBADF;
}

int fd_dup(int fd) {
        int copy;

        copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
        return copy < 0 ? -errno : copy;
}

int fd_set_nonblock(int fd, int on) {
        int flags;

        flags = fcntl(fd, F_GETFL);
        if (flags < 0)
                return -errno;
        if (!(flags & O_NONBLOCK) == !on)
                return 0;
        return fcntl(fd, F_SETFL, flags ^ O_NONBLOCK) < 0 ? -errno : 0;
}

int fd_set_cloexec(int fd) {
        return fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 ? -errno : 0;
}

int fd_sealed_memory(const char *name, const void *data, size_t size) {
        _cleanup_fd_ int fd = -EBADF;
        int r;

        fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
        if (fd < 0)
                return -errno;
        r = fd_write_all(fd, data, size);
        if (r < 0)
                return r;
        if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) < 0)
                return -errno;
        return TAKE_FD(fd);
}

int fd_send(int socket, const void *data, size_t size, const int *fds, size_t n_fds) {
        union {
                struct cmsghdr header;
                char buffer[CMSG_SPACE(sizeof(int) * FD_PASS_MAX)];
        } control;
        struct iovec iov = { .iov_base = (void *) data, .iov_len = size };
        struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };

        if (n_fds > FD_PASS_MAX)
                return -E2BIG;
        if (n_fds > 0) {
                struct cmsghdr *c = &control.header;

                memset(&control, 0, sizeof(control));
                message.msg_control = &control;
                message.msg_controllen = CMSG_SPACE(sizeof(int) * n_fds);
                c->cmsg_level = SOL_SOCKET;
                c->cmsg_type = SCM_RIGHTS;
                c->cmsg_len = CMSG_LEN(sizeof(int) * n_fds);
                memcpy(CMSG_DATA(c), fds, sizeof(int) * n_fds);
        }
        for (;;) {
                if (sendmsg(socket, &message, MSG_NOSIGNAL) >= 0)
                        return 0;
                if (errno != EINTR)
                        return -errno;
        }
}

ssize_t fd_receive(int socket, void *data, size_t size, int *fds, size_t max_fds, size_t *ret_n_fds) {
        union {
                struct cmsghdr header;
                char buffer[CMSG_SPACE(sizeof(int) * FD_PASS_MAX)];
        } control;
        struct iovec iov = { .iov_base = data, .iov_len = size };
        struct msghdr message = {
                .msg_iov = &iov,
                .msg_iovlen = 1,
                .msg_control = &control,
                .msg_controllen = sizeof(control),
        };
        size_t n = 0;
        ssize_t length;
        int r = 0;

        do
                length = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
        while (length < 0 && errno == EINTR);
        if (length < 0)
                return -errno;

        if (message.msg_flags & MSG_TRUNC)
                r = -EMSGSIZE;
        else if (message.msg_flags & MSG_CTRUNC)
                r = -EMFILE;
        for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c)) {
                size_t count;

                if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
                        continue;
                count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
                for (size_t i = 0; i < count; i++) {
                        int fd;

                        memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
                        if (n < max_fds && r == 0)
                                fds[n++] = fd;
                        else {
                                r = r < 0 ? r : -EMSGSIZE;
                                (void) close(fd);
                        }
                }
        }
        if (r < 0) {
                for (size_t i = 0; i < n; i++)
                        (void) close(fds[i]);
                return r;
        }
        *ret_n_fds = n;
        return length;
}

int fd_read_file(int dirfd, const char *path, int nofollow, size_t max, char **ret_data, size_t *ret_size) {
        _cleanup_free_ char *data = NULL;
        _cleanup_fd_ int fd = -EBADF;
        size_t size = 0, room = 0;
        struct stat st;

        fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | (nofollow ? O_NOFOLLOW : 0));
        if (fd < 0)
                return -errno;
        if (fstat(fd, &st) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode))
                return -EINVAL;
        for (;;) {
                ssize_t n;

                if (size == room) {
                        char *bigger;

                        if (room > max)
                                return -EFBIG;
                        room = room ? room * 2 : 4096;
                        if (room > max)
                                room = max + 1;
                        bigger = realloc(data, room + 1);
                        if (!bigger)
                                return -ENOMEM;
                        data = bigger;
                }
                n = read(fd, data + size, room - size);
                if (n < 0) {
                        if (errno == EINTR)
                                continue;
                        return -errno;
                }
                if (n == 0)
                        break;
                size += (size_t) n;
        }
        if (size > max)
                return -EFBIG;
        data[size] = 0;
        *ret_data = TAKE_PTR(data);
        if (ret_size)
                *ret_size = size;
        return 0;
}

int fd_write_all(int fd, const void *data, size_t size) {
        const char *p = data;

        while (size > 0) {
                ssize_t n;

                n = write(fd, p, size);
                if (n < 0) {
                        if (errno == EINTR)
                                continue;
                        return -errno;
                }
                p += n;
                size -= (size_t) n;
        }
        return 0;
}

int fd_write_file(int dirfd, const char *path, const char *data) {
        _cleanup_fd_ int fd = -EBADF;
        size_t length = strlen(data);
        ssize_t n;

        fd = openat(dirfd, path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
        if (fd < 0)
                return -errno;
        n = write(fd, data, length);
        if (n < 0)
                return -errno;
        return (size_t) n == length ? 0 : -EIO;
}
