/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Stands in for berth-launch in a test of the service's side: does what FakeOrder tells, faults included. */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "service/launch/message.h"
#include "tests/unit/fake-launch.h"
#include "util/fd.h"

static LaunchReport *receive_hello(int socket) {
        int fds[_LAUNCH_FD_MAX];
        LaunchHello hello;
        size_t n;

        if (fd_receive(socket, &hello, sizeof(hello), fds, _LAUNCH_FD_MAX, &n) != sizeof(hello) ||
            n != hello.n_fds)
                _exit(90);
        for (size_t i = 0; i < n; i++)
                if (hello.role[i] == LAUNCH_FD_REPORT)
                        return mmap(NULL, sizeof(LaunchReport), PROT_READ | PROT_WRITE, MAP_SHARED, fds[i],
                                    0);
        _exit(91);
}

static void set(LaunchReport *report, LaunchStage stage, int error, const char *detail) {
        report->stage = stage;
        memcpy(report->detail, detail, strlen(detail) + 1);
        report->error = error;
}

static void run_child(int socket, FakeOrder order) {
        LaunchReport *report = receive_hello(socket);
        char text[64] = "";
        LaunchGateOpen gate;
        size_t n;

        set(report, LAUNCH_STAGE_ROOTFS, 0, "");
        switch (order) {
        case FAKE_FAIL:
                set(report, LAUNCH_STAGE_MOUNT, ENOENT, "/x");
                _exit(1);
        case FAKE_KILLED:
                set(report, LAUNCH_STAGE_MOUNT, 0, "/x");
                (void) raise(SIGKILL);
                break;
        case FAKE_TALK:
                (void) fd_send(socket, text, sizeof(LaunchChildNews), NULL, 0);
                break;
        case FAKE_TALK_LONG:
                (void) fd_send(socket, text, sizeof(text), NULL, 0);
                break;
        case FAKE_GATE:
                if (fd_receive(socket, &gate, sizeof(gate), NULL, 0, &n) != sizeof(gate) ||
                    gate.gate != LAUNCH_GATE_CGROUP)
                        _exit(92);
                __attribute__((fallthrough));
        case FAKE_RUN:
        case FAKE_TWICE:
                set(report, LAUNCH_STAGE_EXEC, 0, "");
                (void) close(socket);
                break;
        case FAKE_HANG:
        case FAKE_REFUSE:
        case FAKE_DIE:
        case FAKE_GARBAGE:
        case FAKE_NO_PIDFD:
        case FAKE_STRANGER:
                break;
        }
        for (;;)
                (void) pause();
}

static int clone_child(int socket, FakeOrder order, int *ret_pidfd) {
        pid_t pid;

        pid = (pid_t) syscall(SYS_clone, CLONE_PARENT | CLONE_PIDFD, NULL, ret_pidfd, NULL, 0);
        if (pid == 0) {
                (void) close(LAUNCH_CONTROL_FD);
                run_child(socket, order);
        }
        return pid;
}

static void reply(uint32_t id, int error, pid_t pid, int pidfd) {
        LaunchReply message = { .id = id, .error = error, .pid = pid, .kind = LAUNCH_REPLY_CHILD };

        if (fd_send(LAUNCH_CONTROL_FD, &message, sizeof(message), &pidfd, pidfd >= 0) < 0)
                _exit(93);
}

static void serve(const LaunchRequest *request, int socket) {
        FakeOrder order = (FakeOrder) request->clone_flags;
        int pidfd = -EBADF;
        pid_t pid;

        switch (order) {
        case FAKE_REFUSE:
                reply(request->id, EPERM, 0, -EBADF);
                return;
        case FAKE_DIE:
                _exit(0);
        case FAKE_GARBAGE:
                (void) fd_send(LAUNCH_CONTROL_FD, "?", 1, NULL, 0);
                return;
        case FAKE_NO_PIDFD:
                reply(request->id, 0, 1, -EBADF);
                return;
        case FAKE_STRANGER:
                pidfd = pidfd_open(getppid(), 0);
                reply(request->id, 0, 0, pidfd);
                (void) close(pidfd);
                return;
        case FAKE_TWICE:
                reply(request->id + 1000, EPERM, 0, -EBADF);
                break;
        case FAKE_RUN:
        case FAKE_FAIL:
        case FAKE_KILLED:
        case FAKE_HANG:
        case FAKE_GATE:
        case FAKE_TALK:
        case FAKE_TALK_LONG:
                break;
        }
        pid = clone_child(socket, order, &pidfd);
        if (pid < 0)
                _exit(94);
        reply(request->id, 0, pid, pidfd);
        (void) close(pidfd);
        if (order == FAKE_TWICE)
                reply(request->id, EPERM, 0, -EBADF);
}

int main(void) {
        for (;;) {
                LaunchRequest request;
                int fds[3];
                size_t n;

                if (fd_receive(LAUNCH_CONTROL_FD, &request, sizeof(request), fds, 3, &n) != sizeof(request))
                        return 0;
                if (n > 0)
                        serve(&request, fds[0]);
                for (size_t i = 0; i < n; i++)
                        (void) close(fds[i]);
        }
}
