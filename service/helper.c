/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/helper.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/wait.h>

#include "util/timer.h"

struct Helper {
        int pidfd; /* owned */
        sd_event_source *exited, *deadline;
        helper_exited_t callback;
        void *userdata;
        int timed_out;
};

Helper *helper_free(Helper *helper) {
        if (!helper)
                return NULL;
        if (helper->pidfd >= 0) {
                siginfo_t si;

                /* Still running: SIGKILL can't be refused, so this wait is short. */
                (void) pidfd_send_signal(helper->pidfd, SIGKILL, NULL, 0);
                (void) waitid(P_PIDFD, (id_t) helper->pidfd, &si, WEXITED);
        }
        (void) sd_event_source_disable_unref(helper->exited);
        (void) sd_event_source_disable_unref(helper->deadline);
        (void) fd_close(helper->pidfd);
        free(helper);
        return NULL;
}

static int on_exited(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        Helper *helper = userdata;
        siginfo_t si = {};

        if (waitid(P_PIDFD, (id_t) fd, &si, WEXITED | WNOHANG) >= 0 && si.si_pid == 0)
                return 0;
        helper->exited = sd_event_source_disable_unref(helper->exited);
        helper->pidfd = fd_close(helper->pidfd);
        if (helper->timed_out) {
                si.si_code = 0;
                si.si_status = -ETIMEDOUT;
        }
        helper->callback(helper, si.si_code, si.si_status, helper->userdata);
        (void) helper_free(helper);
        return 0;
}

static int on_deadline(sd_event_source *source, uint64_t usec, void *userdata) {
        Helper *helper = userdata;

        helper->timed_out = 1;
        (void) pidfd_send_signal(helper->pidfd, SIGKILL, NULL, 0);
        return 0;
}

static int spawn(char *const argv[], pid_t *ret) {
        posix_spawn_file_actions_t actions;
        posix_spawnattr_t attributes;
        sigset_t none, all;
        int r;

        r = posix_spawnattr_init(&attributes);
        if (r != 0)
                return -r;
        r = posix_spawn_file_actions_init(&actions);
        if (r != 0) {
                (void) posix_spawnattr_destroy(&attributes);
                return -r;
        }
        (void) sigemptyset(&none);
        (void) sigfillset(&all);
        (void) posix_spawnattr_setsigmask(&attributes, &none);
        (void) posix_spawnattr_setsigdefault(&attributes, &all);
        (void) posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
        r = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
        if (r == 0)
                r = posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
        if (r == 0)
                r = posix_spawnp(ret, argv[0], &actions, &attributes, argv, environ);
        (void) posix_spawn_file_actions_destroy(&actions);
        (void) posix_spawnattr_destroy(&attributes);
        return -r;
}

int helper_start(sd_event *event, char *const argv[], uint64_t timeout_usec, helper_exited_t callback,
                 void *userdata, Helper **ret) {
        _cleanup_(helper_freep) Helper *helper = NULL;
        pid_t pid;
        int r;

        helper = calloc(1, sizeof(*helper));
        if (!helper)
                return -ENOMEM;
        helper->pidfd = -EBADF;
        helper->callback = callback;
        helper->userdata = userdata;

        r = spawn(argv, &pid);
        if (r < 0)
                return r;
        helper->pidfd = pidfd_open(pid, 0);
        if (helper->pidfd < 0) {
                r = -errno;
                (void) kill(pid, SIGKILL);
                (void) waitid(P_PID, (id_t) pid, NULL, WEXITED);
                return r;
        }
        r = sd_event_add_io(event, &helper->exited, helper->pidfd, EPOLLIN, on_exited, helper);
        if (r < 0)
                return r;
        r = timer_start(event, timeout_usec, on_deadline, helper, &helper->deadline);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(helper);
        return 0;
}
