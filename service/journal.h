/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Streams of text to the journal, by journald's own protocol: sd_journal_stream_fd(3) cannot tell the unit, which is not
 * the service's but the container's scope. journald believes that from root alone. */
#pragma once

#define JOURNAL_STDOUT_PATH "/run/systemd/journal/stdout"

/* Connects a stream, with the header that names identifier and unit ("": none). Never blocks: -EAGAIN when journald
 * takes no more connections. Returns a blocking descriptor, for a program to write lines to, the caller's; or negative
 * errno, -ENOENT where there is no journal. */
int journal_stream(const char *path, const char *identifier, const char *unit);
