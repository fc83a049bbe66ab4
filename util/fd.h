/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* File descriptors: closing, duplicating, passing over a socket, sealed memory files. */
#pragma once

#include <errno.h>
#include <stddef.h>
#include <sys/types.h>

/* The most descriptors that Linux passes in one message (SCM_MAX_FD in the kernel). */
#define FD_PASS_MAX 253

/* Closes fd when it is one, keeps errno. Returns -EBADF, so that `fd = fd_close(fd)` leaves nothing behind. */
int fd_close(int fd);

/* A duplicate at 3 or above with CLOEXEC set, or negative errno. */
int fd_dup(int fd);

/* Sets or clears O_NONBLOCK. Returns 0 or negative errno. */
int fd_set_nonblock(int fd, int on);

/* Sets CLOEXEC on a descriptor that was inherited. Returns 0 or negative errno. */
int fd_set_cloexec(int fd);

/* A new memory file of this name with CLOEXEC, holding the bytes given and sealed against every change
 * (memfd_create(2)). Returns a descriptor owned by the caller, or negative errno. */
int fd_sealed_memory(const char *name, const void *data, size_t size);

/* One message of a SOCK_SEQPACKET socket, with descriptors beside it. fds stay the caller's. Returns 0 or negative
 * errno; never raises SIGPIPE. */
int fd_send(int socket, const void *data, size_t size, const int *fds, size_t n_fds);

/* Receives one message into data (size bytes at most, a longer one is -EMSGSIZE) and its descriptors, each CLOEXEC,
 * into fds (room for max_fds; more is -EMSGSIZE). Returns the length, 0 at the end of file, negative errno; on
 * error no descriptor stays open. -EMFILE: the process could not hold all its descriptors, but data is there.
 * *ret_n_fds are the caller's to close. */
ssize_t fd_receive(int socket, void *data, size_t size, int *fds, size_t max_fds, size_t *ret_n_fds);

/* Reads a regular file into memory, up to max bytes (-EFBIG beyond), NUL-terminated for convenience. It does not
 * follow a final symbolic link when nofollow is set, and refuses what is not a regular file (-EINVAL).
 * *ret_data is malloced, the caller's. */
int fd_read_file(int dirfd, const char *path, int nofollow, size_t max, char **ret_data, size_t *ret_size);

/* Writes the whole of data to a descriptor. Returns 0 or negative errno. */
int fd_write_all(int fd, const void *data, size_t size);

/* Opens path below dirfd and writes data in one write, as files of procfs and cgroupfs want it. */
int fd_write_file(int dirfd, const char *path, const char *data);
