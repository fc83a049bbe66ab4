/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One launch: from the clone that is asked for to execve, or to a dead and reaped child. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "service/launcher-internal.h"
#include "util/fd.h"
#include "util/timer.h"

static const char *const stage_names[_LAUNCH_STAGE_MAX] = {
        [LAUNCH_STAGE_NONE] = "",
        [LAUNCH_STAGE_CLONE] = "clone",
        [LAUNCH_STAGE_USER_NAMESPACE] = "user-namespace",
        [LAUNCH_STAGE_SCOPE] = "scope",
        [LAUNCH_STAGE_CGROUP] = "cgroup",
        [LAUNCH_STAGE_NETWORK] = "network",
        [LAUNCH_STAGE_ROOTFS] = "rootfs",
        [LAUNCH_STAGE_MOUNT] = "mount",
        [LAUNCH_STAGE_DEVICE] = "device",
        [LAUNCH_STAGE_TERMINAL] = "terminal",
        [LAUNCH_STAGE_HOOK] = "hook",
        [LAUNCH_STAGE_LIMITS] = "limits",
        [LAUNCH_STAGE_CREDENTIALS] = "credentials",
        [LAUNCH_STAGE_SECCOMP] = "seccomp",
        [LAUNCH_STAGE_EXEC] = "exec",
        [LAUNCH_STAGE_RUNTIME] = "runtime",
};

const char *launch_stage_to_string(LaunchStage stage) {
        return stage >= 0 && stage < _LAUNCH_STAGE_MAX ? stage_names[stage] : NULL;
}

LaunchStage launch_stage_from_string(const char *text) {
        for (LaunchStage s = 0; s < _LAUNCH_STAGE_MAX; s++)
                if (strcmp(stage_names[s], text) == 0)
                        return s;
        return _LAUNCH_STAGE_INVALID;
}

static Launch *launch_free(Launch *launch) {
        if (!launch)
                return NULL;
        if (launch->launcher)
                TAILQ_REMOVE(&launch->launcher->launches, launch, link);
        (void) sd_event_source_disable_unref(launch->socket_source);
        (void) sd_event_source_disable_unref(launch->pidfd_source);
        (void) sd_event_source_disable_unref(launch->deadline);
        (void) user_map_write_free(launch->map_write);
        (void) fd_close(launch->socket);
        (void) fd_close(launch->theirs);
        (void) fd_close(launch->cgroup);
        (void) fd_close(launch->enter);
        (void) fd_close(launch->pidfd);
        if (launch->report)
                (void) munmap(launch->report, LAUNCH_REPORT_SIZE);
        free(launch);
        return NULL;
}
DEFINE_CLEANUP(Launch *, launch_free);

/* Copies the child's report once: the child can still write while it is read. */
static void read_report(const Launch *launch, LaunchReport *ret) {
        memcpy(ret, launch->report, sizeof(*ret));
        ret->detail[sizeof(ret->detail) - 1] = 0;
        if (ret->stage >= _LAUNCH_STAGE_MAX)
                ret->stage = LAUNCH_STAGE_NONE;
}

/* Decides the outcome, once, and makes sure that the child ends. */
static void launch_end(Launch *launch, LaunchOutcome outcome, LaunchStage stage, int error,
                       const char *detail) {
        if (launch->ended)
                return;
        launch->ended = true;
        launch->outcome = outcome;
        launch->stage = stage;
        launch->error = error;
        (void) snprintf(launch->detail, sizeof(launch->detail), "%s", detail);
        launch->deadline = sd_event_source_disable_unref(launch->deadline);
        launch->map_write = user_map_write_free(launch->map_write);
        launch->socket_source = sd_event_source_disable_unref(launch->socket_source);
        if (!launch->replied)
                launcher_end_step(launch->launcher, launch->id);
        if (launch->pidfd >= 0 && !launch->reaped) {
                (void) pidfd_send_signal(launch->pidfd, SIGKILL, NULL, 0);
                (void) sd_event_source_set_enabled(launch->pidfd_source, SD_EVENT_ON);
        }
}

/* Calls `done` and frees, when the outcome is decided and no child is left. */
static void launch_settle(Launch *launch) {
        LaunchResult result;

        if (!launch->ended || !launch->replied || !launch->reaped)
                return;
        result = (LaunchResult) {
                .outcome = launch->outcome,
                .stage = launch->stage,
                .error = launch->error,
                .detail = launch->detail,
                .pidfd = -EBADF,
        };
        launch->handler->done(launch, &result, launch->userdata);
        (void) launch_free(launch);
}

static void launch_succeed(Launch *launch) {
        LaunchResult result = {
                .outcome = LAUNCH_RUNNING,
                .detail = "",
                .pid = launch->pid,
                .pidfd = TAKE_FD(launch->pidfd),
        };

        launch->ended = true;
        launch->pidfd_source = sd_event_source_disable_unref(launch->pidfd_source);
        launch->handler->done(launch, &result, launch->userdata);
        (void) launch_free(launch);
}

static int on_child_exited(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        Launch *launch = userdata;

        if (waitid(P_PIDFD, (id_t) fd, &(siginfo_t) {}, WEXITED | WNOHANG) < 0 && errno != ECHILD)
                return 0;
        launch->reaped = true;
        launch_settle(launch);
        return 0;
}

/* The child has closed its socket: the report tells whether its program runs. */
static void conclude(Launch *launch) {
        LaunchReport report;

        read_report(launch, &report);
        if (report.stage == LAUNCH_STAGE_EXEC && report.error == 0) {
                launch_succeed(launch);
                return;
        }
        /* Without an error it was killed, and its end says no more than that. */
        launch_end(launch, LAUNCH_FAILED, report.stage, report.error ? -report.error : -EOWNERDEAD,
                   report.detail);
        launch_settle(launch);
}

static int on_socket(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        Launch *launch = userdata;
        LaunchChildNews news;
        size_t n_fds = 0;
        int fds[2];
        ssize_t n;

        n = fd_receive(fd, &news, sizeof(news), fds, ELEMENTSOF(fds), &n_fds);
        if (n == -EAGAIN)
                return 0;
        if (n == sizeof(news) && news.news == LAUNCH_NEWS_DEVPTS && n_fds >= 1) {
                launch->handler->devpts(launch, fds[0], n_fds > 1 ? fds[1] : -EBADF, launch->userdata);
                return 0;
        }
        for (size_t i = 0; i < n_fds; i++)
                (void) close(fds[i]);
        if (n > 0 || n == -EMSGSIZE || n == -EMFILE) {
                launch_end(launch, LAUNCH_FAILED, LAUNCH_STAGE_CLONE, n > 0 ? -EPROTO : (int) n,
                           "message of the child");
                return 0;
        }

        /* End of file, or the socket is broken, which is the same: executed, or dying. It can be seen before the reply
         * that tells who it was. */
        launch->closed = true;
        launch->socket_source = sd_event_source_disable_unref(launch->socket_source);
        if (launch->replied)
                conclude(launch);
        return 0;
}

static int on_deadline(sd_event_source *source, uint64_t usec, void *userdata) {
        Launch *launch = userdata;
        LaunchReport report;

        read_report(launch, &report);
        launch_end(launch, LAUNCH_TIMED_OUT, report.stage ? report.stage : LAUNCH_STAGE_CLONE, -ETIMEDOUT,
                   report.detail);
        launch_settle(launch);
        return 0;
}

static void on_map_written(int error, const char *detail, void *userdata) {
        Launch *launch = userdata;
        int r;

        launch->map_write = NULL;
        if (error < 0) {
                launch_end(launch, LAUNCH_FAILED, LAUNCH_STAGE_USER_NAMESPACE, error, detail);
                return;
        }
        r = launch_open_gate(launch, LAUNCH_GATE_MAPS);
        if (r < 0)
                launch_end(launch, LAUNCH_FAILED, LAUNCH_STAGE_USER_NAMESPACE, r, "");
}

/* There will be none: what was to make it may have said why. */
static void no_child(Launch *launch, int error) {
        LaunchReport report;

        read_report(launch, &report);
        if (report.error != 0)
                launch_end(launch, LAUNCH_FAILED, report.stage, -report.error, report.detail);
        else
                launch_end(launch, LAUNCH_FAILED, LAUNCH_STAGE_CLONE, -error, "");
}

void launch_on_step_exited(Launch *launch) {
        const volatile LaunchBirth *birth = (const volatile LaunchBirth *) ((const char *) launch->report +
                                                                            LAUNCH_BIRTH_OFFSET);
        pid_t pid = birth->pid;
        int pidfd;

        if (pid <= 0) {
                launch_on_reply(launch, EPIPE, 0, -EBADF);
                return;
        }
        /* Nobody reaps it but us, so the number is still its own. */
        pidfd = pidfd_open(pid, 0);
        launch_on_reply(launch, pidfd < 0 ? errno : 0, pid, pidfd);
}

void launch_reap(Launch *launch) {
        if (!launch->replied) {
                launch_on_step_exited(launch);
                return;
        }
        if (!launch->reaped)
                (void) waitid(P_PIDFD, (id_t) launch->pidfd, &(siginfo_t) {}, WEXITED);
        launch->reaped = true;
        launch_settle(launch);
}

void launch_on_reply(Launch *launch, int error, pid_t pid, int pidfd) {
        Launcher *launcher = launch->launcher;
        int r;

        /* It is there, but there was no descriptor for it: it ends here. */
        if (error != 0 && pid > 0) {
                (void) kill(pid, SIGKILL);
                (void) waitid(P_PID, (id_t) pid, &(siginfo_t) {}, WEXITED);
        }
        /* It will be waited for, so it must be a child of ours. */
        if (error == 0 && waitid(P_PIDFD, (id_t) pidfd, &(siginfo_t) {}, WEXITED | WNOHANG | WNOWAIT) < 0)
                error = errno;
        launch->replied = true;
        if (error != 0) {
                (void) fd_close(pidfd);
                launch->reaped = true;
                no_child(launch, error);
                launch_settle(launch);
                return;
        }
        launch->pid = pid;
        launch->pidfd = pidfd;
        r = sd_event_add_io(launcher->event, &launch->pidfd_source, pidfd, EPOLLIN, on_child_exited, launch);
        if (r < 0) {
                /* Without a source nobody would reap it: do it here, SIGKILL ends it in no time. */
                (void) pidfd_send_signal(pidfd, SIGKILL, NULL, 0);
                (void) waitid(P_PIDFD, (id_t) pidfd, &(siginfo_t) {}, WEXITED);
                launch->reaped = true;
                launch_end(launch, LAUNCH_FAILED, LAUNCH_STAGE_CLONE, r, "");
                launch_settle(launch);
                return;
        }
        if (launch->ended) {
                (void) pidfd_send_signal(pidfd, SIGKILL, NULL, 0);
                return;
        }
        (void) sd_event_source_set_enabled(launch->pidfd_source, SD_EVENT_OFF);
        if (launch->has_map) {
                r = user_map_write(launcher->event, &launch->map, pid, on_map_written, launch,
                                   &launch->map_write);
                if (r < 0)
                        launch_end(launch, LAUNCH_FAILED, LAUNCH_STAGE_USER_NAMESPACE, r, "newuidmap");
                if (launch->ended)
                        return;
        }
        launch->handler->cloned(launch, pid, pidfd, launch->userdata);
        if (launch->closed && !launch->ended)
                conclude(launch);
}

static int make_report(LaunchReport **ret_report) {
        _cleanup_fd_ int fd = -EBADF;
        void *page;

        fd = memfd_create("berth-report", MFD_CLOEXEC);
        if (fd < 0)
                return -errno;
        if (ftruncate(fd, LAUNCH_REPORT_SIZE) < 0)
                return -errno;
        page = mmap(NULL, LAUNCH_REPORT_SIZE, PROT_READ, MAP_SHARED, fd, 0);
        if (page == MAP_FAILED)
                return -errno;
        *ret_report = page;
        return TAKE_FD(fd);
}

/* Queues the hello with all descriptors on berthd's end: the child finds it when it is born. */
static int send_hello(int socket, const LaunchParameters *p, int plan, int report) {
        int fds[LAUNCH_HELLO_FDS_MAX];
        LaunchHello hello = { .own_stdio = p->own_stdio };

#define PASS(kind, fd)                            \
        if ((fd) >= 0) {                          \
                hello.role[hello.n_fds] = (kind); \
                fds[hello.n_fds++] = (fd);        \
        }
        PASS(LAUNCH_FD_PLAN, plan);
        PASS(LAUNCH_FD_REPORT, report);
        PASS(LAUNCH_FD_STDIN, p->stdio[0]);
        PASS(LAUNCH_FD_STDOUT, p->stdio[1]);
        PASS(LAUNCH_FD_STDERR, p->stdio[2]);
        PASS(LAUNCH_FD_DEVPTS, p->devpts);
        PASS(LAUNCH_FD_TTY, p->tty);
        PASS(LAUNCH_FD_INIT, p->enter);
        for (size_t i = 0; i < p->n_numbered; i++)
                PASS(LAUNCH_FD_NUMBERED + p->numbered[i].number, p->numbered[i].fd);
#undef PASS
        return fd_send(socket, &hello, sizeof(hello), fds, hello.n_fds);
}

int launch_start(Launcher *launcher, const LaunchParameters *p, const LaunchHandler *handler, void *userdata,
                 Launch **ret) {
        _cleanup_fd_ int plan = -EBADF, report = -EBADF;
        _cleanup_(launch_freep) Launch *launch = NULL;
        int pair[2], r;

        launch = calloc(1, sizeof(*launch));
        if (!launch)
                return -ENOMEM;
        launch->socket = launch->theirs = launch->cgroup = launch->enter = launch->pidfd = -EBADF;
        launch->handler = handler;
        launch->userdata = userdata;
        if (p->map) {
                launch->has_map = true;
                launch->map = *p->map;
        }

        r = launcher_ensure(launcher);
        if (r < 0)
                return r;
        plan = fd_sealed_memory("berth-plan", p->plan, p->plan_size);
        if (plan < 0)
                return plan;
        report = make_report(&launch->report);
        if (report < 0)
                return report;
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return -errno;
        launch->socket = pair[0];
        launch->theirs = pair[1];
        if (p->cgroup >= 0) {
                launch->cgroup = fd_dup(p->cgroup);
                if (launch->cgroup < 0)
                        return launch->cgroup;
                launch->request_flags |= LAUNCH_REQUEST_CGROUP;
        }
        if (p->enter >= 0) {
                launch->enter = fd_dup(p->enter);
                if (launch->enter < 0)
                        return launch->enter;
                launch->request_flags |= LAUNCH_REQUEST_ENTER;
                if (((const LaunchPlan *) p->plan)->flags & LAUNCH_PLAN_USER_NAMESPACE)
                        launch->request_flags |= LAUNCH_REQUEST_ENTER_USER;
        }
        r = send_hello(launch->socket, p, plan, report);
        if (r < 0)
                return r;
        r = fd_set_nonblock(launch->socket, 1);
        if (r < 0)
                return r;
        r = sd_event_add_io(launcher->event, &launch->socket_source, launch->socket, EPOLLIN, on_socket,
                            launch);
        if (r < 0)
                return r;
        r = timer_start(launcher->event, p->timeout_usec, on_deadline, launch, &launch->deadline);
        if (r < 0)
                return r;

        launch->id = launcher->next_id++;
        launch->clone_flags = p->enter >= 0 ? 0 : ((const LaunchPlan *) p->plan)->clone_flags;
        launch->launcher = launcher;
        TAILQ_INSERT_TAIL(&launcher->launches, launch, link);
        launcher_flush(launcher);
        *ret = TAKE_PTR(launch);
        return 0;
}

int launch_open_gate(Launch *launch, LaunchGate gate) {
        LaunchGateOpen open = { .gate = gate };
        int r;

        r = fd_send(launch->socket, &open, sizeof(open), NULL, 0);
        /* It is dead: its end tells why. */
        return r == -EPIPE || r == -ECONNRESET ? 0 : r;
}

void launch_cancel(Launch *launch) {
        launch_end(launch, LAUNCH_CANCELLED, LAUNCH_STAGE_NONE, -ECANCELED, "");
}

void launch_fail(Launch *launch, LaunchStage stage, int error, const char *detail) {
        launch_end(launch, LAUNCH_FAILED, stage, error, detail);
}
