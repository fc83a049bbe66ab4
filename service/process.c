/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/process.h"

#include <assert.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <time.h>

#include "interfaces/names.h"
#include "service/process-internal.h"
#include "util/fd.h"

/* PF_EXITING of the kernel, part of the flags that proc(5) shows. */
#define KERNEL_PF_EXITING 0x4U

static const char *const state_names[_PROCESS_STATE_MAX] = {
        [PROCESS_IDLE] = "created",
        [PROCESS_STARTING] = "starting",
        [PROCESS_RUNNING] = "running",
        [PROCESS_EXITED] = "exited",
};

static const char *const result_names[_PROCESS_RESULT_MAX] = {
        [PROCESS_RESULT_NONE] = "",    [PROCESS_SUCCESS] = "success",     [PROCESS_EXIT_CODE] = "exit-code",
        [PROCESS_SIGNAL] = "signal",   [PROCESS_CORE_DUMP] = "core-dump", [PROCESS_OOM_KILL] = "oom-kill",
        [PROCESS_TIMEOUT] = "timeout", [PROCESS_LOST] = "lost",
};

const char *process_state_to_string(ProcessState state) {
        return state >= 0 && state < _PROCESS_STATE_MAX ? state_names[state] : NULL;
}

ProcessState process_state_from_string(const char *text) {
        for (ProcessState s = 0; s < _PROCESS_STATE_MAX; s++)
                if (strcmp(state_names[s], text) == 0)
                        return s;
        return _PROCESS_STATE_INVALID;
}

const char *process_result_to_string(ProcessResult result) {
        return result >= 0 && result < _PROCESS_RESULT_MAX ? result_names[result] : NULL;
}

ProcessResult process_result_from_string(const char *text) {
        for (ProcessResult s = 0; s < _PROCESS_RESULT_MAX; s++)
                if (strcmp(result_names[s], text) == 0)
                        return s;
        return _PROCESS_RESULT_INVALID;
}

uint64_t process_now(void) {
        struct timespec ts;

        (void) clock_gettime(CLOCK_REALTIME, &ts);
        return (uint64_t) ts.tv_sec * 1000000U + (uint64_t) ts.tv_nsec / 1000U;
}

int process_new(sd_event *event, const char *name, const ProcessHandler *handler, void *owner,
                Process **ret) {
        Process *process;

        process = calloc(1, sizeof(*process));
        if (!process)
                return -ENOMEM;
        process->n_ref = 1;
        process->event = sd_event_ref(event);
        process->handler = handler;
        process->owner = owner;
        process->pidfd = -EBADF;
        for (unsigned i = 0; i < ELEMENTSOF(process->stdio); i++)
                process->stdio[i] = -EBADF;
        process->options = (StartOptions) START_OPTIONS_INIT;
        TAILQ_INIT(&process->pending);
        process->name = strdup(name);
        if (!process->name) {
                (void) process_unref(process);
                return -ENOMEM;
        }
        *ret = process;
        return 0;
}

Process *process_ref(Process *process) {
        if (process)
                process->n_ref++;
        return process;
}

Process *process_unref(Process *process) {
        if (!process)
                return NULL;
        assert(process->n_ref > 0);
        if (--process->n_ref > 0)
                return NULL;
        assert(!process->launch);
        assert(TAILQ_EMPTY(&process->pending));
        process_kill(process);
        (void) terminal_free(process->terminal);
        (void) client_unref(process->starter);
        options_done(&process->options);
        process_close_streams(process);
        sd_bus_error_free(&process->failure);
        (void) sd_event_unref(process->event);
        free(process->name);
        free(process);
        return NULL;
}

/* ---- calls that wait ------------------------------------------------------------------------------------------ */

int process_expect(Process *process, ProcessPendingKind kind, Client *client, process_done_t done,
                   void *userdata) {
        ProcessPending *pending;

        pending = calloc(1, sizeof(*pending));
        if (!pending)
                return -ENOMEM;
        pending->kind = kind;
        pending->client = client_ref(client);
        pending->done = done;
        pending->userdata = userdata;
        TAILQ_INSERT_TAIL(&process->pending, pending, link);
        return 0;
}

static void drop(Process *process, ProcessPending *pending) {
        TAILQ_REMOVE(&process->pending, pending, link);
        (void) client_unref(pending->client);
        free(pending);
}

static void answer(Process *process, ProcessPending *pending, const sd_bus_error *error) {
        process_done_t done = pending->done;
        void *userdata = pending->userdata;

        drop(process, pending);
        done(process, error, userdata);
}

/* The first of a kind, of one client or (NULL) of any. */
static ProcessPending *find(const Process *process, ProcessPendingKind kind, const Client *client) {
        ProcessPending *pending;

        TAILQ_FOREACH(pending, &process->pending, link)
        if (pending->kind == kind && (!client || pending->client == client))
                return pending;
        return NULL;
}

void process_answer(Process *process, ProcessPendingKind kind, const sd_bus_error *error) {
        _cleanup_(process_unrefp) Process *self = process_ref(process);
        ProcessPending *pending;

        /* From the start each time: an answer can change the list. None of them adds a call of its own kind. */
        while ((pending = find(self, kind, NULL)))
                answer(self, pending, error);
}

bool process_awaited(const Process *process) {
        return find(process, PROCESS_PENDING_WAIT, NULL);
}

void process_forget_start(Process *process) {
        ProcessPending *pending;

        while ((pending = find(process, PROCESS_PENDING_START, NULL)))
                drop(process, pending);
        process_end_run(process);
        process->state = PROCESS_IDLE;
}

int process_wait(Process *process, Client *client, process_done_t done, void *userdata) {
        if (process->state != PROCESS_EXITED)
                return process_expect(process, PROCESS_PENDING_WAIT, client, done, userdata);
        done(process, NULL, userdata);
        return 0;
}

bool process_client_gone(Process *process, Client *client) {
        _cleanup_bus_error_ sd_bus_error gone = SD_BUS_ERROR_NULL;
        ProcessPending *pending;

        (void) sd_bus_error_set(&gone, BERTH_ERROR_CANCELLED, "the client has gone");
        while ((pending = find(process, PROCESS_PENDING_WAIT, client)))
                answer(process, pending, &gone);
        if (find(process, PROCESS_PENDING_START, client))
                process_cancel_start(process);
        return process->starter == client && process->on_disconnect == ON_DISCONNECT_KILL &&
               !process->terminal && process->state == PROCESS_RUNNING;
}

/* ---- running -------------------------------------------------------------------------------------------------- */

void process_kill(Process *process) {
        process->exit_source = sd_event_source_disable_unref(process->exit_source);
        if (process->pidfd >= 0) {
                (void) pidfd_send_signal(process->pidfd, SIGKILL, NULL, 0);
                (void) waitid(P_PIDFD, (id_t) process->pidfd, &(siginfo_t) {}, WEXITED);
                process->pidfd = fd_close(process->pidfd);
        }
        process->pid = 0;
}

void process_end_run(Process *process) {
        process->terminal = terminal_free(process->terminal);
        process->starter = client_unref(process->starter);
        options_done(&process->options);
        process_close_streams(process);
        process->pid = 0;
}

static ProcessResult result_of(Process *process) {
        bool killed = process->exit_code == CLD_KILLED && process->exit_status == SIGKILL,
             oom_killed = killed && process->handler->oom_killed && process->handler->oom_killed(process);

        if (process->exit_code == 0)
                return PROCESS_LOST;
        if (process->timed_out)
                return PROCESS_TIMEOUT;
        if (process->kill_sent && killed)
                return PROCESS_TIMEOUT;
        if (oom_killed)
                return PROCESS_OOM_KILL;
        switch (process->exit_code) {
        case CLD_EXITED:
                return process->exit_status == 0 ? PROCESS_SUCCESS : PROCESS_EXIT_CODE;
        case CLD_DUMPED:
                return PROCESS_CORE_DUMP;
        default:
                return PROCESS_SIGNAL;
        }
}

static int on_exited(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        _cleanup_(process_unrefp) Process *process = process_ref(userdata);
        siginfo_t si = {};

        /* Not sd-event's own source for children: that reaps only after everybody has been told, by number. */
        if (waitid(P_PIDFD, (id_t) fd, &si, WEXITED | WNOHANG | WNOWAIT) >= 0 && si.si_pid == 0)
                return 0;
        process->exit_code = si.si_code;
        process->exit_status = si.si_status;
        /* While it is unreaped its control group is there. */
        process->result = result_of(process);
        (void) waitid(P_PIDFD, (id_t) fd, &si, WEXITED | WNOHANG);
        process->exited_usec = process_now();
        process->exit_source = sd_event_source_disable_unref(process->exit_source);
        process->pidfd = fd_close(process->pidfd);
        /* The terminal before anybody hears of the end: the client then reads what is left, and EIO as its end. */
        process_end_run(process);
        process->state = PROCESS_EXITED;
        process->handler->exited(process);
        return 0;
}

static void on_hung_up(Terminal *terminal, void *userdata) {
        Process *process = userdata;

        /* The kernel has told the program already; a PID 1 with default actions does not hear that. */
        if (process->on_disconnect == ON_DISCONNECT_KILL)
                process->handler->hung_up(process);
}

int process_watch(Process *process, pid_t pid, int pidfd) {
        int r;

        process->pid = pid;
        process->pidfd = pidfd;
        r = sd_event_add_io(process->event, &process->exit_source, pidfd, EPOLLIN, on_exited, process);
        if (r >= 0 && process->terminal)
                r = terminal_watch(process->terminal, process->event, on_hung_up, process);
        return r;
}

int process_signal(const Process *process, int signal) {
        if (process->pidfd < 0)
                return -ESRCH;
        return pidfd_send_signal(process->pidfd, signal, NULL, 0) < 0 ? -errno : 0;
}

int process_resize(Process *process, uint16_t rows, uint16_t columns) {
        TerminalSize size = { .rows = rows, .columns = columns };

        if (process->state != PROCESS_RUNNING)
                process->wanted_size = size;
        /* The later word counts. */
        if (process->state == PROCESS_STARTING)
                process->options.rows = process->options.columns = 0;
        return process->terminal ? terminal_resize(process->terminal, size) : 0;
}

TerminalSize process_size(const Process *process) {
        TerminalSize size;

        if (process->terminal && terminal_get_size(process->terminal, &size) >= 0)
                return size;
        return process->wanted_size;
}

int process_take_master(Process *process) {
        return process->terminal ? terminal_take_master(process->terminal) : -EBADF;
}

int process_take_stream(Process *process, unsigned stream) {
        return TAKE_FD(process->stdio[stream]);
}

void process_close_streams(Process *process) {
        for (unsigned i = 0; i < ELEMENTSOF(process->stdio); i++)
                process->stdio[i] = fd_close(process->stdio[i]);
}

/* The numbers of /proc/<pid>/stat behind the command, which may hold anything: so counted from its closing parenthesis. */
static int read_stat(const Process *process, char **ret_text, const char **ret_numbers) {
        _cleanup_free_ char *text = NULL;
        char path[64], *p;
        int r;

        (void) snprintf(path, sizeof(path), "/proc/%d/stat", process->pid);
        r = fd_read_file(AT_FDCWD, path, 0, 4096, &text, NULL);
        if (r < 0)
                return r;
        p = strrchr(text, ')');
        if (!p)
                return -EBADMSG;
        *ret_numbers = p + 1;
        *ret_text = TAKE_PTR(text);
        return 0;
}

pid_t process_foreground(const Process *process) {
        _cleanup_free_ char *text = NULL;
        const char *numbers;
        int group;

        if (process->state != PROCESS_RUNNING || !process->terminal ||
            read_stat(process, &text, &numbers) < 0)
                return 0;
        /* state ppid pgrp session tty tpgid */
        return sscanf(numbers, " %*c %*d %*d %*d %*d %d", &group) == 1 && group > 0 ? group : 0;
}

bool process_is_ending(const Process *process) {
        _cleanup_free_ char *text = NULL;
        const char *numbers;
        unsigned flags;

        if (process->pid <= 0 || read_stat(process, &text, &numbers) < 0)
                return true;
        /* state ppid pgrp session tty tpgid flags */
        return sscanf(numbers, " %*c %*d %*d %*d %*d %*d %u", &flags) != 1 || flags & KERNEL_PF_EXITING;
}

int process_signal_group(const Process *process, int signal) {
        /* The leader is not reaped, so its number is still its group's. */
        if (process->pidfd < 0)
                return -ESRCH;
        return kill(-process->pid, signal) < 0 ? -errno : 0;
}
