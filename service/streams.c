/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/streams.h"

#include <fcntl.h>
#include <unistd.h>

#include "util/fd.h"

static bool follows_output(const StartOptions *options) {
        return options->streams[1] == STREAM_PIPE && options->streams[2] == STREAM_DEFAULT;
}

int streams_open(StartOptions *options, int ret_ends[3]) {
        int ends[3] = { -EBADF, -EBADF, -EBADF }, r = 0;

        for (unsigned i = 0; i < ELEMENTSOF(ends) && r >= 0; i++) {
                int pair[2];

                if (options->streams[i] != STREAM_PIPE)
                        continue;
                if (pipe2(pair, O_CLOEXEC) < 0) {
                        r = -errno;
                        break;
                }
                options->stdio[i] = pair[i > 0];
                ends[i] = pair[i == 0];
        }
        if (r >= 0 && follows_output(options))
                r = options->stdio[2] = fd_dup(options->stdio[1]);
        for (unsigned i = 0; i < ELEMENTSOF(ends); i++) {
                if (r < 0)
                        (void) fd_close(ends[i]);
                else if (ends[i] >= 0)
                        ret_ends[i] = ends[i];
        }
        return r < 0 ? r : 0;
}

unsigned streams_own(const StartOptions *options) {
        unsigned own = 0;

        for (unsigned i = 0; i < ELEMENTSOF(options->streams); i++)
                if (options->streams[i] == STREAM_PIPE)
                        own |= 1U << i;
        return follows_output(options) ? own | 1U << 2 : own;
}
