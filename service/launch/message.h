/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What berthd and berth-launch say to each other: plain structures of one build, never seen by anybody else.
 *
 * There are two sockets, both SOCK_SEQPACKET.
 *
 * The control socket (descriptor 3 of berth-launch) carries LaunchRequest and LaunchReply: clone one child.
 *
 * The child's socket, one for each launch, is inherited by the child and CLOEXEC. berthd queues a LaunchHello with
 * the descriptors of the launch on it before the clone is asked for; afterwards it opens one gate after the other.
 * The end of file says that the child has executed its program or is dead; the shared report says which. */
#pragma once

#include <stdint.h>

/* The descriptor that the control socket has in berth-launch. */
#define LAUNCH_CONTROL_FD 3

/* The longest text in a report, with its NUL. */
#define LAUNCH_DETAIL_MAX 512

/* The program's arguments and environment together; the kernel has its own, lower limit at 128 KiB a string. */
#define LAUNCH_PLAN_MAX (8U * 1024U * 1024U)

/* The steps of a launch that an error can name, in the order in which they usually come. The names are API
 * (FailedStage): launch_stage_to_string() in service/launcher.h. */
typedef enum LaunchStage {
        LAUNCH_STAGE_NONE,
        LAUNCH_STAGE_CLONE,
        LAUNCH_STAGE_USER_NAMESPACE,
        LAUNCH_STAGE_SCOPE,
        LAUNCH_STAGE_CGROUP,
        LAUNCH_STAGE_NETWORK,
        LAUNCH_STAGE_ROOTFS,
        LAUNCH_STAGE_MOUNT,
        LAUNCH_STAGE_DEVICE,
        LAUNCH_STAGE_TERMINAL,
        LAUNCH_STAGE_HOOK,
        LAUNCH_STAGE_LIMITS,
        LAUNCH_STAGE_CREDENTIALS,
        LAUNCH_STAGE_SECCOMP,
        LAUNCH_STAGE_EXEC,
        LAUNCH_STAGE_RUNTIME,
        _LAUNCH_STAGE_MAX,
        _LAUNCH_STAGE_INVALID = -22, /* -EINVAL */
} LaunchStage;

enum {
        LAUNCH_REQUEST_CGROUP = 1 << 0,     /* clone into a cgroup */
        LAUNCH_REQUEST_ENTER = 1 << 1,      /* the child is another process of a running container */
        LAUNCH_REQUEST_ENTER_USER = 1 << 2, /* with ENTER: the container's user namespace is joined too */
};

/* berthd → berth-launch, with one descriptor for each of these that it has, in this order: the child's end of the
 * child's socket; CGROUP: the cgroup's directory; ENTER: the pidfd of the container's init. */
typedef struct LaunchRequest {
        uint64_t clone_flags; /* CLONE_NEW* only, anything else is refused with EINVAL; 0 with ENTER */
        uint32_t id;          /* comes back in the reply */
        uint32_t flags;       /* LAUNCH_REQUEST_* */
} LaunchRequest;

/* Descriptors beside the standard ones that a program can be given, and their highest number: one below what a process
 * may have by default, so that its own limit is not what decides. */
#define LAUNCH_NUMBERED_MAX 200U
#define LAUNCH_NUMBER_MAX 1023U

typedef enum LaunchReplyKind {
        LAUNCH_REPLY_CHILD, /* the process that will be the program, or the error */
        LAUNCH_REPLY_STEP,  /* with ENTER: a process that only goes between, for berthd to reap */
} LaunchReplyKind;

/* berth-launch → berthd, one for each request, with the process' pidfd when error is 0. A STEP tells of the child
 * by LaunchBirth, to be read when it has ended; no child there is a failure, which the report may explain. */
typedef struct LaunchReply {
        uint32_t id;
        int32_t error; /* positive errno of what failed, or 0 */
        int32_t pid;   /* as berthd's PID namespace sees it */
        uint32_t kind; /* LaunchReplyKind */
} LaunchReply;

/* What a descriptor passed with LaunchHello is for. */
typedef enum LaunchFd {
        LAUNCH_FD_PLAN,   /* the LaunchPlan: a sealed memory file, mapped privately by the child */
        LAUNCH_FD_REPORT, /* one page for the LaunchReport: a memory file, mapped shared by both sides */
        LAUNCH_FD_STDIN,
        LAUNCH_FD_STDOUT,
        LAUNCH_FD_STDERR,
        LAUNCH_FD_DEVPTS, /* a detached devpts mount that berthd made, to be attached on /dev/pts */
        LAUNCH_FD_TTY,    /* the slave of the terminal, opened through TIOCGPTPEER, O_NOCTTY */
        LAUNCH_FD_INIT,   /* with LAUNCH_PLAN_ENTER: the pidfd of the container's init */
        _LAUNCH_FD_MAX,
        LAUNCH_FD_NUMBERED = 1 << 16, /* plus the number that it is to have in the program, 3 or more */
} LaunchFd;

#define LAUNCH_HELLO_FDS_MAX (_LAUNCH_FD_MAX + LAUNCH_NUMBERED_MAX)

/* The first message on the child's socket: role[i] tells what the i-th descriptor is. */
typedef struct LaunchHello {
        uint32_t n_fds;
        uint32_t
                own_stdio; /* bit n: standard stream n is a pipe made for the program, whose user is to own it */
        uint32_t role[LAUNCH_HELLO_FDS_MAX];
} LaunchHello;

/* berthd → child: each is sent once. A gate that the plan does not have is not waited for. */
typedef enum LaunchGate {
        LAUNCH_GATE_MAPS = 1, /* the maps of the user namespace are written */
        LAUNCH_GATE_CGROUP,   /* the scope exists and the child is in its cgroup */
        _LAUNCH_GATE_MAX,
} LaunchGate;

typedef struct LaunchGateOpen {
        uint32_t gate;
} LaunchGateOpen;

/* child → berthd. */
typedef enum LaunchNews {
        /* With LAUNCH_PLAN_SEND_DEVPTS: the devpts mount; with a terminal its master too. */
        LAUNCH_NEWS_DEVPTS = 1,
} LaunchNews;

typedef struct LaunchChildNews {
        uint32_t news;
} LaunchChildNews;

/* The shared page. The child stores its stage before each step, and detail before error. Whoever reads it copies it
 * once, bounds detail itself, and believes it only when the child is gone or has closed its socket.
 *
 * stage EXEC with error 0 and the socket closed: the program runs (or was killed in execve itself, which nobody can
 * tell from a program killed in its first instruction). */
typedef struct LaunchReport {
        uint32_t stage;                 /* LaunchStage */
        int32_t error;                  /* positive errno, 0 while all is well */
        char detail[LAUNCH_DETAIL_MAX]; /* the path or name concerned, as one phrase; may be empty */
} LaunchReport;

/* The page behind the report, with LAUNCH_PLAN_ENTER: written by the kernel in the clone itself, so that a child is
 * known even if the process that made it is killed at that moment. It is not mapped in the child. */
#define LAUNCH_BIRTH_OFFSET 65536 /* whatever the size of a page is */
#define LAUNCH_REPORT_SIZE (2 * LAUNCH_BIRTH_OFFSET)
typedef struct LaunchBirth {
        int32_t pid; /* as berthd's PID namespace sees it; 0: no child was made */
} LaunchBirth;

/* ---- The plan: flat data, one mapping. ------------------------------------------------------------------------
 *
 * A LaunchString is the offset of a NUL-terminated string from the start of the plan; 0 means there is none. A
 * LaunchList is an array of uint64_t slots with LaunchStrings in them, which the child turns into pointers in its
 * private mapping; `slots` counts those of the array and is at least n + 1 for the closing NULL. */
typedef uint32_t LaunchString;

typedef struct LaunchList {
        uint32_t offset;
        uint32_t n;
        uint32_t slots; /* more than n + 1 where the child may append (environment) */
} LaunchList;

typedef struct LaunchArray {
        uint32_t offset;
        uint32_t n;
} LaunchArray;

enum {
        LAUNCH_PLAN_USER_NAMESPACE = 1 << 0,   /* wait for LAUNCH_GATE_MAPS, then become 0:0 inside */
        LAUNCH_PLAN_CGROUP_GATE = 1 << 1,      /* wait for LAUNCH_GATE_CGROUP before execve */
        LAUNCH_PLAN_CGROUP_NAMESPACE = 1 << 2, /* unshare(CLONE_NEWCGROUP) once in the cgroup */
        LAUNCH_PLAN_NETWORK_LOOPBACK = 1 << 3, /* a new network namespace: bring lo up */
        LAUNCH_PLAN_READ_ONLY = 1 << 4,        /* the root and all that was mounted in it */
        LAUNCH_PLAN_EPHEMERAL = 1 << 5,        /* overlays over the root and its submounts */
        LAUNCH_PLAN_TERMINAL = 1 << 6,         /* stdio is a terminal, the controlling one */
        LAUNCH_PLAN_SEND_DEVPTS = 1 << 7, /* the child makes devpts itself, and the pty, and sends them */
        LAUNCH_PLAN_NO_NEW_PRIVILEGES = 1 << 8,
        LAUNCH_PLAN_OOM_SCORE_ADJUST = 1 << 9,
        LAUNCH_PLAN_SETGROUPS_DENIED = 1 << 10, /* one id only: setgroups(2) is not allowed and not tried */
        LAUNCH_PLAN_DIE_WITH_PARENT = 1 << 11,  /* PR_SET_PDEATHSIG SIGKILL (direct mode) */
        LAUNCH_PLAN_ENTER =
                1 << 12, /* no container is made: the namespaces `clone_flags` of LAUNCH_FD_INIT's process
                                        are joined, root and steps are none */
};

typedef enum LaunchStepKind {
        LAUNCH_STEP_FILESYSTEM, /* a new file system `type` with `data` (comma separated) on target */
        LAUNCH_STEP_BIND,       /* the host's `source` on target */
        LAUNCH_STEP_DEVPTS,     /* the devpts of LAUNCH_FD_DEVPTS, or one made here with `data`, on target */
        LAUNCH_STEP_DEVICE,     /* a character device node `major:minor`, mode `mode`; bound from the host's
                                   `source` where nodes can't be made (user namespace) */
        LAUNCH_STEP_SYMLINK,    /* target → source (the text of the link); what exists stays */
        LAUNCH_STEP_CONSOLE,    /* the slave of the terminal bound on target */
        LAUNCH_STEP_MASK, /* target hidden by /dev/null or an empty read-only directory; absent: skipped */
        LAUNCH_STEP_READ_ONLY, /* target bound on itself read-only, recursively; absent: skipped */
        _LAUNCH_STEP_MAX,
} LaunchStepKind;

enum {
        LAUNCH_STEP_FLAG_OPTIONAL = 1 << 0,  /* source or file system not there: skipped */
        LAUNCH_STEP_FLAG_RECURSIVE = 1 << 1, /* bind with the mounts below (rbind) */
        LAUNCH_STEP_FLAG_RECURSIVE_PROPAGATION = 1
                                                 << 2, /* propagation for the mounts below too (rslave, …) */
        LAUNCH_STEP_FLAG_NESTED = 1 << 3,    /* target lies below an earlier step's: not made ahead */
        LAUNCH_STEP_FLAG_LATE = 1 << 4,      /* done after the cgroup namespace has been joined */
        LAUNCH_STEP_FLAG_IF_TARGET = 1 << 5, /* target not there: skipped, nothing is made */
};

typedef struct LaunchStep {
        uint32_t kind;
        uint32_t flags;
        LaunchString target; /* path inside the root, absolute */
        LaunchString source; /* bind: path on the host; filesystem: the source shown in mountinfo */
        LaunchString type;
        LaunchString data;
        uint64_t attr_set; /* MOUNT_ATTR_*, of the mount itself */
        uint64_t attr_clear;
        uint64_t attr_set_recursive; /* of the mount and those below it, put on before the mount's own */
        uint64_t attr_clear_recursive;
        uint64_t propagation; /* MS_PRIVATE, MS_SLAVE, MS_SHARED, MS_UNBINDABLE; 0: private */
        uint32_t major, minor;
        uint32_t mode;
        uint32_t sb_read_only; /* filesystem: the superblock read-only too */
} LaunchStep;

typedef struct LaunchLimit {
        uint32_t resource; /* RLIMIT_* */
        uint32_t pad;
        uint64_t soft, hard;
} LaunchLimit;

typedef struct LaunchPlan {
        uint64_t size;  /* of the whole plan */
        uint64_t flags; /* LAUNCH_PLAN_* */
        uint64_t
                clone_flags; /* the namespaces that the child was cloned into, as in the request; those to join */

        LaunchString root;     /* absolute path on the host */
        LaunchString hostname; /* 0: unchanged */

        LaunchList arguments; /* [0] without a slash is looked for in the environment's PATH */
        LaunchList
                environment; /* at least four spare slots: the child adds HOME, USER, LOGNAME, SHELL where they
                                   are missing */
        LaunchString working_directory;

        LaunchString
                user; /* a name to look up in the root's /etc/passwd and /etc/group, or 0 for uid, gid */
        uint32_t uid, gid; /* used when there is no name */
        uint32_t
                has_gid; /* a gid was given: it wins over passwd's, and the user's groups are not looked up */
        LaunchList groups; /* supplementary groups, names or numbers */

        LaunchArray steps;     /* LaunchStep */
        LaunchArray limits;    /* LaunchLimit */
        LaunchArray filter;    /* struct sock_filter; none: no seccomp */
        uint32_t filter_flags; /* SECCOMP_FILTER_FLAG_* */

        int32_t oom_score_adjust;
        uint32_t rows, columns, x_pixels, y_pixels; /* with LAUNCH_PLAN_SEND_DEVPTS */

        uint64_t cap_bounding, cap_effective, cap_permitted, cap_inheritable, cap_ambient;
} LaunchPlan;
