/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The way of a process from idle to running, and every way in which it can fail. */
#include <assert.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "interfaces/names.h"
#include "service/journal.h"
#include "service/process-internal.h"
#include "service/process.h"
#include "service/streams.h"
#include "util/fd.h"

int process_set_failure(Process *process, LaunchStage stage, int error, const char *detail,
                        sd_bus_error *ret) {
        const char *space = *detail ? " " : "", *name = BERTH_ERROR_LAUNCH_FAILED;

        process->failed_stage = stage;
        if (stage == LAUNCH_STAGE_EXEC && (error == -ENOENT || error == -ENOTDIR))
                name = BERTH_ERROR_COMMAND_NOT_FOUND;
        else if (stage == LAUNCH_STAGE_EXEC && (error == -EACCES || error == -ENOEXEC || error == -EISDIR))
                name = BERTH_ERROR_COMMAND_NOT_EXECUTABLE;
        else if (error == -EOPNOTSUPP)
                name = BERTH_ERROR_NOT_SUPPORTED;

        if (error == -EOPNOTSUPP && stage == LAUNCH_STAGE_ROOTFS && process->spec->ephemeral &&
            geteuid() != 0)
                (void) sd_bus_error_setf(
                        ret, name,
                        "%s: Ephemeral cannot lie over the mount %s for an ordinary user, ReadOnly can",
                        process->name, detail);
        else if (error == -EOWNERDEAD)
                (void) sd_bus_error_setf(ret, name, "%s: %s%s%s: the starting process was killed",
                                         process->name, launch_stage_to_string(stage), space, detail);
        else if (error == -EREMOTEIO) /* detail is what the other side said */
                (void) sd_bus_error_setf(ret, name, "%s: %s%s%s", process->name,
                                         launch_stage_to_string(stage), space, detail);
        else
                (void) sd_bus_error_setf(ret, name, "%s: %s%s%s: %s", process->name,
                                         launch_stage_to_string(stage), space, detail, strerror(-error));
        return error;
}

static void set_failure_from(Process *process, const LaunchResult *result) {
        switch (result->outcome) {
        case LAUNCH_FAILED:
                (void) process_set_failure(process, result->stage, result->error, result->detail,
                                           &process->failure);
                return;
        case LAUNCH_CANCELLED:
                (void) sd_bus_error_setf(&process->failure, BERTH_ERROR_CANCELLED,
                                         "%s: the start was cancelled", process->name);
                return;
        case LAUNCH_TIMED_OUT:
                process->failed_stage = result->stage;
                (void) sd_bus_error_setf(&process->failure, BERTH_ERROR_TIMEOUT,
                                         "%s: the start took longer than TimeoutStartUSec, at stage %s%s%s",
                                         process->name, launch_stage_to_string(result->stage),
                                         *result->detail ? " " : "", result->detail);
                return;
        case LAUNCH_RUNNING:
                return;
        }
}

/* ---- the launch ----------------------------------------------------------------------------------------------- */

static void on_running(Process *process, const LaunchResult *result) {
        int r;

        r = process_watch(process, result->pid, result->pidfd);
        if (r < 0) {
                (void) sd_bus_error_setf(&process->failure, BERTH_ERROR_LAUNCH_FAILED,
                                         "%s: cannot be watched: %s", process->name, strerror(-r));
                process_kill(process);
                process->handler->failed(process, LAUNCH_FAILED);
                return;
        }
        process->started_usec = process_now();
        process->state = PROCESS_RUNNING;
        process->handler->running(process);
        process_answer(process, PROCESS_PENDING_START, NULL);
        /* Nobody took it: then nobody holds it, and the program hears a hang-up. */
        (void) fd_close(process_take_master(process));
        process_close_streams(process);
}

static void on_launch_done(Launch *launch, const LaunchResult *result, void *userdata) {
        _cleanup_(process_unrefp) Process *process = process_ref(userdata);

        process->launch = NULL;
        if (result->outcome == LAUNCH_RUNNING) {
                on_running(process, result);
                return;
        }
        set_failure_from(process, result);
        process->handler->failed(process, result->outcome);
}

static void on_cloned(Launch *launch, pid_t pid, int pidfd, void *userdata) {
        Process *process = userdata;

        process->pid = pid;
        process->handler->cloned(process, pid, pidfd);
}

static void on_devpts(Launch *launch, int devpts, int master, void *userdata) {
        Process *process = userdata;
        Terminal *terminal;
        int r;

        process->handler->devpts(process, devpts);
        if (master < 0)
                return;
        if (process->terminal) {
                (void) fd_close(master);
                launch_fail(launch, LAUNCH_STAGE_TERMINAL, -EPROTO, "a second terminal");
                return;
        }
        r = terminal_adopt(master, &terminal);
        if (r < 0) {
                launch_fail(launch, LAUNCH_STAGE_TERMINAL, r, "");
                return;
        }
        process->terminal = terminal;
        /* A Resize may have come since the child was told the size. */
        (void) terminal_resize(terminal, process_first_size(process));
}

static const LaunchHandler launch_handler = {
        .cloned = on_cloned,
        .devpts = on_devpts,
        .done = on_launch_done,
};

/* ---- for the owner -------------------------------------------------------------------------------------------- */

TerminalSize process_first_size(const Process *process) {
        const StartOptions *options = &process->options;
        TerminalSize size = process->wanted_size;

        if (options->rows > 0 && options->columns > 0)
                size = (TerminalSize) { options->rows, options->columns, options->x_pixels,
                                        options->y_pixels };
        if (size.rows == 0 || size.columns == 0)
                size = TERMINAL_SIZE_DEFAULT;
        return size;
}

int process_prepare_start(Process *process, const Spec *spec, StartOptions *options, Client *client,
                          process_done_t done, void *userdata) {
        int r;

        assert(process->state != PROCESS_STARTING && process->state != PROCESS_RUNNING);
        r = process_expect(process, PROCESS_PENDING_START, client, done, userdata);
        if (r < 0)
                return r;
        process->spec = spec;
        options_done(&process->options);
        process->options = options_take(options);
        process->starter = client_ref(client);
        process->on_disconnect = process->options.on_disconnect;
        process->exit_code = process->exit_status = 0;
        process->result = PROCESS_RESULT_NONE;
        process->started_usec = process->exited_usec = 0;
        process->failed_stage = LAUNCH_STAGE_NONE;
        process->kill_sent = process->timed_out = false;
        process->state = PROCESS_STARTING;
        return 0;
}

/* Output and error to the journal, where it was asked for; where nothing was and there is one, too. */
static int open_journal(Process *process, const ProcessLaunch *launch, sd_bus_error *error) {
        static const char *const keys[] = { NULL, "StandardOutput", "StandardError" };
        StartOptions *options = &process->options;
        _cleanup_free_ char *identifier = NULL;

        if (asprintf(&identifier, "berth-%s", launch->container) < 0) {
                identifier = NULL;
                return -ENOMEM;
        }
        for (unsigned i = 1; i < ELEMENTSOF(keys); i++) {
                bool follows = i == 2 && options->streams[i] == STREAM_DEFAULT;
                StreamKind kind = options->streams[follows ? 1 : i];
                int fd;

                if (kind != STREAM_JOURNAL &&
                    (kind != STREAM_DEFAULT || process->spec->terminal || !*launch->unit))
                        continue;
                fd = *launch->unit ? journal_stream(JOURNAL_STDOUT_PATH, identifier, launch->unit) : -ENOENT;
                if (fd >= 0)
                        options->stdio[i] = fd;
                else if (kind == STREAM_JOURNAL)
                        return sd_bus_error_setf(error, BERTH_ERROR_NOT_SUPPORTED,
                                                 "%s=journal: there is no journal to write to: %s",
                                                 keys[follows ? 1 : i], strerror(-fd));
        }
        return 0;
}

int process_launch(Process *process, ProcessLaunch *launch, sd_bus_error *error) {
        StartOptions *options = &process->options;
        LaunchParameters parameters;
        int r;

        process->terminal = TAKE_PTR(launch->terminal);
        r = open_journal(process, launch, error);
        if (r < 0)
                return r;
        r = streams_open(options, process->stdio);
        if (r < 0)
                return process_set_failure(process, LAUNCH_STAGE_TERMINAL, r, "pipe", error);
        parameters = (LaunchParameters) {
                .plan = launch->plan,
                .plan_size = launch->plan_size,
                .cgroup = launch->cgroup,
                .enter = launch->enter,
                .stdio = { options->stdio[0], options->stdio[1], options->stdio[2] },
                .own_stdio = streams_own(options),
                .numbered = options->numbered,
                .n_numbered = options->n_numbered,
                .devpts = launch->devpts,
                .tty = process->terminal ? terminal_slave(process->terminal) : -EBADF,
                .map = launch->map,
                .timeout_usec = process->spec->timeout_start_usec,
        };
        r = launch_start(launch->launcher, &parameters, &launch_handler, process, &process->launch);
        if (r < 0)
                return process_set_failure(process, LAUNCH_STAGE_CLONE, r, "berth-launch", error);
        /* The child's now: an end of file must reach the other side when the program closes its own. */
        options_done(&process->options);
        return 0;
}

void process_open_gate(Process *process) {
        int r;

        if (!process->launch)
                return;
        r = launch_open_gate(process->launch, LAUNCH_GATE_CGROUP);
        if (r < 0)
                launch_fail(process->launch, LAUNCH_STAGE_SCOPE, r, "");
}

void process_fail_start(Process *process, LaunchStage stage, int error, const char *detail) {
        if (process->launch)
                launch_fail(process->launch, stage, error, detail);
}

void process_cancel_start(Process *process) {
        if (process->launch)
                launch_cancel(process->launch);
}

sd_bus_error process_finish_failed(Process *process) {
        sd_bus_error failure = process->failure;

        process->failure = SD_BUS_ERROR_NULL;
        process_end_run(process);
        process->state = PROCESS_IDLE;
        return failure;
}
