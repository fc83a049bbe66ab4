/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* System calls without a C library. Each wrapper is the call itself and returns negative errno; there is
 * no errno variable. Constants and structures are the kernel's own (linux/, asm/), so this header and the
 * C library's <fcntl.h>, <sys/mount.h> and the like don't go together: the modules' public headers do
 * without it. */
#pragma once

#include <asm/fcntl.h>
#include <asm/ioctls.h>
#include <asm/socket.h>
#include <asm/statfs.h>
#include <asm/termios.h>
#include <asm/unistd.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <linux/errno.h>
#include <linux/fcntl.h>
#include <linux/filter.h>
#include <linux/keyctl.h>
#include <linux/limits.h>
#include <linux/magic.h>
#include <linux/mman.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <linux/poll.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <linux/securebits.h>
#include <linux/stat.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__)
static inline long sys_call(long n, long a, long b, long c, long d, long e, long f) {
        register long r10 __asm__("r10") = d;
        register long r8 __asm__("r8") = e;
        register long r9 __asm__("r9") = f;
        long r;

        __asm__ volatile("syscall"
                         : "=a"(r)
                         : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                         : "rcx", "r11", "memory");
        return r;
}
#elif defined(__aarch64__)
static inline long sys_call(long n, long a, long b, long c, long d, long e, long f) {
        register long x8 __asm__("x8") = n;
        register long x0 __asm__("x0") = a;
        register long x1 __asm__("x1") = b;
        register long x2 __asm__("x2") = c;
        register long x3 __asm__("x3") = d;
        register long x4 __asm__("x4") = e;
        register long x5 __asm__("x5") = f;

        __asm__ volatile("svc 0"
                         : "+r"(x0)
                         : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                         : "memory", "cc");
        return x0;
}
#else
#        error "berth-launch has not been brought to this architecture"
#endif

#define SYS_(n, a, b, c, d, e, f, ...) \
        sys_call(n, (long) (a), (long) (b), (long) (c), (long) (d), (long) (e), (long) (f))
#define SYS(...) SYS_(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0)

/* What the kernel's exported headers leave out. */
#define SYS_AF_UNIX 1
#define SYS_SOCK_DGRAM 2
#define SYS_SCM_RIGHTS 1
#define SYS_MSG_CTRUNC 0x8
#define SYS_MSG_TRUNC 0x20
#define SYS_MSG_NOSIGNAL 0x4000
#define SYS_MSG_CMSG_CLOEXEC 0x40000000
#define SYS_MNT_DETACH 2
#define SYS_SIGNAL_MAX 64
#define SYS_SIGKILL 9
#define SYS_SIG_SETMASK 2

/* linux/stat.h keeps these back from a hosted compilation. */
#ifndef S_IFMT
#        define S_IFMT 0170000
#        define S_IFREG 0100000
#        define S_IFBLK 0060000
#        define S_IFDIR 0040000
#        define S_IFCHR 0020000
#        define S_ISREG(mode) (((mode) &S_IFMT) == S_IFREG)
#        define S_ISDIR(mode) (((mode) &S_IFMT) == S_IFDIR)
#endif

typedef struct SysVector {
        void *base;
        size_t length;
} SysVector;

typedef struct SysMessage {
        void *name;
        int name_length;
        SysVector *vectors;
        size_t n_vectors;
        void *control;
        size_t control_length;
        unsigned flags;
} SysMessage;

typedef struct SysControl {
        size_t length;
        int level;
        int type;
} SysControl;

typedef struct SysLimit {
        uint64_t soft, hard;
} SysLimit;

typedef struct SysSignalAction {
        void *handler;
        unsigned long flags;
        void *restorer;
        uint64_t mask;
} SysSignalAction;

_Noreturn static inline void sys_exit(int status) {
        for (;;) {
                (void) SYS(__NR_exit_group, status);
                /* A seccomp filter can deny even this; the trap can't be denied. */
                __builtin_trap();
        }
}

static inline int sys_openat(int dir, const char *path, int flags, unsigned mode) {
        return (int) SYS(__NR_openat, dir, path, flags, mode);
}

static inline int sys_openat2(int dir, const char *path, const struct open_how *how) {
        return (int) SYS(__NR_openat2, dir, path, how, sizeof(*how));
}

static inline int sys_close(int fd) {
        return (int) SYS(__NR_close, fd);
}

static inline int sys_close_range(unsigned first, unsigned last, unsigned flags) {
        return (int) SYS(__NR_close_range, first, last, flags);
}

static inline int sys_dup3(int from, int to, int flags) {
        return (int) SYS(__NR_dup3, from, to, flags);
}

static inline int sys_fcntl(int fd, int command, unsigned long argument) {
        return (int) SYS(__NR_fcntl, fd, command, argument);
}

static inline int sys_ioctl(int fd, unsigned long request, unsigned long argument) {
        return (int) SYS(__NR_ioctl, fd, request, argument);
}

static inline long sys_read(int fd, void *data, size_t size) {
        return SYS(__NR_read, fd, data, size);
}

static inline long sys_write(int fd, const void *data, size_t size) {
        return SYS(__NR_write, fd, data, size);
}

static inline int sys_statx(int dir, const char *path, int flags, unsigned mask, struct statx *ret) {
        return (int) SYS(__NR_statx, dir, path, flags, mask, ret);
}

static inline int sys_fstatfs(int fd, struct statfs *ret) {
        return (int) SYS(__NR_fstatfs, fd, ret);
}

static inline int sys_mkdirat(int dir, const char *path, unsigned mode) {
        return (int) SYS(__NR_mkdirat, dir, path, mode);
}

static inline int sys_mknodat(int dir, const char *path, unsigned mode, unsigned device) {
        return (int) SYS(__NR_mknodat, dir, path, mode, device);
}

static inline int sys_symlinkat(const char *text, int dir, const char *path) {
        return (int) SYS(__NR_symlinkat, text, dir, path);
}

static inline long sys_readlinkat(int dir, const char *path, char *ret, size_t size) {
        return SYS(__NR_readlinkat, dir, path, ret, size);
}

static inline int sys_fchown(int fd, uint32_t uid, uint32_t gid) {
        return (int) SYS(__NR_fchown, fd, uid, gid);
}

static inline int sys_fchmod(int fd, unsigned mode) {
        return (int) SYS(__NR_fchmod, fd, mode);
}

static inline void sys_umask(unsigned mask) {
        (void) SYS(__NR_umask, mask);
}

static inline int sys_fchdir(int fd) {
        return (int) SYS(__NR_fchdir, fd);
}

static inline long sys_getcwd(char *ret, size_t size) {
        return SYS(__NR_getcwd, ret, size);
}

static inline bool sys_is_error(const void *p) {
        return (unsigned long) p >= -4095UL;
}

/* A pointer, or negative errno in its disguise: sys_is_error(). */
static inline void *sys_mmap_at(size_t size, int protection, int flags, int fd, long offset) {
        return (void *) SYS(__NR_mmap, NULL, size, protection, flags, fd, offset);
}

static inline void *sys_mmap(size_t size, int protection, int flags, int fd) {
        return sys_mmap_at(size, protection, flags, fd, 0);
}

static inline int sys_madvise(void *address, size_t size, int advice) {
        return (int) SYS(__NR_madvise, address, size, advice);
}

static inline int sys_socket(int family, int type) {
        return (int) SYS(__NR_socket, family, type, 0);
}

static inline long sys_recvmsg(int fd, SysMessage *message, int flags) {
        return SYS(__NR_recvmsg, fd, message, flags);
}

static inline long sys_sendmsg(int fd, const SysMessage *message, int flags) {
        return SYS(__NR_sendmsg, fd, message, flags);
}

/* Looks, without waiting. */
static inline int sys_poll_now(struct pollfd *fds, unsigned n) {
        struct {
                long seconds, nanoseconds;
        } zero = { 0, 0 };

        return (int) SYS(__NR_ppoll, fds, n, &zero, NULL, 0);
}

static inline int sys_clone3(struct clone_args *args) {
        return (int) SYS(__NR_clone3, args, sizeof(*args));
}

static inline int sys_unshare(unsigned long flags) {
        return (int) SYS(__NR_unshare, flags);
}

static inline int sys_setns(int fd, unsigned long flags) {
        return (int) sys_call(__NR_setns, fd, (long) flags, 0, 0, 0, 0);
}

static inline int sys_setsid(void) {
        return (int) SYS(__NR_setsid, 0);
}

static inline int sys_keyctl(int command, const char *argument) {
        return (int) SYS(__NR_keyctl, command, argument);
}

static inline uint32_t sys_geteuid(void) {
        return (uint32_t) SYS(__NR_geteuid, 0);
}

static inline int sys_prctl(int option, unsigned long a, unsigned long b) {
        return (int) SYS(__NR_prctl, option, a, b, 0, 0);
}

static inline int sys_setrlimit(unsigned resource, const SysLimit *limit) {
        return (int) SYS(__NR_prlimit64, 0, resource, limit, NULL);
}

static inline int sys_setgroups(size_t n, const uint32_t *groups) {
        return (int) SYS(__NR_setgroups, n, groups);
}

static inline int sys_setresuid(uint32_t uid) {
        return (int) SYS(__NR_setresuid, uid, uid, uid);
}

static inline int sys_setresgid(uint32_t gid) {
        return (int) SYS(__NR_setresgid, gid, gid, gid);
}

static inline int sys_capset(struct __user_cap_header_struct *header,
                             const struct __user_cap_data_struct *data) {
        return (int) SYS(__NR_capset, header, data);
}

static inline int sys_seccomp(unsigned operation, unsigned flags, const void *argument) {
        return (int) SYS(__NR_seccomp, operation, flags, argument);
}

static inline int sys_execve(const char *path, char *const *arguments, char *const *environment) {
        return (int) SYS(__NR_execve, path, arguments, environment);
}

static inline int sys_sigaction(int signal, const SysSignalAction *action) {
        return (int) SYS(__NR_rt_sigaction, signal, action, NULL, sizeof(action->mask));
}

static inline int sys_sigmask(uint64_t blocked) {
        return (int) SYS(__NR_rt_sigprocmask, SYS_SIG_SETMASK, &blocked, NULL, sizeof(blocked));
}

static inline int sys_sethostname(const char *name, size_t length) {
        return (int) SYS(__NR_sethostname, name, length);
}

static inline int sys_mount(const char *source, const char *target, const char *type, unsigned long flags) {
        return (int) SYS(__NR_mount, source, target, type, flags, NULL);
}

static inline int sys_umount(const char *path, int flags) {
        return (int) SYS(__NR_umount2, path, flags);
}

static inline int sys_pivot_root(const char *root, const char *old) {
        return (int) SYS(__NR_pivot_root, root, old);
}

static inline int sys_open_tree(int dir, const char *path, unsigned flags) {
        return (int) SYS(__NR_open_tree, dir, path, flags);
}

/* Both by descriptor, never by name. */
static inline int sys_move_mount(int mount, int target) {
        return (int) SYS(__NR_move_mount, mount, "", target, "",
                         MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
}

static inline int sys_fsopen(const char *type) {
        return (int) SYS(__NR_fsopen, type, FSOPEN_CLOEXEC);
}

static inline int sys_fsconfig(int fd, unsigned command, const char *key, const char *value) {
        return (int) SYS(__NR_fsconfig, fd, command, key, value, 0);
}

static inline int sys_fsmount(int fd, unsigned attributes) {
        return (int) SYS(__NR_fsmount, fd, FSMOUNT_CLOEXEC, attributes);
}

static inline int sys_mount_setattr(int fd, unsigned flags, const struct mount_attr *attr) {
        return (int) SYS(__NR_mount_setattr, fd, "", AT_EMPTY_PATH | flags, attr, sizeof(*attr));
}

/* Ownership by scope, as util/cleanup.h has it for the hosted side. */
static inline void sys_closep(const int *fd) {
        if (*fd >= 0)
                (void) sys_close(*fd);
}

#define _cleanup_close_ __attribute__((cleanup(sys_closep)))

static inline int sys_take_fd(int *fd) {
        int taken = *fd;

        *fd = -EBADF;
        return taken;
}

/* A private anonymous mapping: memory that costs nothing before it is touched. */
static inline void *sys_allocate(size_t size) {
        return sys_mmap(size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
}
