/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/keep.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "util/fd.h"

#define STACK_SIZE (128U * 1024U)
#define CHUNK_SIZE 4096U

/* Shared with drainers, one that was cut off too: what its read returns at last is not lost. */
typedef struct Ring {
        unsigned n_ref; /* atomic */
        pthread_mutex_t lock;
        int memory; /* owned */
        char *data; /* owned mapping of it */
        size_t start, length;
} Ring;

/* One drainer: the thread's reference, and the keep's. */
typedef struct Drain {
        unsigned n_ref;         /* atomic */
        Ring *ring;             /* owned reference */
        int master, stop, done; /* owned; two eventfds */
        bool at_end;            /* atomic; set before `done` */
} Drain;

struct Keep {
        sd_event *event; /* owned reference */
        int master;      /* owned */
        Ring *ring;      /* owned reference */
        Drain *drain;    /* owned reference while it drains */
        sd_event_source *done, *cut_off;
        keep_stopped_t stopped;
        void *userdata;
};

/* ---- the ring ------------------------------------------------------------------------------------------------- */

static Ring *ring_unref(Ring *ring) {
        if (!ring || __atomic_sub_fetch(&ring->n_ref, 1, __ATOMIC_ACQ_REL) > 0)
                return NULL;
        if (ring->data)
                (void) munmap(ring->data, KEEP_RING_SIZE);
        (void) fd_close(ring->memory);
        (void) pthread_mutex_destroy(&ring->lock);
        free(ring);
        return NULL;
}
DEFINE_CLEANUP(Ring *, ring_unref);

static int ring_new(Ring **ret) {
        _cleanup_(ring_unrefp) Ring *ring = NULL;
        void *data;

        ring = calloc(1, sizeof(*ring));
        if (!ring)
                return -ENOMEM;
        ring->n_ref = 1;
        ring->memory = -EBADF;
        (void) pthread_mutex_init(&ring->lock, NULL);
        ring->memory = memfd_create("berth-scrollback", MFD_CLOEXEC);
        if (ring->memory < 0)
                return -errno;
        if (ftruncate(ring->memory, KEEP_RING_SIZE) < 0)
                return -errno;
        data = mmap(NULL, KEEP_RING_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, ring->memory, 0);
        if (data == MAP_FAILED)
                return -errno;
        ring->data = data;
        *ret = TAKE_PTR(ring);
        return 0;
}

/* size is at most the ring's. */
static void ring_append(Ring *ring, const char *bytes, size_t size) {
        size_t end, first;

        (void) pthread_mutex_lock(&ring->lock);
        end = (ring->start + ring->length) % KEEP_RING_SIZE;
        first = KEEP_RING_SIZE - end;
        if (first > size)
                first = size;
        memcpy(ring->data + end, bytes, first);
        memcpy(ring->data, bytes + first, size - first);
        ring->length += size;
        if (ring->length > KEEP_RING_SIZE) {
                ring->start = (ring->start + ring->length - KEEP_RING_SIZE) % KEEP_RING_SIZE;
                ring->length = KEEP_RING_SIZE;
        }
        (void) pthread_mutex_unlock(&ring->lock);
}

/* ---- the drainer ---------------------------------------------------------------------------------------------- */

static Drain *drain_unref(Drain *drain) {
        if (!drain || __atomic_sub_fetch(&drain->n_ref, 1, __ATOMIC_ACQ_REL) > 0)
                return NULL;
        (void) ring_unref(drain->ring);
        (void) fd_close(drain->master);
        (void) fd_close(drain->stop);
        (void) fd_close(drain->done);
        free(drain);
        return NULL;
}
DEFINE_CLEANUP(Drain *, drain_unref);

static void *drain_run(void *userdata) {
        Drain *drain = userdata;
        char buffer[CHUNK_SIZE];
        ssize_t n;

        for (;;) {
                struct pollfd fds[] = {
                        { .fd = drain->master, .events = POLLIN },
                        { .fd = drain->stop, .events = POLLIN },
                };

                if (poll(fds, ELEMENTSOF(fds), -1) < 0)
                        continue;
                if (fds[1].revents)
                        break;
                n = read(drain->master, buffer, sizeof(buffer));
                if (n > 0) {
                        ring_append(drain->ring, buffer, (size_t) n);
                        continue;
                }
                if (n < 0 && (errno == EAGAIN || errno == EINTR))
                        continue;
                __atomic_store_n(&drain->at_end, true, __ATOMIC_RELEASE);
                break;
        }
        (void) eventfd_write(drain->done, 1);
        (void) drain_unref(drain);
        return NULL;
}

static int drain_new(Ring *ring, int master, Drain **ret) {
        _cleanup_(drain_unrefp) Drain *drain = NULL;

        drain = calloc(1, sizeof(*drain));
        if (!drain)
                return -ENOMEM;
        drain->n_ref = 1;
        drain->ring = ring;
        (void) __atomic_add_fetch(&ring->n_ref, 1, __ATOMIC_RELAXED);
        drain->master = drain->stop = drain->done = -EBADF;
        drain->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (drain->stop < 0)
                return -errno;
        drain->done = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (drain->done < 0)
                return -errno;
        drain->master = fd_dup(master);
        if (drain->master < 0)
                return drain->master;
        *ret = TAKE_PTR(drain);
        return 0;
}

static int drain_start(Drain *drain) {
        pthread_attr_t attributes;
        sigset_t all, before;
        pthread_t thread;
        int r;

        r = pthread_attr_init(&attributes);
        if (r != 0)
                return -r;
        (void) pthread_attr_setstacksize(&attributes, STACK_SIZE);
        (void) pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
        /* A thread has its creator's mask: no signal is ever its to take. */
        (void) sigfillset(&all);
        (void) pthread_sigmask(SIG_SETMASK, &all, &before);
        (void) __atomic_add_fetch(&drain->n_ref, 1, __ATOMIC_RELAXED);
        r = pthread_create(&thread, &attributes, drain_run, drain);
        (void) pthread_sigmask(SIG_SETMASK, &before, NULL);
        (void) pthread_attr_destroy(&attributes);
        if (r != 0)
                (void) drain_unref(drain);
        return -r;
}

/* ---- the keep ------------------------------------------------------------------------------------------------- */

int keep_new(sd_event *event, int master, keep_stopped_t stopped, void *userdata, Keep **ret) {
        _cleanup_(keep_freep) Keep *keep = NULL;
        int r;

        keep = calloc(1, sizeof(*keep));
        if (!keep)
                return -ENOMEM;
        keep->master = -EBADF;
        keep->event = sd_event_ref(event);
        keep->stopped = stopped;
        keep->userdata = userdata;
        keep->master = fd_dup(master);
        if (keep->master < 0)
                return keep->master;
        r = ring_new(&keep->ring);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(keep);
        return 0;
}

static void let_go(Keep *keep) {
        keep->done = sd_event_source_disable_unref(keep->done);
        keep->cut_off = sd_event_source_disable_unref(keep->cut_off);
        if (keep->drain)
                (void) eventfd_write(keep->drain->stop, 1);
        keep->drain = drain_unref(keep->drain);
}

Keep *keep_free(Keep *keep) {
        if (!keep)
                return NULL;
        let_go(keep);
        (void) ring_unref(keep->ring);
        (void) fd_close(keep->master);
        (void) sd_event_unref(keep->event);
        free(keep);
        return NULL;
}

static int on_done(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        Keep *keep = userdata;
        bool at_end = __atomic_load_n(&keep->drain->at_end, __ATOMIC_ACQUIRE);

        let_go(keep);
        keep->stopped(keep, at_end, keep->userdata);
        return 0;
}

static int on_cut_off(sd_event_source *source, uint64_t usec, void *userdata) {
        Keep *keep = userdata;

        let_go(keep);
        keep->stopped(keep, false, keep->userdata);
        return 0;
}

static void reset_flags(int master) {
        int off = 0, flags;

        flags = fcntl(master, F_GETFL);
        if (flags >= 0)
                (void) fcntl(master, F_SETFL, flags & ~(O_NONBLOCK | O_ASYNC));
        (void) ioctl(master, TIOCPKT, &off);
}

int keep_drain(Keep *keep) {
        int r;

        if (keep->drain)
                return -EBUSY;
        reset_flags(keep->master);
        r = drain_new(keep->ring, keep->master, &keep->drain);
        if (r >= 0)
                r = sd_event_add_io(keep->event, &keep->done, keep->drain->done, EPOLLIN, on_done, keep);
        if (r >= 0)
                r = drain_start(keep->drain);
        if (r < 0)
                let_go(keep);
        return r;
}

int keep_stop(Keep *keep) {
        if (!keep->drain || keep->cut_off)
                return 0;
        (void) eventfd_write(keep->drain->stop, 1);
        return sd_event_add_time_relative(keep->event, &keep->cut_off, CLOCK_MONOTONIC, KEEP_STOP_USEC, 1,
                                          on_cut_off, keep);
}

bool keep_draining(const Keep *keep) {
        return keep->drain != NULL;
}

int keep_scrollback(const Keep *keep) {
        _cleanup_free_ char *copy = NULL;
        Ring *ring = keep->ring;
        size_t first, length;

        copy = malloc(KEEP_RING_SIZE);
        if (!copy)
                return -ENOMEM;
        (void) pthread_mutex_lock(&ring->lock);
        length = ring->length;
        first = KEEP_RING_SIZE - ring->start;
        if (first > length)
                first = length;
        memcpy(copy, ring->data + ring->start, first);
        memcpy(copy + first, ring->data, length - first);
        (void) pthread_mutex_unlock(&ring->lock);
        return fd_sealed_memory("berth-scrollback", copy, length);
}
