/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* berth-launch itself, and the requests to it. */
#include "service/launcher-internal.h"

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

/* A process that goes between, for a child in a running container: it ends by itself, and is ours to reap. */
typedef struct Step {
        TAILQ_ENTRY(Step) link;
        Launcher *launcher;
        uint32_t id; /* of its launch, which may be over before this is */
        int pidfd;   /* owned */
        sd_event_source *source;
} Step;

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

int launcher_ensure(Launcher *launcher) {
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
        if (pidfd < 0 || prlimit(pid, RLIMIT_NOFILE, &launcher->files, NULL) < 0) {
                r = -errno;
                (void) kill(pid, SIGKILL);
                (void) waitid(P_PID, (id_t) pid, NULL, WEXITED);
                return r;
        }
        launcher->control = TAKE_FD(ours);
        launcher->pidfd = TAKE_FD(pidfd);
        r = sd_event_add_io(launcher->event, &launcher->control_source, launcher->control, EPOLLIN,
                            on_control, launcher);
        if (r < 0) {
                launcher_stop(launcher);
                return r;
        }
        /* Replies come before whatever the children themselves say. */
        (void) sd_event_source_set_priority(launcher->control_source, SD_EVENT_PRIORITY_IMPORTANT);
        return 0;
}

/* Waits for it, if that has not been done: it has nothing to wait for itself. */
static void step_free(Step *step) {
        TAILQ_REMOVE(&step->launcher->steps, step, link);
        (void) sd_event_source_disable_unref(step->source);
        if (step->pidfd >= 0)
                (void) waitid(P_PIDFD, (id_t) step->pidfd, &(siginfo_t) {}, WEXITED);
        (void) fd_close(step->pidfd);
        free(step);
}

int launcher_new(sd_event *event, const char *path, Launcher **ret) {
        Launcher *launcher;

        launcher = calloc(1, sizeof(*launcher));
        if (!launcher)
                return -ENOMEM;
        launcher->event = sd_event_ref(event);
        launcher->control = launcher->pidfd = -EBADF;
        if (getrlimit(RLIMIT_NOFILE, &launcher->files) < 0) {
                int r = -errno;

                (void) launcher_free(launcher);
                return r;
        }
        TAILQ_INIT(&launcher->launches);
        TAILQ_INIT(&launcher->steps);
        launcher->path = strdup(path);
        if (!launcher->path) {
                (void) launcher_free(launcher);
                return -ENOMEM;
        }
        *ret = launcher;
        return 0;
}

Launcher *launcher_free(Launcher *launcher) {
        Launch *launch;

        if (!launcher)
                return NULL;
        /* An Exec whose container has gone can still be on its way out. */
        TAILQ_FOREACH(launch, &launcher->launches, link)
        launch_cancel(launch);
        launcher_stop(launcher);
        while (!TAILQ_EMPTY(&launcher->steps))
                step_free(TAILQ_FIRST(&launcher->steps));
        while ((launch = TAILQ_FIRST(&launcher->launches)))
                launch_reap(launch);
        (void) sd_event_unref(launcher->event);
        free(launcher->path);
        free(launcher);
        return NULL;
}

static Launch *find_unanswered(Launcher *launcher, uint32_t id) {
        Launch *launch;

        TAILQ_FOREACH(launch, &launcher->launches, link)
        if (launch->id == id && !launch->replied)
                return launch;
        return NULL;
}

static int on_step_exited(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        Step *step = userdata;
        Launcher *launcher = step->launcher;
        Launch *launch;
        uint32_t id = step->id;

        step_free(step);
        launch = find_unanswered(launcher, id);
        if (launch)
                launch_on_step_exited(launch);
        return 0;
}

void launcher_end_step(Launcher *launcher, uint32_t id) {
        Step *step;

        TAILQ_FOREACH(step, &launcher->steps, link)
        if (step->id == id)
                (void) pidfd_send_signal(step->pidfd, SIGKILL, NULL, 0);
}

/* Takes the pidfd. */
static void step_add(Launcher *launcher, uint32_t id, int pidfd) {
        Launch *launch = find_unanswered(launcher, id);
        Step *step;

        if (launch)
                launch->stepped = true;
        if (launch && launch->ended)
                (void) pidfd_send_signal(pidfd, SIGKILL, NULL, 0);

        step = calloc(1, sizeof(*step));
        if (step) {
                step->launcher = launcher;
                step->id = id;
                step->pidfd = pidfd;
                TAILQ_INSERT_TAIL(&launcher->steps, step, link);
                if (sd_event_add_io(launcher->event, &step->source, pidfd, EPOLLIN, on_step_exited, step) >=
                    0)
                        return;
                step_free(step);
        } else {
                (void) waitid(P_PIDFD, (id_t) pidfd, &(siginfo_t) {}, WEXITED);
                (void) fd_close(pidfd);
        }
        if (launch)
                launch_on_step_exited(launch);
}

/* There was no room for the descriptor of a process that has been made. It is ours to reap, so its number is its own. */
static void refuse_child(Launcher *launcher, const LaunchReply *reply) {
        Launch *launch = find_unanswered(launcher, reply->id);

        log_message(LOG_ERR, "No descriptors are left for a new process");
        if (reply->kind == LAUNCH_REPLY_STEP) {
                (void) kill(reply->pid, SIGKILL);
                (void) waitid(P_PID, (id_t) reply->pid, &(siginfo_t) {}, WEXITED);
                if (launch)
                        launch_on_step_exited(launch);
        } else if (launch)
                launch_on_reply(launch, EMFILE, reply->pid, -EBADF);
}

/* berth-launch is gone: whatever it had not answered has failed, and the next launch starts it again. */
static void launcher_lost(Launcher *launcher) {
        Launch *launch, *next;

        log_message(LOG_WARNING, "berth-launch ended unexpectedly, it is started again when needed");
        launcher_stop(launcher);
        for (launch = TAILQ_FIRST(&launcher->launches); launch; launch = next) {
                next = TAILQ_NEXT(launch, link);
                if (!launch->replied && !launch->stepped)
                        launch_on_reply(launch, EPIPE, 0, -EBADF);
        }
}

void launcher_flush(Launcher *launcher) {
        bool full = false;
        Launch *launch;

        TAILQ_FOREACH(launch, &launcher->launches, link) {
                LaunchRequest request = {
                        .clone_flags = launch->clone_flags,
                        .id = launch->id,
                        .flags = launch->request_flags,
                };
                int fds[3], r;
                size_t n = 0;

                if (launch->theirs < 0)
                        continue;
                fds[n++] = launch->theirs;
                if (launch->cgroup >= 0)
                        fds[n++] = launch->cgroup;
                if (launch->enter >= 0)
                        fds[n++] = launch->enter;
                r = fd_send(launcher->control, &request, sizeof(request), fds, n);
                /* An end of berth-launch is what the end of file tells of; all else is a lack of room. */
                if (r < 0 && r != -EPIPE && r != -ECONNRESET) {
                        full = true;
                        break;
                }
                launch->theirs = fd_close(launch->theirs);
                launch->cgroup = fd_close(launch->cgroup);
                launch->enter = fd_close(launch->enter);
        }
        if (launcher->control_source)
                (void) sd_event_source_set_io_events(launcher->control_source,
                                                     EPOLLIN | (full ? EPOLLOUT : 0));
}

static int on_control(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        Launcher *launcher = userdata;
        LaunchReply reply = {};
        Launch *launch;
        size_t n_fds = 0;
        int pidfd = -EBADF;
        ssize_t n;

        if (revents & EPOLLOUT)
                launcher_flush(launcher);
        n = fd_receive(fd, &reply, sizeof(reply), &pidfd, 1, &n_fds);
        if (n == -EAGAIN)
                return 0;
        if (n == -EMFILE && reply.pid > 0) {
                refuse_child(launcher, &reply);
                return 0;
        }
        if (n != sizeof(reply) || (reply.error == 0 && n_fds != 1)) {
                if (n > 0 && n_fds > 0)
                        (void) close(pidfd);
                launcher_lost(launcher);
                return 0;
        }
        if (n_fds == 0)
                pidfd = -EBADF;
        if (reply.kind == LAUNCH_REPLY_STEP) {
                step_add(launcher, reply.id, pidfd);
                return 0;
        }
        launch = find_unanswered(launcher, reply.id);
        if (launch)
                launch_on_reply(launch, reply.error, reply.pid, pidfd);
        else
                (void) fd_close(pidfd);
        return 0;
}
