/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/cgroup-control.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <time.h>

#include "service/cgroup-parse.h"
#include "service/cgroup.h"
#include "service/oom.h"
#include "util/fd.h"

#define EVENTS_MAX 1024

struct CgroupControl {
        int fd, events; /* owned */
        OomCounter oom; /* its descriptor owned; -EBADF without a memory controller */
        bool is_frozen;
        cgroup_frozen_t frozen;
        void *userdata;
        sd_event_source *events_source, *memory_source;
};

/* One key of an open file of events; reading it also arms its next event. */
static int read_event(int fd, const char *key, uint64_t *ret) {
        char text[EVENTS_MAX];
        ssize_t n;

        n = pread(fd, text, sizeof(text) - 1, 0);
        if (n < 0)
                return -errno;
        text[n] = '\0';
        return cgroup_parse_key(text, key, ret);
}

bool cgroup_is_freezing(int fd) {
        _cleanup_fd_ int events = -EBADF, freeze = -EBADF;
        uint64_t frozen;
        char asked;

        freeze = openat(fd, "cgroup.freeze", O_RDONLY | O_CLOEXEC);
        if (freeze >= 0 && pread(freeze, &asked, 1, 0) == 1 && asked == '1')
                return true;
        events = openat(fd, "cgroup.events", O_RDONLY | O_CLOEXEC);
        return events >= 0 && read_event(events, "frozen", &frozen) >= 0 && frozen;
}

static int update(CgroupControl *control) {
        uint64_t frozen;
        int r;

        r = read_event(control->events, "frozen", &frozen);
        if (r < 0 || control->is_frozen == (frozen != 0))
                return r;
        control->is_frozen = frozen;
        control->frozen(control->is_frozen, control->userdata);
        return 0;
}

void cgroup_control_update(CgroupControl *control) {
        (void) update(control);
}

static int on_events(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        CgroupControl *control = userdata;

        /* A group that is gone would report an event for ever. */
        if (update(control) < 0)
                (void) sd_event_source_set_enabled(source, SD_EVENT_OFF);
        return 0;
}

static uint64_t now_monotonic(void) {
        struct timespec ts;

        (void) clock_gettime(CLOCK_MONOTONIC, &ts);
        return (uint64_t) ts.tv_sec * 1000000U + (uint64_t) ts.tv_nsec / 1000U;
}

bool cgroup_control_oom_killed(CgroupControl *control, bool claim) {
        uint64_t now = now_monotonic();
        bool killed;

        (void) oom_counter_update(&control->oom, now);
        killed = oom_counter_explains(&control->oom, now);
        if (killed && claim)
                oom_counter_claim(&control->oom);
        return killed;
}

static int on_memory_events(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        CgroupControl *control = userdata;

        if (oom_counter_update(&control->oom, now_monotonic()) < 0)
                (void) sd_event_source_set_enabled(source, SD_EVENT_OFF);
        return 0;
}

int cgroup_control_new(sd_event *event, const char *path, cgroup_frozen_t frozen, void *userdata,
                       CgroupControl **ret) {
        _cleanup_(cgroup_control_freep) CgroupControl *control = NULL;
        int r;

        control = calloc(1, sizeof(*control));
        if (!control)
                return -ENOMEM;
        control->events = control->oom.fd = -EBADF;
        control->frozen = frozen;
        control->userdata = userdata;
        control->fd = cgroup_open(path);
        if (control->fd < 0)
                return control->fd;
        control->events = openat(control->fd, "cgroup.events", O_RDONLY | O_CLOEXEC);
        if (control->events < 0)
                return -errno;
        r = sd_event_add_io(event, &control->events_source, control->events, EPOLLPRI, on_events, control);
        if (r < 0)
                return r;
        control->oom.fd = openat(control->fd, "memory.events", O_RDONLY | O_CLOEXEC);
        if (control->oom.fd >= 0) {
                r = sd_event_add_io(event, &control->memory_source, control->oom.fd, EPOLLPRI,
                                    on_memory_events, control);
                if (r < 0)
                        return r;
                (void) oom_counter_update(&control->oom, now_monotonic());
        }
        *ret = TAKE_PTR(control);
        return 0;
}

CgroupControl *cgroup_control_free(CgroupControl *control) {
        if (!control)
                return NULL;
        (void) sd_event_source_disable_unref(control->events_source);
        (void) sd_event_source_disable_unref(control->memory_source);
        (void) fd_close(control->oom.fd);
        (void) fd_close(control->events);
        (void) fd_close(control->fd);
        free(control);
        return NULL;
}

int cgroup_control_fd(const CgroupControl *control) {
        return control->fd;
}

int cgroup_control_freeze(const CgroupControl *control, bool freeze) {
        return fd_write_file(control->fd, "cgroup.freeze", freeze ? "1" : "0");
}

int cgroup_control_kill(const CgroupControl *control) {
        return fd_write_file(control->fd, "cgroup.kill", "1");
}
