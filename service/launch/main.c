/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* berth-launch: clones children for berthd, whose children they are, and nothing else. It holds nothing
 * that a child could give away, and is small so that the clone is cheap. */
#include "service/launch/channel.h"
#include "service/launch/child.h"
#include "service/launch/message.h"
#include "service/launch/sys.h"

#define NAMESPACES                                                                                    \
        (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | \
         CLONE_NEWNET | CLONE_NEWTIME)

_Noreturn void launch_main(void);

/* The program has no C runtime: the kernel starts it here. */
#if defined(__x86_64__)
__asm__(".globl _start\n"
        "_start:\n"
        "        xor %ebp, %ebp\n"
        "        and $-16, %rsp\n"
        "        call launch_main\n"
        "        ud2\n");
#elif defined(__aarch64__)
__asm__(".globl _start\n"
        "_start:\n"
        "        mov x29, #0\n"
        "        mov x30, #0\n"
        "        bl launch_main\n"
        "        brk #1\n");
#endif

/* All blocked until a child's program is about to run, and nothing ignored that it would inherit. */
static void reset_signals(void) {
        const SysSignalAction action = {};

        (void) sys_sigmask(~UINT64_C(0));
        for (int i = 1; i <= SYS_SIGNAL_MAX; i++)
                (void) sys_sigaction(i, &action);
}

/* Descriptors that come over the socket must not become 0, 1 or 2, which the child replaces. */
static void occupy_standard_descriptors(void) {
        int fd;

        do
                fd = sys_openat(AT_FDCWD, "/", O_PATH | O_CLOEXEC, 0);
        while (fd >= 0 && fd < 3);
        if (fd >= 0)
                (void) sys_close(fd);
}

/* The service may be protected from the OOM killer, and what it starts is not to inherit that. To raise the score
 * needs no privilege; one of zero or above is the caller's own choice and stays. */
static void give_up_protection(void) {
        char sign = 0;
        int fd;

        fd = sys_openat(AT_FDCWD, "/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC, 0);
        if (fd < 0)
                return;
        if (sys_read(fd, &sign, 1) == 1 && sign == '-')
                (void) sys_write(fd, "0", 1);
        (void) sys_close(fd);
}

/* Returns in both processes: 0 in the child. */
static int clone_child(const LaunchRequest *request, int cgroup, int *ret_pidfd) {
        struct clone_args args = {
                .flags = CLONE_PARENT | CLONE_PIDFD | request->clone_flags,
                .pidfd = (uintptr_t) ret_pidfd,
        };

        if (request->clone_flags & ~(uint64_t) NAMESPACES)
                return -EINVAL;
        if (cgroup >= 0) {
                args.flags |= CLONE_INTO_CGROUP;
                args.cgroup = (uint64_t) cgroup;
        }
        return sys_clone3(&args);
}

static int serve(const LaunchRequest *request, const int *fds, size_t n_fds) {
        LaunchReply reply = { .id = request->id };
        int pidfd = -EBADF, r;

        r = n_fds < 1 || n_fds > 2 ? -EINVAL : clone_child(request, n_fds > 1 ? fds[1] : -EBADF, &pidfd);
        if (r == 0) {
                (void) sys_close(LAUNCH_CONTROL_FD);
                if (n_fds > 1)
                        (void) sys_close(fds[1]);
                child_run(fds[0], request->clone_flags);
        }
        if (r < 0)
                reply.error = -r;
        else
                reply.pid = r;
        r = channel_send(LAUNCH_CONTROL_FD, &reply, sizeof(reply), &pidfd, pidfd >= 0);
        if (pidfd >= 0)
                (void) sys_close(pidfd);
        return r;
}

void launch_main(void) {
        reset_signals();
        occupy_standard_descriptors();
        sys_umask(0);
        give_up_protection();
        /* An ordinary user's child needs its files in procfs until its maps are written, and does this
         * then. */
        if (sys_geteuid() == 0)
                (void) sys_prctl(PR_SET_DUMPABLE, 0, 0);

        for (;;) {
                int fds[CHANNEL_FDS_MAX], r;
                LaunchRequest request;
                size_t n_fds;

                r = channel_receive(LAUNCH_CONTROL_FD, &request, sizeof(request), fds, &n_fds);
                if (r == 0)
                        sys_exit(0);
                if (r < 0)
                        sys_exit(1);
                r = serve(&request, fds, n_fds);
                for (size_t i = 0; i < n_fds; i++)
                        (void) sys_close(fds[i]);
                if (r < 0)
                        sys_exit(1);
        }
}
