/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/process.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>

#include "util/fd.h"

int process_new(Terminal *terminal, Process **ret) {
        Process *process;

        process = calloc(1, sizeof(*process));
        if (!process)
                return -ENOMEM;
        process->pidfd = -EBADF;
        process->terminal = terminal;
        *ret = process;
        return 0;
}

Process *process_free(Process *process) {
        if (!process)
                return NULL;
        if (process->pidfd >= 0 && !process->ended) {
                (void) pidfd_send_signal(process->pidfd, SIGKILL, NULL, 0);
                (void) waitid(P_PIDFD, (id_t) process->pidfd, &(siginfo_t) {}, WEXITED);
        }
        (void) sd_event_source_disable_unref(process->exited);
        (void) terminal_free(process->terminal);
        (void) fd_close(process->pidfd);
        free(process);
        return NULL;
}

static int on_exited(sd_event_source *source, const siginfo_t *si, void *userdata) {
        Process *process = userdata;

        /* sd-event reaps it, by this pid, when we return. */
        process->code = si->si_code;
        process->status = si->si_status;
        process->ended = true;
        process->exited = sd_event_source_disable_unref(process->exited);
        process->pidfd = fd_close(process->pidfd);
        process->pid = 0;
        /* Before anybody hears of the end: the client then reads what is left, and EIO as the end of it. */
        process->terminal = terminal_free(process->terminal);
        process->callback(process, process->userdata);
        return 0;
}

int process_begin(Process *process, sd_event *event, pid_t pid, int pidfd, process_exited_t callback, void *userdata) {
        process->pid = pid;
        process->pidfd = pidfd;
        process->callback = callback;
        process->userdata = userdata;
        return sd_event_add_child_pidfd(event, &process->exited, pidfd, WEXITED, on_exited, process);
}

int process_signal(const Process *process, int signal) {
        if (process->pidfd < 0)
                return -ESRCH;
        return pidfd_send_signal(process->pidfd, signal, NULL, 0) < 0 ? -errno : 0;
}

pid_t process_foreground(const Process *process) {
        _cleanup_free_ char *text = NULL;
        char path[64], *p;
        int group;

        if (process->pid <= 0)
                return 0;
        (void) snprintf(path, sizeof(path), "/proc/%d/stat", process->pid);
        if (fd_read_file(AT_FDCWD, path, 0, 4096, &text, NULL) < 0)
                return 0;
        /* The command may hold anything, so count from its closing parenthesis: state ppid pgrp session tty tpgid. */
        p = strrchr(text, ')');
        if (!p || sscanf(p + 1, " %*c %*d %*d %*d %*d %d", &group) != 1 || group <= 0)
                return 0;
        return group;
}
