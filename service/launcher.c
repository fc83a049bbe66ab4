/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/launcher.h"

#include <assert.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "util/fd.h"
#include "util/log.h"

#define LAUNCHER_PROGRAM_MAX (4U << 20)

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

struct Launch {
        TAILQ_ENTRY(Launch) link;
        Launcher *launcher; /* borrowed: outlives its launches */
        uint32_t id;
        int theirs;         /* owned: the child's end of it, until the request is sent */
        int cgroup;         /* owned likewise */
        uint64_t clone_flags;
        bool replied;       /* berth-launch has answered */
        bool reaped;        /* there is no child, or not any more */
        bool ended;         /* the outcome is decided: the child is being killed, or runs */
        int socket;         /* owned: berthd's end of the child's socket */
        pid_t pid;
        int pidfd;          /* owned */
        LaunchReport *report; /* owned mapping */
        bool has_map;
        UserMap map;
        UserMapWrite *map_write; /* owned while it runs */
        sd_event_source *socket_source, *deadline;
        sd_event_source *pidfd_source; /* off until the end is decided: a program that ran keeps its status */

        LaunchOutcome outcome;
        LaunchStage stage;
        int error;
        char detail[LAUNCH_DETAIL_MAX];

        const LaunchHandler *handler; /* borrowed */
        void *userdata;
};

struct Launcher {
        sd_event *event; /* owned */
        char *path;      /* owned */
        int control;     /* owned: -EBADF while berth-launch does not run */
        int pidfd;       /* owned: berth-launch's */
        sd_event_source *control_source;
        uint32_t next_id;
        TAILQ_HEAD(, Launch) launches;
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

/* ---- berth-launch itself -------------------------------------------------------------------------------------- */

static void launcher_stop(Launcher *launcher) {
        launcher->control_source = sd_event_source_disable_unref(launcher->control_source);
        launcher->control = fd_close(launcher->control);
        if (launcher->pidfd >= 0) {
                /* It ends by itself at the end of file; were it stuck, it holds nothing that a kill could hurt. */
                (void) pidfd_send_signal(launcher->pidfd, SIGKILL, NULL, 0);
                (void) waitid(P_PIDFD, (id_t) launcher->pidfd, &(siginfo_t) {}, WEXITED);
                launcher->pidfd = fd_close(launcher->pidfd);
        }
}

/* A copy of the program that nobody can write to: what a container finds behind /proc/<n>/exe of a launching process
 * is this, not the installed file (CVE-2019-5736). */
static int seal_program(const char *path) {
        _cleanup_free_ char *data = NULL;
        size_t size;
        int r;

        r = fd_read_file(AT_FDCWD, path, 0, LAUNCHER_PROGRAM_MAX, &data, &size);
        if (r < 0)
                return r;
        return fd_sealed_memory("berth-launch", data, size);
}

static int spawn_program(int program, int control, pid_t *ret) {
        char path[32], *const argv[] = { (char *) "berth-launch", NULL }, *const env[] = { NULL };
        posix_spawn_file_actions_t actions;
        posix_spawnattr_t attributes;
        sigset_t all;
        int r;

        r = posix_spawnattr_init(&attributes);
        if (r != 0)
                return -r;
        r = posix_spawn_file_actions_init(&actions);
        if (r != 0) {
                (void) posix_spawnattr_destroy(&attributes);
                return -r;
        }
        (void) sigfillset(&all);
        (void) posix_spawnattr_setsigdefault(&attributes, &all);
        (void) posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);
        (void) snprintf(path, sizeof(path), "/proc/self/fd/%d", program);
        /* Duplicating a descriptor onto itself clears CLOEXEC here, as posix_spawn promises. */
        r = posix_spawn_file_actions_adddup2(&actions, control, LAUNCH_CONTROL_FD);
        if (r == 0)
                r = posix_spawn(ret, path, &actions, &attributes, argv, env);
        (void) posix_spawn_file_actions_destroy(&actions);
        (void) posix_spawnattr_destroy(&attributes);
        return -r;
}

static int on_control(sd_event_source *source, int fd, uint32_t revents, void *userdata);

static int launcher_ensure(Launcher *launcher) {
        _cleanup_fd_ int program = -EBADF, ours = -EBADF, theirs = -EBADF, pidfd = -EBADF;
        int pair[2], r;
        pid_t pid;

        if (launcher->control >= 0)
                return 0;
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return -errno;
        ours = pair[0];
        theirs = pair[1];
        program = seal_program(launcher->path);
        if (program < 0)
                return program;
        /* The program's descriptor must not be the one that the control socket will be duplicated to. */
        if (program <= LAUNCH_CONTROL_FD) {
                int moved;

                moved = fcntl(program, F_DUPFD_CLOEXEC, LAUNCH_CONTROL_FD + 1);
                if (moved < 0)
                        return -errno;
                (void) fd_close(program);
                program = moved;
        }
        r = fd_set_nonblock(ours, 1);
        if (r < 0)
                return r;
        r = spawn_program(program, theirs, &pid);
        if (r < 0)
                return r;
        pidfd = pidfd_open(pid, 0);
        if (pidfd < 0) {
                r = -errno;
                (void) kill(pid, SIGKILL);
                (void) waitid(P_PID, (id_t) pid, NULL, WEXITED);
                return r;
        }
        launcher->control = TAKE_FD(ours);
        launcher->pidfd = TAKE_FD(pidfd);
        r = sd_event_add_io(launcher->event, &launcher->control_source, launcher->control, EPOLLIN, on_control, launcher);
        if (r < 0) {
                launcher_stop(launcher);
                return r;
        }
        /* Replies come before whatever the children themselves say. */
        (void) sd_event_source_set_priority(launcher->control_source, SD_EVENT_PRIORITY_IMPORTANT);
        return 0;
}

int launcher_new(sd_event *event, const char *path, Launcher **ret) {
        Launcher *launcher;

        launcher = calloc(1, sizeof(*launcher));
        if (!launcher)
                return -ENOMEM;
        launcher->event = sd_event_ref(event);
        launcher->control = launcher->pidfd = -EBADF;
        TAILQ_INIT(&launcher->launches);
        launcher->path = strdup(path);
        if (!launcher->path) {
                (void) launcher_free(launcher);
                return -ENOMEM;
        }
        *ret = launcher;
        return 0;
}

Launcher *launcher_free(Launcher *launcher) {
        if (!launcher)
                return NULL;
        assert(TAILQ_EMPTY(&launcher->launches));
        launcher_stop(launcher);
        (void) sd_event_unref(launcher->event);
        free(launcher->path);
        free(launcher);
        return NULL;
}

/* ---- one launch ----------------------------------------------------------------------------------------------- */

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
        (void) fd_close(launch->pidfd);
        if (launch->report)
                (void) munmap(launch->report, sizeof(LaunchReport));
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
static void launch_end(Launch *launch, LaunchOutcome outcome, LaunchStage stage, int error, const char *detail) {
        if (launch->ended)
                return;
        launch->ended = true;
        launch->outcome = outcome;
        launch->stage = stage;
        launch->error = error;
        (void) snprintf(launch->detail, sizeof(launch->detail), "%s", detail);
        launch->socket_source = sd_event_source_disable_unref(launch->socket_source);
        launch->deadline = sd_event_source_disable_unref(launch->deadline);
        launch->map_write = user_map_write_free(launch->map_write);
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

static int on_socket(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        Launch *launch = userdata;
        LaunchChildNews news;
        LaunchReport report;
        size_t n_fds = 0;
        int fds[2];
        ssize_t n;

        n = fd_receive(fd, &news, sizeof(news), fds, ELEMENTSOF(fds), &n_fds);
        if (n == -EAGAIN)
                return 0;
        if (n == sizeof(news) && news.news == LAUNCH_NEWS_DEVPTS && n_fds == 2) {
                launch->handler->terminal(launch, fds[0], fds[1], launch->userdata);
                return 0;
        }
        for (size_t i = 0; i < n_fds; i++)
                (void) close(fds[i]);
        if (n > 0) {
                launch_end(launch, LAUNCH_FAILED, LAUNCH_STAGE_CLONE, -EPROTO, "message of the child");
                return 0;
        }

        /* End of file, or the socket is broken, which is the same: executed, or dying. */
        read_report(launch, &report);
        if (report.stage == LAUNCH_STAGE_EXEC && report.error == 0) {
                launch_succeed(launch);
                return 0;
        }
        if (report.error != 0)
                launch_end(launch, LAUNCH_FAILED, report.stage, -report.error, report.detail);
        else
                /* Killed: its end says no more than that. */
                launch_end(launch, LAUNCH_FAILED, report.stage, -EOWNERDEAD, report.detail);
        launch_settle(launch);
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

/* berth-launch has made the child, or could not. Takes pidfd. */
static void launch_on_reply(Launch *launch, int error, pid_t pid, int pidfd) {
        Launcher *launcher = launch->launcher;
        int r;

        launch->replied = true;
        if (error != 0) {
                (void) fd_close(pidfd);
                launch->reaped = true;
                launch_end(launch, LAUNCH_FAILED, LAUNCH_STAGE_CLONE, -error, "");
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
                r = user_map_write(launcher->event, &launch->map, pid, on_map_written, launch, &launch->map_write);
                if (r < 0)
                        launch_end(launch, LAUNCH_FAILED, LAUNCH_STAGE_USER_NAMESPACE, r, "newuidmap");
                if (launch->ended)
                        return;
        }
        launch->handler->cloned(launch, pid, pidfd, launch->userdata);
}

/* berth-launch is gone: whatever it had not answered has failed, and the next launch starts it again. */
static void launcher_lost(Launcher *launcher) {
        Launch *launch, *next;

        log_message(LOG_WARNING, "berth-launch ended unexpectedly, it is started again when needed");
        launcher_stop(launcher);
        for (launch = TAILQ_FIRST(&launcher->launches); launch; launch = next) {
                next = TAILQ_NEXT(launch, link);
                if (!launch->replied)
                        launch_on_reply(launch, EPIPE, 0, -EBADF);
        }
}

/* Sends the requests that wait, in their order, as far as the socket takes them. */
static void launcher_flush(Launcher *launcher) {
        bool full = false;
        Launch *launch;

        TAILQ_FOREACH(launch, &launcher->launches, link) {
                LaunchRequest request = { .clone_flags = launch->clone_flags, .id = launch->id };
                int r;

                if (launch->theirs < 0)
                        continue;
                r = fd_send(launcher->control, &request, sizeof(request),
                            (const int[]) { launch->theirs, launch->cgroup }, launch->cgroup >= 0 ? 2 : 1);
                if (r == -EAGAIN || r == -ETOOMANYREFS) {
                        full = true;
                        break;
                }
                /* Any other error is berth-launch's end, which the end of file tells of. */
                launch->theirs = fd_close(launch->theirs);
                launch->cgroup = fd_close(launch->cgroup);
        }
        if (launcher->control_source)
                (void) sd_event_source_set_io_events(launcher->control_source, EPOLLIN | (full ? EPOLLOUT : 0));
}

static int on_control(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        Launcher *launcher = userdata;
        LaunchReply reply;
        Launch *launch;
        size_t n_fds = 0;
        int pidfd = -EBADF;
        ssize_t n;

        if (revents & EPOLLOUT)
                launcher_flush(launcher);
        n = fd_receive(fd, &reply, sizeof(reply), &pidfd, 1, &n_fds);
        if (n == -EAGAIN)
                return 0;
        if (n != sizeof(reply) || (reply.error == 0 && n_fds != 1)) {
                if (n > 0 && n_fds > 0)
                        (void) close(pidfd);
                launcher_lost(launcher);
                return 0;
        }
        if (n_fds == 0)
                pidfd = -EBADF;
        TAILQ_FOREACH(launch, &launcher->launches, link)
                if (launch->id == reply.id && !launch->replied) {
                        launch_on_reply(launch, reply.error, reply.pid, pidfd);
                        return 0;
                }
        (void) fd_close(pidfd);
        return 0;
}

static int make_report(LaunchReport **ret_report) {
        _cleanup_fd_ int fd = -EBADF;
        void *page;

        fd = memfd_create("berth-report", MFD_CLOEXEC);
        if (fd < 0)
                return -errno;
        if (ftruncate(fd, sizeof(LaunchReport)) < 0)
                return -errno;
        page = mmap(NULL, sizeof(LaunchReport), PROT_READ, MAP_SHARED, fd, 0);
        if (page == MAP_FAILED)
                return -errno;
        *ret_report = page;
        return TAKE_FD(fd);
}

/* Queues the hello with all descriptors on berthd's end: the child finds it when it is born. */
static int send_hello(int socket, const LaunchParameters *p, int plan, int report) {
        int fds[_LAUNCH_FD_MAX];
        LaunchHello hello = {};

#define PASS(kind, fd)                                  \
        if ((fd) >= 0) {                                \
                hello.role[hello.n_fds] = (kind);       \
                fds[hello.n_fds++] = (fd);              \
        }
        PASS(LAUNCH_FD_PLAN, plan);
        PASS(LAUNCH_FD_REPORT, report);
        PASS(LAUNCH_FD_STDIN, p->stdio[0]);
        PASS(LAUNCH_FD_STDOUT, p->stdio[1]);
        PASS(LAUNCH_FD_STDERR, p->stdio[2]);
        PASS(LAUNCH_FD_DEVPTS, p->devpts);
        PASS(LAUNCH_FD_TTY, p->tty);
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
        launch->socket = launch->theirs = launch->cgroup = launch->pidfd = -EBADF;
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
        }
        r = send_hello(launch->socket, p, plan, report);
        if (r < 0)
                return r;
        r = fd_set_nonblock(launch->socket, 1);
        if (r < 0)
                return r;
        r = sd_event_add_io(launcher->event, &launch->socket_source, launch->socket, EPOLLIN, on_socket, launch);
        if (r < 0)
                return r;
        if (p->timeout_usec != UINT64_MAX) {
                r = sd_event_add_time_relative(launcher->event, &launch->deadline, CLOCK_MONOTONIC, p->timeout_usec, 0,
                                               on_deadline, launch);
                if (r < 0)
                        return r;
        }

        launch->id = launcher->next_id++;
        launch->clone_flags = ((const LaunchPlan *) p->plan)->clone_flags;
        launch->launcher = launcher;
        TAILQ_INSERT_TAIL(&launcher->launches, launch, link);
        launcher_flush(launcher);
        *ret = TAKE_PTR(launch);
        return 0;
}

int launch_open_gate(Launch *launch, LaunchGate gate) {
        LaunchGateOpen open = { .gate = gate };

        return fd_send(launch->socket, &open, sizeof(open), NULL, 0);
}

void launch_cancel(Launch *launch) {
        launch_end(launch, LAUNCH_CANCELLED, LAUNCH_STAGE_NONE, -ECANCELED, "");
}

void launch_fail(Launch *launch, LaunchStage stage, int error, const char *detail) {
        launch_end(launch, LAUNCH_FAILED, stage, error, detail);
}
