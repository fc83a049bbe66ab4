/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Messages with descriptors over a SOCK_SEQPACKET socket. */
#pragma once

#include <stddef.h>

#include "service/launch/message.h"

#define CHANNEL_FDS_MAX LAUNCH_HELLO_FDS_MAX

/* Receives one message of exactly size bytes and up to CHANNEL_FDS_MAX descriptors, CLOEXEC, into fds. 1,
 * 0 at the end of file, or negative errno: -EPROTO for a message of another size or with more
 * descriptors. When it isn't 1 no descriptor stays open. */
int channel_receive(int socket, void *data, size_t size, int *fds, size_t *ret_n_fds);

/* Sends one message; the descriptors stay the caller's. 0 or negative errno. */
int channel_send(int socket, const void *data, size_t size, const int *fds, size_t n_fds);
