/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/launch/child.h"

#include "service/launch/channel.h"
#include "service/launch/credentials.h"
#include "service/launch/descriptors.h"
#include "service/launch/exec.h"
#include "service/launch/limits.h"
#include "service/launch/mount.h"
#include "service/launch/namespace.h"
#include "service/launch/path.h"
#include "service/launch/plan.h"
#include "service/launch/report.h"
#include "service/launch/root.h"
#include "service/launch/sys.h"
#include "service/launch/terminal.h"
#include "service/launch/text.h"

/* berthd is gone, or wants no more of this launch: there is nobody to tell. */
_Noreturn static void end_unheard(void) {
        sys_exit(1);
}

static void receive_hello(Child *child) {
        int fds[CHANNEL_FDS_MAX], r;
        LaunchHello hello;
        size_t n_fds;

        for (unsigned i = 0; i < _LAUNCH_FD_MAX; i++)
                child->fds[i] = -EBADF;
        r = channel_receive(child->socket, &hello, sizeof(hello), fds, &n_fds);
        if (r != 1 || hello.n_fds != n_fds || n_fds > LAUNCH_HELLO_FDS_MAX)
                end_unheard();
        child->own_stdio = hello.own_stdio;
        for (unsigned i = 0; i < n_fds; i++) {
                if (hello.role[i] >= LAUNCH_FD_NUMBERED) {
                        if (descriptors_add(child, hello.role[i] - LAUNCH_FD_NUMBERED, fds[i]) < 0)
                                end_unheard();
                        continue;
                }
                if (hello.role[i] >= _LAUNCH_FD_MAX || child->fds[hello.role[i]] >= 0)
                        end_unheard();
                child->fds[hello.role[i]] = fds[i];
        }
}

static void map_report(Child *child) {
        int fd = child->fds[LAUNCH_FD_REPORT];
        struct statx st;
        void *page;

        if (fd < 0 || sys_statx(fd, "", AT_EMPTY_PATH, STATX_SIZE, &st) < 0 ||
            st.stx_size < sizeof(LaunchReport))
                end_unheard();
        page = sys_mmap(sizeof(LaunchReport), PROT_READ | PROT_WRITE, MAP_SHARED, fd);
        if (sys_is_error(page))
                end_unheard();
        child->report = page;
}

/* Waits until berthd has opened the gate. */
static void pass_gate(Child *child, LaunchGate gate) {
        while (!(child->gates & (1U << gate))) {
                int fds[CHANNEL_FDS_MAX], r;
                LaunchGateOpen open;
                size_t n_fds;

                r = channel_receive(child->socket, &open, sizeof(open), fds, &n_fds);
                if (r != 1 || open.gate >= _LAUNCH_GATE_MAX)
                        end_unheard();
                child->gates |= 1U << open.gate;
        }
}

/* berthd has given the launch up, or is gone. */
static void end_if_unheard(const Child *child) {
        struct pollfd pollfd = { .fd = child->socket };

        if (sys_poll_now(&pollfd, 1) > 0 && pollfd.revents & (POLLHUP | POLLERR))
                end_unheard();
}

/* Ends the process with its parent. The setting is lost with a change of ids, so this is done once more. */
static int follow_parent(Child *child) {
        int r;

        if (!(child->plan->flags & LAUNCH_PLAN_DIE_WITH_PARENT))
                return 0;
        r = sys_prctl(PR_SET_PDEATHSIG, SYS_SIGKILL, 0);
        if (r < 0)
                return report_detail(child->report, r, "PR_SET_PDEATHSIG");
        /* It may have died before. */
        end_if_unheard(child);
        return 0;
}

static int enter_namespaces(Child *child) {
        int r;

        report_stage(child->report, LAUNCH_STAGE_LIMITS);
        r = limits_set_oom_score(child);
        if (r < 0)
                return r;
        if (child->plan->flags & LAUNCH_PLAN_USER_NAMESPACE) {
                report_stage(child->report, LAUNCH_STAGE_USER_NAMESPACE);
                pass_gate(child, LAUNCH_GATE_MAPS);
                r = namespace_become_root(child);
                if (r < 0)
                        return r;
        }
        report_stage(child->report, LAUNCH_STAGE_NETWORK);
        return namespace_configure(child);
}

static int fill_root(Child *child) {
        int r;

        report_stage(child->report, LAUNCH_STAGE_ROOTFS);
        r = root_attach(child);
        if (r < 0)
                return r;
        if (child->plan->flags & LAUNCH_PLAN_READ_ONLY) {
                r = mount_seal_root(child);
                if (r < 0)
                        return r;
        }
        r = mount_execute(child, false);
        if (r < 0)
                return r;
        report_stage(child->report, LAUNCH_STAGE_TERMINAL);
        r = terminal_prepare(child);
        if (r < 0)
                return r;
        report_stage(child->report, LAUNCH_STAGE_ROOTFS);
        return root_enter(child);
}

static int enter_cgroup(Child *child) {
        int r;

        if (child->plan->flags & LAUNCH_PLAN_CGROUP_GATE) {
                report_stage(child->report, LAUNCH_STAGE_SCOPE);
                pass_gate(child, LAUNCH_GATE_CGROUP);
        }
        if (child->plan->flags & LAUNCH_PLAN_CGROUP_NAMESPACE) {
                report_stage(child->report, LAUNCH_STAGE_CGROUP);
                r = sys_unshare(CLONE_NEWCGROUP);
                if (r < 0)
                        return report_detail(child->report, r, "cgroup namespace");
        }
        return mount_execute(child, true);
}

static int change_directory(Child *child, const char *path) {
        _cleanup_close_ int fd = -EBADF;
        char cwd[PATH_MAX];
        long n;
        int r;

        fd = path_open(child->root, path, O_PATH | O_DIRECTORY, 0);
        r = fd < 0 ? fd : sys_fchdir(fd);
        if (r < 0)
                return r;
        n = sys_getcwd(cwd, sizeof(cwd));
        if (n < 0)
                return (int) n;
        /* The kernel puts a remark in front when it is outside of the root. */
        return cwd[0] == '/' ? 0 : -EXDEV;
}

/* As the user that the program runs as: it must be able to be there. */
static int enter_working_directory(Child *child) {
        const char *path = launch_plan_string(child->plan, child->plan->working_directory);
        char detail[LAUNCH_DETAIL_MAX], *to;
        int r;

        if (!path)
                path = "/";
        r = change_directory(child, path);
        if (r >= 0)
                return 0;
        to = text_append(detail, detail + sizeof(detail), "working directory ");
        (void) text_append(to, detail + sizeof(detail), path);
        return report_detail(child->report, r, detail);
}

/* Everything for which rights are needed that the program may not have. */
static int become_user(Child *child) {
        int r;

        report_stage(child->report, LAUNCH_STAGE_TERMINAL);
        r = terminal_place(child);
        if (r < 0)
                return r;
        report_stage(child->report, LAUNCH_STAGE_LIMITS);
        r = limits_set(child);
        if (r < 0)
                return r;
        report_stage(child->report, LAUNCH_STAGE_CREDENTIALS);
        r = credentials_take(child);
        if (r < 0)
                return r;
        /* Not stage exec: its ENOENT means that the command was not found. */
        report_stage(child->report, LAUNCH_STAGE_ROOTFS);
        r = enter_working_directory(child);
        if (r < 0)
                return r;
        sys_umask(0022);
        return 0;
}

/* What a process can only do for itself. */
static int become_leader(Child *child) {
        int r;

        report_stage(child->report, LAUNCH_STAGE_TERMINAL);
        r = terminal_take(child);
        if (r < 0)
                return r;
        r = follow_parent(child);
        if (r < 0)
                return r;
        end_if_unheard(child);
        r = descriptors_place(child);
        if (r < 0)
                return r;
        r = sys_close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
        if (r < 0)
                return report_detail(child->report, r, "close_range");
        r = descriptors_pass(child);
        if (r < 0)
                return r;
        return sys_sigmask(0);
}

/* Without no_new_privs the filter is loaded while CAP_SYS_ADMIN is held; either way it comes last. */
static int become_program(Child *child) {
        char *const *environment = launch_plan_list(child->plan, &child->plan->environment);
        char *const *arguments = launch_plan_list(child->plan, &child->plan->arguments);
        int r;

        report_stage(child->report, LAUNCH_STAGE_SECCOMP);
        r = credentials_confine(child);
        if (r < 0)
                return r;
        report_stage(child->report, LAUNCH_STAGE_EXEC);
        (void) report_detail(child->report, 0, arguments[0]);
        return exec_program(arguments, environment);
}

static int make_container(Child *child) {
        int r;

        r = enter_namespaces(child);
        if (r < 0)
                return r;
        return fill_root(child);
}

static int find_user(Child *child) {
        int r;

        report_stage(child->report, LAUNCH_STAGE_CREDENTIALS);
        r = credentials_find(child);
        if (r < 0)
                return r;
        return credentials_complete_environment(child);
}

static int map_plan(Child *child) {
        int r;

        report_stage(child->report, LAUNCH_STAGE_ROOTFS);
        r = child->fds[LAUNCH_FD_PLAN] < 0 ? -EBADF
                                           : launch_plan_map(child->fds[LAUNCH_FD_PLAN], &child->plan);
        if (r < 0)
                return report_detail(child->report, r, "plan");
        child->tty = child->fds[LAUNCH_FD_TTY];
        return follow_parent(child);
}

static int launch(Child *child, uint64_t clone_flags) {
        int r;

        r = map_plan(child);
        if (r < 0)
                return r;
        if (child->plan->flags & LAUNCH_PLAN_ENTER || child->plan->clone_flags != clone_flags)
                return report_detail(child->report, -EINVAL, "plan");
        r = make_container(child);
        if (r < 0)
                return r;
        r = find_user(child);
        if (r < 0)
                return r;
        r = enter_cgroup(child);
        if (r < 0)
                return r;
        r = become_user(child);
        if (r < 0)
                return r;
        r = become_leader(child);
        if (r < 0)
                return r;
        return become_program(child);
}

static void child_init(Child *child, int socket) {
        child->socket = socket;
        child->root = child->tty = child->null = child->empty = -EBADF;
        receive_hello(child);
        map_report(child);
}

void child_run(int socket, uint64_t clone_flags) {
        Child child = {};

        child_init(&child, socket);
        report_exit(child.report, launch(&child, clone_flags));
}

/* ---- into a container that runs -------------------------------------------------------------------------- */

/* What it needs of the host's is taken along before it goes in. */
static int join_container(Child *child, bool user) {
        int r;

        report_stage(child->report, LAUNCH_STAGE_LIMITS);
        r = limits_set_oom_score(child);
        if (r < 0)
                return r;
        report_stage(child->report, LAUNCH_STAGE_TERMINAL);
        r = terminal_prepare(child);
        if (r < 0)
                return r;
        report_stage(child->report, LAUNCH_STAGE_CLONE);
        if (user) {
                r = namespace_join_user(child);
                if (r < 0)
                        return r;
        }
        return namespace_enter(child);
}

/* Returns in the process that becomes the program. */
static int clone_program(Child *child) {
        struct clone_args args = {
                .flags = CLONE_PARENT | CLONE_PARENT_SETTID,
                .parent_tid = (uintptr_t) &child->birth->pid,
        };
        int pid;

        report_stage(child->report, LAUNCH_STAGE_CLONE);
        pid = sys_clone3(&args);
        if (pid == 0)
                return 0;
        if (pid < 0)
                return report_detail(child->report, pid, "");
        sys_exit(0);
}

/* The page for the number of the child, which is not to have it; nor the file behind it. */
static int map_birth(Child *child) {
        void *page;
        int r;

        report_stage(child->report, LAUNCH_STAGE_CLONE);
        page = sys_mmap_at(sizeof(LaunchBirth), PROT_READ | PROT_WRITE, MAP_SHARED,
                           child->fds[LAUNCH_FD_REPORT], LAUNCH_BIRTH_OFFSET);
        if (sys_is_error(page))
                return report_detail(child->report, (int) (long) page, "report");
        r = sys_madvise(page, sizeof(LaunchBirth), MADV_DONTFORK);
        if (r < 0)
                return report_detail(child->report, r, "report");
        (void) sys_close(child->fds[LAUNCH_FD_REPORT]);
        child->fds[LAUNCH_FD_REPORT] = -EBADF;
        child->birth = page;
        return 0;
}

static int enter(Child *child, bool user) {
        int r;

        r = map_birth(child);
        if (r < 0)
                return r;
        r = map_plan(child);
        if (r < 0)
                return r;
        if (!(child->plan->flags & LAUNCH_PLAN_ENTER) ||
            !(child->plan->flags & LAUNCH_PLAN_USER_NAMESPACE) != !user)
                return report_detail(child->report, -EINVAL, "plan");
        r = join_container(child, user);
        if (r < 0)
                return r;
        r = find_user(child);
        if (r < 0)
                return r;
        r = become_user(child);
        if (r < 0)
                return r;
        r = clone_program(child);
        if (r < 0)
                return r;
        r = become_leader(child);
        if (r < 0)
                return r;
        return become_program(child);
}

void child_enter(int socket, bool user) {
        Child child = {};

        child_init(&child, socket);
        report_exit(child.report, enter(&child, user));
}
