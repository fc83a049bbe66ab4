/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Ownership by scope: cleanup attributes, and the macros that hand ownership on. */
#pragma once

#include <stdlib.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>
#include <unistd.h>

#include "util/fd.h"

#define _cleanup_(f) __attribute__((cleanup(f)))
#define _unused_ __attribute__((unused))

/* Hands a value on and leaves its null behind, so that the cleanup of the scope finds nothing to do. */
#define TAKE(var, null)                       \
        ({                                    \
                __typeof__(var) *_p = &(var); \
                __typeof__(var) _v = *_p;     \
                *_p = (null);                 \
                _v;                           \
        })
#define TAKE_PTR(ptr) TAKE(ptr, NULL)
#define TAKE_FD(fd) TAKE(fd, -EBADF)

/* Defines funcp(), the cleanup form of a destructor that takes a pointer and accepts NULL. */
#define DEFINE_CLEANUP(type, func)            \
        static inline void func##p(type *p) { \
                if (*p)                       \
                        (void) func(*p);      \
        }

static inline void freep(void *p) {
        free(*(void **) p);
}

static inline void fd_closep(int *fd) {
        fd_close(*fd);
}

#define _cleanup_free_ _cleanup_(freep)
#define _cleanup_fd_ _cleanup_(fd_closep)
#define _cleanup_bus_error_ _cleanup_(sd_bus_error_free)
#define _cleanup_bus_message_ _cleanup_(sd_bus_message_unrefp)

#define ELEMENTSOF(a) (sizeof(a) / sizeof((a)[0]))
