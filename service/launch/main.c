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

/* The descriptors of a request by their use, -EBADF where there is none. */
typedef struct Order {
        const LaunchRequest *request;
        int socket, cgroup, init;
} Order;

static int read_order(const LaunchRequest *request, const int *fds, size_t n_fds, Order *ret) {
        bool cgroup = request->flags & LAUNCH_REQUEST_CGROUP, enter = request->flags & LAUNCH_REQUEST_ENTER;

        if (request->clone_flags & ~(enter ? 0 : (uint64_t) NAMESPACES) || n_fds != 1U + cgroup + enter)
                return -EINVAL;
        *ret = (Order) {
                .request = request,
                .socket = fds[0],
                .cgroup = cgroup ? fds[1] : -EBADF,
                .init = enter ? fds[1 + cgroup] : -EBADF,
        };
        return 0;
}

static int reply(const Order *order, LaunchReplyKind kind, int pid, int pidfd) {
        const LaunchReply message = {
                .id = order->request->id,
                .error = pid < 0 ? -pid : 0,
                .pid = pid < 0 ? 0 : pid,
                .kind = kind,
        };
        int r;

        r = channel_send(LAUNCH_CONTROL_FD, &message, sizeof(message), &pidfd, pidfd >= 0);
        if (pidfd >= 0)
                (void) sys_close(pidfd);
        return r;
}

/* Returns in both processes: 0 in the child, which is berthd's. */
static int clone_child(uint64_t flags, int cgroup, int *ret_pidfd) {
        struct clone_args args = {
                .flags = CLONE_PARENT | CLONE_PIDFD | flags,
                .pidfd = (uintptr_t) ret_pidfd,
        };
        int pid;

        if (cgroup >= 0) {
                args.flags |= CLONE_INTO_CGROUP;
                args.cgroup = (uint64_t) cgroup;
        }
        pid = sys_clone3(&args);
        /* A clone that failed late has stored a number that is no descriptor any more. */
        if (pid < 0)
                *ret_pidfd = -EBADF;
        return pid;
}

/* Makes the process that becomes the program, and tells of it. Returns in the parent only. */
static int make_child(const Order *order) {
        int pidfd = -EBADF, pid;

        pid = clone_child(order->request->clone_flags, order->cgroup, &pidfd);
        if (pid == 0) {
                (void) sys_close(LAUNCH_CONTROL_FD);
                if (order->cgroup >= 0)
                        (void) sys_close(order->cgroup);
                child_run(order->socket, order->request->clone_flags);
        }
        return reply(order, LAUNCH_REPLY_CHILD, pid, pidfd);
}

/* Makes the process that goes between. It is in the container's cgroup from its beginning, and has no way to
 * the service but its own socket. */
static int enter(const Order *order) {
        int pidfd = -EBADF, pid;

        pid = clone_child(0, order->cgroup, &pidfd);
        if (pid == 0) {
                (void) sys_close(LAUNCH_CONTROL_FD);
                if (order->cgroup >= 0)
                        (void) sys_close(order->cgroup);
                (void) sys_close(order->init);
                child_enter(order->socket, order->request->flags & LAUNCH_REQUEST_ENTER_USER);
        }
        return reply(order, pid < 0 ? LAUNCH_REPLY_CHILD : LAUNCH_REPLY_STEP, pid, pidfd);
}

static int serve(const LaunchRequest *request, const int *fds, size_t n_fds) {
        Order order = { .request = request };
        int r;

        r = read_order(request, fds, n_fds, &order);
        if (r < 0)
                return reply(&order, LAUNCH_REPLY_CHILD, r, -EBADF);
        return request->flags & LAUNCH_REQUEST_ENTER ? enter(&order) : make_child(&order);
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
