/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <linux/bpf_common.h>
#include <seccomp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "interfaces/names.h"
#include "service/seccomp-profile.h"
#include "service/seccomp.h"

#define PROFILE_PATH "linux.seccomp"

/* The library's numbers for syscalls that an architecture lacks begin here; those above are multiplexed
 * ones, which it translates (socketcall, ipc). */
#define SYSCALL_ABSENT (-10000)

/* Makes a binary search of the filter. */
#define OPTIMIZE_TREE 2

static void releasep(scmp_filter_ctx *context) {
        if (*context)
                seccomp_release(*context);
}

SeccompFilter *seccomp_filter_ref(SeccompFilter *filter) {
        filter->n_ref++;
        return filter;
}

SeccompFilter *seccomp_filter_unref(SeccompFilter *filter) {
        if (!filter || --filter->n_ref > 0)
                return NULL;
        free(filter->program);
        free(filter);
        return NULL;
}

static int add_rule(scmp_filter_ctx context, const SeccompRule *rule, int syscall) {
        int r;

        if (!rule->alternatives)
                return seccomp_rule_add_array(context, rule->action, syscall, rule->n_args, rule->args);
        for (unsigned i = 0; i < rule->n_args; i++) {
                r = seccomp_rule_add_array(context, rule->action, syscall, 1, &rule->args[i]);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int add_rules(scmp_filter_ctx context, const SeccompProfile *profile, uint32_t architecture,
                     sd_bus_error *error) {
        for (size_t i = 0; i < profile->n_rules; i++) {
                const SeccompRule *rule = &profile->rules[i];
                json_t *item;
                size_t j;
                int r;

                /* It would change nothing, and the library refuses it. */
                if (rule->action == profile->default_action)
                        continue;
                json_array_foreach(rule->names, j, item) {
                        const char *name = json_string_value(item);
                        int syscall;

                        syscall = seccomp_syscall_resolve_name_arch(architecture, name);
                        if (syscall == __NR_SCMP_ERROR || syscall <= SYSCALL_ABSENT)
                                continue;
                        /* A rule takes the native number whatever architecture it is for. */
                        r = add_rule(context, rule, seccomp_syscall_resolve_name(name));
                        if (r == -ENOMEM)
                                return r;
                        if (r < 0) {
                                (void) sd_bus_error_setf(
                                        error, BERTH_ERROR_INVALID_SPEC,
                                        PROFILE_PATH ".syscalls[%zu]: the rule for %s %s", rule->index, name,
                                        r == -EEXIST ? "contradicts an earlier one" : "can't be compiled");
                                return -EINVAL;
                        }
                }
        }
        return 0;
}

/* A filter of its own for each architecture, so that it holds only syscalls that exist there: added to one
 * filter, those of the others would be looked for under numbers that can't occur. */
static int build(const SeccompProfile *profile, uint32_t architecture, scmp_filter_ctx *ret,
                 sd_bus_error *error) {
        _cleanup_(releasep) scmp_filter_ctx context = NULL;
        int r;

        context = seccomp_init(profile->default_action);
        if (!context)
                return -ENOMEM;
        if (architecture != seccomp_arch_native()) {
                r = seccomp_arch_add(context, architecture);
                if (r < 0)
                        return r;
                r = seccomp_arch_remove(context, seccomp_arch_native());
                if (r < 0)
                        return r;
        }
        r = seccomp_attr_set(context, SCMP_FLTATR_CTL_NNP, 0);
        if (r < 0)
                return r;
        r = seccomp_attr_set(context, SCMP_FLTATR_CTL_OPTIMIZE, OPTIMIZE_TREE);
        if (r < 0)
                return r;
        /* As engines have it: nothing is known about such a call, not even its number's meaning. */
        r = seccomp_attr_set(context, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
        if (r < 0)
                return r;
        r = add_rules(context, profile, architecture, error);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(context);
        return 0;
}

static int export(scmp_filter_ctx context, uint32_t flags, SeccompFilter **ret, sd_bus_error *error) {
        _cleanup_(seccomp_filter_unrefp) SeccompFilter *filter = NULL;
        _cleanup_fd_ int fd = -EBADF;
        struct stat st;
        size_t size;
        int r;

        fd = memfd_create("seccomp", MFD_CLOEXEC);
        if (fd < 0)
                return -errno;
        r = seccomp_export_bpf(context, fd);
        if (r < 0)
                return r;
        if (fstat(fd, &st) < 0)
                return -errno;
        size = (size_t) st.st_size;
        if (size == 0 || size / sizeof(struct sock_filter) > BPF_MAXINSNS) {
                (void) sd_bus_error_set(error, BERTH_ERROR_INVALID_SPEC,
                                        PROFILE_PATH ": the filter is longer than the kernel takes");
                return -EINVAL;
        }
        filter = calloc(1, sizeof(SeccompFilter));
        if (!filter)
                return -ENOMEM;
        filter->n_ref = 1;
        filter->flags = flags;
        filter->n = size / sizeof(struct sock_filter);
        filter->program = malloc(size);
        if (!filter->program)
                return -ENOMEM;
        if (pread(fd, filter->program, size, 0) != (ssize_t) size)
                return -EIO;
        *ret = TAKE_PTR(filter);
        return 0;
}

int seccomp_compile(const char *json, size_t size, uint64_t capabilities, SeccompFilter **ret,
                    sd_bus_error *error) {
        _cleanup_(seccomp_profile_done) SeccompProfile profile = { 0 };
        _cleanup_(releasep) scmp_filter_ctx all = NULL;
        int r;

        r = seccomp_profile_parse(json, size, PROFILE_PATH, capabilities, &profile, error);
        if (r < 0)
                return r;
        r = build(&profile, profile.architectures[0], &all, error);
        if (r < 0)
                return r;
        for (size_t i = 1; i < profile.n_architectures; i++) {
                _cleanup_(releasep) scmp_filter_ctx one = NULL;

                r = build(&profile, profile.architectures[i], &one, error);
                if (r < 0)
                        return r;
                r = seccomp_merge(all, one);
                if (r < 0)
                        return r;
                one = NULL; /* merged: part of the other */
        }
        return export(all, profile.flags, ret, error);
}
