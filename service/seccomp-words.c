/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/seccomp-words.h"

#include <ctype.h>
#include <errno.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <string.h>

#include "util/cleanup.h"

int seccomp_action_from_string(const char *name, uint32_t *ret) {
        static const struct {
                const char *name;
                uint32_t action;
        } actions[] = {
                { "SCMP_ACT_ALLOW", SCMP_ACT_ALLOW },
                { "SCMP_ACT_ERRNO", SCMP_ACT_ERRNO(0) },
                { "SCMP_ACT_KILL", SCMP_ACT_KILL_THREAD },
                { "SCMP_ACT_KILL_PROCESS", SCMP_ACT_KILL_PROCESS },
                { "SCMP_ACT_KILL_THREAD", SCMP_ACT_KILL_THREAD },
                { "SCMP_ACT_LOG", SCMP_ACT_LOG },
                { "SCMP_ACT_NOTIFY", SCMP_ACT_NOTIFY },
                { "SCMP_ACT_TRACE", SCMP_ACT_TRACE(0) },
                { "SCMP_ACT_TRAP", SCMP_ACT_TRAP },
        };

        for (size_t i = 0; i < ELEMENTSOF(actions); i++)
                if (strcmp(actions[i].name, name) == 0) {
                        *ret = actions[i].action;
                        return 0;
                }
        return -EINVAL;
}

int seccomp_operator_from_string(const char *name) {
        static const struct {
                const char *name;
                enum scmp_compare compare;
        } operators[] = {
                { "SCMP_CMP_EQ", SCMP_CMP_EQ }, { "SCMP_CMP_GE", SCMP_CMP_GE },
                { "SCMP_CMP_GT", SCMP_CMP_GT }, { "SCMP_CMP_LE", SCMP_CMP_LE },
                { "SCMP_CMP_LT", SCMP_CMP_LT }, { "SCMP_CMP_MASKED_EQ", SCMP_CMP_MASKED_EQ },
                { "SCMP_CMP_NE", SCMP_CMP_NE },
        };

        for (size_t i = 0; i < ELEMENTSOF(operators); i++)
                if (strcmp(operators[i].name, name) == 0)
                        return (int) operators[i].compare;
        return -EINVAL;
}

int seccomp_flag_from_string(const char *name, uint32_t *ret) {
        static const struct {
                const char *name;
                uint32_t flag;
        } flags[] = {
                { "SECCOMP_FILTER_FLAG_LOG", SECCOMP_FILTER_FLAG_LOG },
                { "SECCOMP_FILTER_FLAG_SPEC_ALLOW", SECCOMP_FILTER_FLAG_SPEC_ALLOW },
                /* A launched process has one thread only. */
                { "SECCOMP_FILTER_FLAG_TSYNC", 0 },
        };

        for (size_t i = 0; i < ELEMENTSOF(flags); i++)
                if (strcmp(flags[i].name, name) == 0) {
                        *ret = flags[i].flag;
                        return 0;
                }
        return strcmp(name, "SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV") == 0 ? -EOPNOTSUPP : -EINVAL;
}

int seccomp_architecture_from_string(const char *name, uint32_t *ret) {
        /* Other spellings, and what OCI lists but an older library lacks. */
        static const struct {
                const char *name, *library;
        } others[] = {
                { "386", "x86" },           { "amd64", "x86_64" },   { "arm64", "aarch64" },
                { "loong64", NULL },        { "loongarch64", NULL }, { "m68k", NULL },
                { "mips64le", "mipsel64" }, { "mipsle", "mipsel" },  { "sh", NULL },
                { "sheb", NULL },
        };
        char lower[24];
        size_t n = 0;

        if (strncmp(name, "SCMP_ARCH_", 10) == 0)
                name += 10;
        for (; name[n]; n++) {
                if (n == sizeof(lower) - 1)
                        return -EINVAL;
                lower[n] = (char) tolower((unsigned char) name[n]);
        }
        lower[n] = 0;
        if (strcmp(lower, "native") == 0) {
                *ret = seccomp_arch_native();
                return 0;
        }
        *ret = seccomp_arch_resolve_name(lower);
        if (*ret != 0)
                return 0;
        for (size_t i = 0; i < ELEMENTSOF(others); i++)
                if (strcmp(others[i].name, lower) == 0) {
                        *ret = others[i].library ? seccomp_arch_resolve_name(others[i].library) : 0;
                        return 0;
                }
        return -EINVAL;
}

bool seccomp_architecture_runs_here(uint32_t token) {
        static const struct {
                uint32_t native, other;
        } pairs[] = {
                { SCMP_ARCH_X86_64, SCMP_ARCH_X86 },           { SCMP_ARCH_X86_64, SCMP_ARCH_X32 },
                { SCMP_ARCH_AARCH64, SCMP_ARCH_ARM },          { SCMP_ARCH_MIPS64, SCMP_ARCH_MIPS },
                { SCMP_ARCH_MIPS64, SCMP_ARCH_MIPS64N32 },     { SCMP_ARCH_MIPSEL64, SCMP_ARCH_MIPSEL },
                { SCMP_ARCH_MIPSEL64, SCMP_ARCH_MIPSEL64N32 }, { SCMP_ARCH_PPC64, SCMP_ARCH_PPC },
                { SCMP_ARCH_S390X, SCMP_ARCH_S390 },           { SCMP_ARCH_PARISC64, SCMP_ARCH_PARISC },
        };
        uint32_t native = seccomp_arch_native();

        if (token == native)
                return true;
        for (size_t i = 0; i < ELEMENTSOF(pairs); i++)
                if (pairs[i].native == native && pairs[i].other == token)
                        return true;
        return false;
}
