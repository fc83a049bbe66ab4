/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/device-filter.h"

#include <errno.h>
#include <linux/bpf.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util/cleanup.h"

/* Registers: 1 the context, 2 kind of access, 3 type of device, 4 major, 5 minor. */
#define LOAD(register, field)                                                                   \
        {                                                                                       \
                .code = BPF_LDX | BPF_MEM | BPF_W, .dst_reg = (register), .src_reg = BPF_REG_1, \
                .off = offsetof(struct bpf_cgroup_dev_ctx, field)                               \
        }
#define MOVE(to, from) \
        { .code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = (to), .src_reg = (from) }
#define AND(register, value) \
        { .code = BPF_ALU64 | BPF_AND | BPF_K, .dst_reg = (register), .imm = (value) }
#define SHIFT(register, bits) \
        { .code = BPF_ALU64 | BPF_RSH | BPF_K, .dst_reg = (register), .imm = (bits) }
#define SKIP_IF(condition, register, value, n) \
        { .code = BPF_JMP | (condition) | BPF_K, .dst_reg = (register), .imm = (value), .off = (n) }
#define RETURN(value)                                                                    \
        { .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = (value) }, { \
                .code = BPF_JMP | BPF_EXIT                                               \
        }
#define ALLOW_IF(register, value) SKIP_IF(BPF_JNE, register, value, 2), RETURN(1)

int device_filter_load(void) {
        static const struct bpf_insn program[] = {
                LOAD(BPF_REG_2, access_type),
                MOVE(BPF_REG_3, BPF_REG_2),
                SHIFT(BPF_REG_2, 16),
                AND(BPF_REG_3, 0xffff),
                LOAD(BPF_REG_4, major),
                LOAD(BPF_REG_5, minor),
                /* A node may be made of anything: it can't be opened. */
                ALLOW_IF(BPF_REG_2, BPF_DEVCG_ACC_MKNOD),
                SKIP_IF(BPF_JEQ, BPF_REG_3, BPF_DEVCG_DEV_CHAR, 2),
                RETURN(0),
                /* null, zero, full, random, urandom */
                SKIP_IF(BPF_JNE, BPF_REG_4, 1, 17),
                ALLOW_IF(BPF_REG_5, 3),
                ALLOW_IF(BPF_REG_5, 5),
                ALLOW_IF(BPF_REG_5, 7),
                ALLOW_IF(BPF_REG_5, 8),
                ALLOW_IF(BPF_REG_5, 9),
                RETURN(0),
                /* tty, ptmx */
                SKIP_IF(BPF_JNE, BPF_REG_4, 5, 8),
                ALLOW_IF(BPF_REG_5, 0),
                ALLOW_IF(BPF_REG_5, 2),
                RETURN(0),
                /* the slaves of pseudo terminals */
                SKIP_IF(BPF_JLT, BPF_REG_4, 136, 3),
                SKIP_IF(BPF_JGT, BPF_REG_4, 143, 2),
                RETURN(1),
                RETURN(0),
        };
        union bpf_attr attr;
        long fd;

        memset(&attr, 0, sizeof(attr));
        attr.prog_type = BPF_PROG_TYPE_CGROUP_DEVICE;
        attr.insns = (uintptr_t) program;
        attr.insn_cnt = ELEMENTSOF(program);
        attr.license = (uintptr_t) "LGPL";
        /* Such descriptors are CLOEXEC from the kernel. */
        fd = syscall(__NR_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));
        return fd < 0 ? -errno : (int) fd;
}

int device_filter_attach(int program, int cgroup) {
        union bpf_attr attr;

        memset(&attr, 0, sizeof(attr));
        attr.attach_type = BPF_CGROUP_DEVICE;
        attr.target_fd = (uint32_t) cgroup;
        attr.attach_bpf_fd = (uint32_t) program;
        attr.attach_flags = BPF_F_ALLOW_MULTI;
        return syscall(__NR_bpf, BPF_PROG_ATTACH, &attr, sizeof(attr)) < 0 ? -errno : 0;
}
