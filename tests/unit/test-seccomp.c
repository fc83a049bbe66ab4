/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <seccomp.h>

#include "interfaces/names.h"
#include "service/seccomp-words.h"
#include "service/seccomp.h"
#include "util/fd.h"

#define CAPS_DEFAULT UINT64_C(0xa80425fb)
#define CAP(name) (UINT64_C(1) << (name))

static void cachep(SeccompCache **cache) {
        seccomp_cache_free(*cache);
}
#define _cleanup_cache_ _cleanup_(cachep)
#define _cleanup_filter_ _cleanup_(seccomp_filter_unrefp)

static SeccompFilter *default_filter(uint64_t capabilities) {
        _cleanup_cache_ SeccompCache *cache = seccomp_cache_new();
        _cleanup_bus_error_ sd_bus_error error = SD_BUS_ERROR_NULL;
        SeccompFilter *filter = NULL;

        assert_non_null(cache);
        assert_int_equal(seccomp_cache_get_default(cache, capabilities, &filter, &error), 0);
        return filter;
}

static SeccompFilter *compile(const char *json, uint64_t capabilities) {
        _cleanup_bus_error_ sd_bus_error error = SD_BUS_ERROR_NULL;
        SeccompFilter *filter = NULL;
        int r;

        r = seccomp_compile(json, strlen(json), capabilities, &filter, &error);
        if (r < 0)
                fail_msg("%s: %s", json, error.message);
        return filter;
}

/* ---- What a filter answers, by interpreting it: also for architectures and syscalls that the test can't
 * make. */

static uint32_t load(const struct seccomp_data *data, uint32_t offset) {
        uint32_t value;

        assert_true(offset % 4 == 0 && offset + 4 <= sizeof(*data));
        memcpy(&value, (const char *) data + offset, sizeof(value));
        return value;
}

static uint32_t run(const SeccompFilter *filter, const struct seccomp_data *data) {
        uint32_t a = 0;

        for (size_t pc = 0; pc < filter->n; pc++) {
                const struct sock_filter *f = &filter->program[pc];

                switch (f->code) {
                case BPF_LD | BPF_W | BPF_ABS:
                        a = load(data, f->k);
                        break;
                case BPF_ALU | BPF_AND | BPF_K:
                        a &= f->k;
                        break;
                case BPF_JMP | BPF_JA:
                        pc += f->k;
                        break;
                case BPF_JMP | BPF_JEQ | BPF_K:
                        pc += a == f->k ? f->jt : f->jf;
                        break;
                case BPF_JMP | BPF_JGE | BPF_K:
                        pc += a >= f->k ? f->jt : f->jf;
                        break;
                case BPF_JMP | BPF_JGT | BPF_K:
                        pc += a > f->k ? f->jt : f->jf;
                        break;
                case BPF_RET | BPF_K:
                        return f->k;
                default:
                        fail_msg("instruction 0x%x", f->code);
                }
        }
        fail_msg("the filter has no end");
        return 0;
}

static uint32_t ask_arch(const SeccompFilter *filter, uint32_t arch, int nr, uint64_t a0, uint64_t a1) {
        struct seccomp_data data = { .nr = nr, .arch = arch, .args = { a0, a1 } };

        return run(filter, &data);
}

/* By name, since the C library's headers may be older than the names. */
static uint32_t ask(const SeccompFilter *filter, const char *name, uint64_t a0) {
        int nr = seccomp_syscall_resolve_name(name);

        assert_true(nr >= 0);
        return ask_arch(filter, seccomp_arch_native(), nr, a0, 0);
}

#define ALLOW SECCOMP_RET_ALLOW
#define ERROR(e) (SECCOMP_RET_ERRNO | (e))

/* ---- Reading. */

static void test_errors_name_the_json_path(void **state) {
        static const struct {
                const char *json, *message, *name;
        } cases[] = {
                { "", "linux.seccomp: not valid JSON at line 1, column 0", NULL },
                { "[]", "linux.seccomp: must be an object", NULL },
                { "{\"defaultAction\":\"SCMP_ACT_ALLOW\",\"defaultAction\":\"SCMP_ACT_LOG\"}",
                  "linux.seccomp: not valid JSON at line 1, column 49: a member is given twice", NULL },
                { "{\"defaultAction\":\"SCMP_ACT_ALLOW\\u0000\"}",
                  "linux.seccomp: not valid JSON at line 1, column 39", NULL },
                { "{}", "linux.seccomp.defaultAction: is missing", NULL },
                { "{\"defaultAction\":7}", "linux.seccomp.defaultAction: must be a string", NULL },
                { "{\"defaultAction\":\"SCMP_ACT_EXPLODE\"}",
                  "linux.seccomp.defaultAction: 'SCMP_ACT_EXPLODE' is not an action", NULL },
                { "{\"defaultAction\":\"\\u001b[2J\"}", "linux.seccomp.defaultAction: is not an action",
                  NULL },
                { "{\"defaultAction\":\"SCMP_ACT_NOTIFY\"}",
                  "linux.seccomp.defaultAction: SCMP_ACT_NOTIFY needs an agent, which berth does not have",
                  BERTH_ERROR_NOT_SUPPORTED },
                { "{\"defaultAction\":\"SCMP_ACT_ERRNO\",\"defaultErrnoRet\":4096}",
                  "linux.seccomp.defaultErrnoRet: is out of range", NULL },
                { "{\"defaultAction\":\"SCMP_ACT_ERRNO\",\"defaultErrnoRet\":-1}",
                  "linux.seccomp.defaultErrnoRet: is out of range", NULL },
                { "{\"defaultAction\":\"SCMP_ACT_ERRNO\",\"defaultErrnoRet\":1.0}",
                  "linux.seccomp.defaultErrnoRet: must be a whole number", NULL },
                { "{\"defaultAction\":\"SCMP_ACT_ALLOW\",\"defaultErrnoRet\":1}",
                  "linux.seccomp.defaultErrnoRet: 'SCMP_ACT_ALLOW' returns no errno", NULL },
#define TOP(text) "{\"defaultAction\":\"SCMP_ACT_ALLOW\"," text "}"
                { TOP("\"architectures\":\"SCMP_ARCH_X86\""),
                  "linux.seccomp.architectures: must be a list of strings", NULL },
                { TOP("\"architectures\":[\"SCMP_ARCH_X86\",\"SCMP_ARCH_Z80\"]"),
                  "linux.seccomp.architectures[1]: 'SCMP_ARCH_Z80' is not an architecture", NULL },
                { TOP("\"archMap\":[{\"architecture\":\"SCMP_ARCH_X86_64\",\"subArchitectures\":[1]}]"),
                  "linux.seccomp.archMap[0].subArchitectures[0]: must be a string", NULL },
                { TOP("\"flags\":[\"SECCOMP_FILTER_FLAG_LOG\",\"FLAG\"]"),
                  "linux.seccomp.flags[1]: 'FLAG' is not a flag", NULL },
                { TOP("\"flags\":[\"SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV\"]"),
                  "linux.seccomp.flags[0]: SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV needs an agent, which "
                  "berth does "
                  "not have",
                  BERTH_ERROR_NOT_SUPPORTED },
                { TOP("\"syscalls\":{}"), "linux.seccomp.syscalls: must be a list of objects", NULL },
#define RULE(text) TOP("\"syscalls\":[{\"names\":[\"read\"],\"action\":\"SCMP_ACT_LOG\"},{" text "}]")
#define SECOND "linux.seccomp.syscalls[1]"
                { TOP("\"syscalls\":[7]"), "linux.seccomp.syscalls[0]: must be an object", NULL },
                { RULE("\"action\":\"SCMP_ACT_KILL\""), SECOND ".names: must have at least one name", NULL },
                { RULE("\"names\":[],\"action\":\"SCMP_ACT_KILL\""),
                  SECOND ".names: must have at least one name", NULL },
                { RULE("\"names\":[\"read\",\"\"],\"action\":\"SCMP_ACT_KILL\""),
                  SECOND ".names[1]: must not be empty", NULL },
                { RULE("\"names\":[\"read\"]"), SECOND ".action: is missing", NULL },
                { RULE("\"names\":[\"read\"],\"action\":\"KILL\""),
                  SECOND ".action: 'KILL' is not an action", NULL },
                { RULE("\"names\":[\"read\"],\"action\":\"SCMP_ACT_NOTIFY\""),
                  SECOND ".action: SCMP_ACT_NOTIFY needs an agent, which berth does not have",
                  BERTH_ERROR_NOT_SUPPORTED },
                { RULE("\"names\":[\"read\"],\"action\":\"SCMP_ACT_TRAP\",\"errnoRet\":2"),
                  SECOND ".errnoRet: 'SCMP_ACT_TRAP' returns no errno", NULL },
                { RULE("\"names\":[\"read\"],\"action\":\"SCMP_ACT_TRACE\",\"errnoRet\":65536"),
                  SECOND ".errnoRet: is out of range", NULL },
                { RULE("\"names\":[\"read\"],\"action\":\"SCMP_ACT_KILL\",\"arg\":[]"),
                  SECOND ": 'arg' is not a known member", NULL },
#define ARGS(text) RULE("\"names\":[\"read\"],\"action\":\"SCMP_ACT_KILL\",\"args\":[" text "]")
                { ARGS("7"), SECOND ".args[0]: must be an object", NULL },
                { ARGS("{\"value\":1,\"op\":\"SCMP_CMP_EQ\"}"), SECOND ".args[0].index: is missing", NULL },
                { ARGS("{\"index\":6,\"value\":1,\"op\":\"SCMP_CMP_EQ\"}"),
                  SECOND ".args[0].index: is out of range", NULL },
                { ARGS("{\"index\":0,\"op\":\"SCMP_CMP_EQ\"}"), SECOND ".args[0].value: is missing", NULL },
                { ARGS("{\"index\":0,\"value\":18446744073709551616,\"op\":\"SCMP_CMP_EQ\"}"),
                  "linux.seccomp: not valid JSON at line 1, column 179: a number is too large", NULL },
                { ARGS("{\"index\":0,\"value\":1,\"op\":\"=\"}"),
                  SECOND ".args[0].op: '=' is not an operator", NULL },
                { ARGS("{\"index\":0,\"value\":1}"), SECOND ".args[0].op: must be a string", NULL },
#define WHEN(text) RULE("\"names\":[\"read\"],\"action\":\"SCMP_ACT_KILL\"," text)
                { WHEN("\"includes\":{\"cap\":[]}"), SECOND ".includes: 'cap' is not a known member", NULL },
                { WHEN("\"includes\":{\"caps\":[1]}"), SECOND ".includes.caps[0]: must be a string", NULL },
                { WHEN("\"excludes\":{\"arches\":[\"z80\"]}"),
                  SECOND ".excludes.arches[0]: 'z80' is not an architecture", NULL },
                { WHEN("\"includes\":{\"minKernel\":\"new\"}"),
                  SECOND ".includes.minKernel: must be a version like \"4.8\"", NULL },
                { TOP("\"x\":[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]"), "linux.seccomp: is nested too deeply",
                  NULL },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_bus_error_ sd_bus_error error = SD_BUS_ERROR_NULL;
                SeccompFilter *filter = (SeccompFilter *) 7;
                int r;

                r = seccomp_compile(cases[i].json, strlen(cases[i].json), CAPS_DEFAULT, &filter, &error);
                if (r >= 0)
                        fail_msg("accepted: %s", cases[i].json);
                assert_ptr_equal(filter, (SeccompFilter *) 7);
                assert_string_equal(error.message, cases[i].message);
                assert_string_equal(error.name, cases[i].name ? cases[i].name : BERTH_ERROR_INVALID_SPEC);
        }
}

static void test_size_and_number_of_rules_have_limits(void **state) {
        static const char head[] = "{\"defaultAction\":\"SCMP_ACT_ALLOW\",\"syscalls\":[";
        static const char one[] = "{\"names\":[\"read\"],\"action\":\"SCMP_ACT_LOG\"},";
        const size_t n_rules = 4097;
        _cleanup_bus_error_ sd_bus_error error = SD_BUS_ERROR_NULL, second = SD_BUS_ERROR_NULL;
        _cleanup_free_ char *big = NULL;
        SeccompFilter *filter = NULL;
        char *end;

        big = malloc((1 << 20) + 1);
        assert_non_null(big);
        memset(big, ' ', (1 << 20) + 1);
        assert_int_equal(seccomp_compile(big, (1 << 20) + 1, 0, &filter, &error), -EINVAL);
        assert_string_equal(error.message, "linux.seccomp: is larger than 1 MiB");

        end = stpcpy(big, head);
        for (size_t i = 0; i < n_rules; i++)
                end = stpcpy(end, one);
        end = stpcpy(end - 1, "]}");
        assert_int_equal(seccomp_compile(big, (size_t) (end - big), 0, &filter, &second), -EINVAL);
        assert_string_equal(second.message, "linux.seccomp.syscalls[4096]: the profile has too many rules");
}

static void test_words(void **state) {
        uint32_t a, b;

        assert_int_equal(seccomp_architecture_from_string("SCMP_ARCH_X86_64", &a), 0);
        assert_int_equal(a, SCMP_ARCH_X86_64);
        assert_int_equal(seccomp_architecture_from_string("amd64", &b), 0);
        assert_int_equal(a, b);
        assert_int_equal(seccomp_architecture_from_string("arm64", &a), 0);
        assert_int_equal(a, SCMP_ARCH_AARCH64);
        assert_int_equal(seccomp_architecture_from_string("SCMP_ARCH_NATIVE", &a), 0);
        assert_int_equal(a, seccomp_arch_native());
        assert_int_equal(seccomp_architecture_from_string("SCMP_ARCH_LOONGARCH64", &a), 0);
        assert_int_equal(seccomp_architecture_from_string("SCMP_ARCH_", &a), -EINVAL);
        assert_true(seccomp_architecture_runs_here(seccomp_arch_native()));
        assert_false(seccomp_architecture_runs_here(0));
        assert_int_equal(seccomp_operator_from_string("SCMP_CMP_MASKED_EQ"), SCMP_CMP_MASKED_EQ);
        assert_int_equal(seccomp_operator_from_string("SCMP_CMP_MIN"), -EINVAL);
}

/* ---- What rules mean. */

static void test_actions(void **state) {
        static const struct {
                const char *action;
                uint32_t expected;
        } cases[] = {
                { "\"SCMP_ACT_KILL\"", SECCOMP_RET_KILL_THREAD },
                { "\"SCMP_ACT_KILL_THREAD\"", SECCOMP_RET_KILL_THREAD },
                { "\"SCMP_ACT_KILL_PROCESS\"", SECCOMP_RET_KILL_PROCESS },
                { "\"SCMP_ACT_TRAP\"", SECCOMP_RET_TRAP },
                { "\"SCMP_ACT_LOG\"", SECCOMP_RET_LOG },
                { "\"SCMP_ACT_ERRNO\"", SECCOMP_RET_ERRNO | EPERM },
                { "\"SCMP_ACT_ERRNO\",\"errnoRet\":38", SECCOMP_RET_ERRNO | ENOSYS },
                { "\"SCMP_ACT_ERRNO\",\"errnoRet\":0", SECCOMP_RET_ERRNO },
                { "\"SCMP_ACT_TRACE\",\"errnoRet\":77", SECCOMP_RET_TRACE | 77 },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_filter_ SeccompFilter *filter = NULL;
                char json[256];

                (void) snprintf(json, sizeof(json),
                                TOP("\"syscalls\":[{\"names\":[\"frobnicate\",\"mkdirat\"],\"action\":%s}]"),
                                cases[i].action);
                filter = compile(json, 0);
                assert_int_equal(ask(filter, "mkdirat", 0), cases[i].expected);
                assert_int_equal(ask(filter, "read", 0), ALLOW);
        }
}

static void test_operators(void **state) {
        static const struct {
                const char *arg;
                uint64_t hit, miss;
        } cases[] = {
                { "\"value\":5,\"op\":\"SCMP_CMP_EQ\"", 5, 6 },
                { "\"value\":5,\"op\":\"SCMP_CMP_NE\"", 6, 5 },
                { "\"value\":5,\"op\":\"SCMP_CMP_LT\"", 4, 5 },
                { "\"value\":5,\"op\":\"SCMP_CMP_LE\"", 5, 6 },
                { "\"value\":5,\"op\":\"SCMP_CMP_GE\"", 5, 4 },
                { "\"value\":5,\"op\":\"SCMP_CMP_GT\"", 6, 5 },
                { "\"value\":5,\"op\":\"SCMP_CMP_EQ\"", 5, UINT64_C(0x100000005) },
                { "\"value\":12,\"valueTwo\":4,\"op\":\"SCMP_CMP_MASKED_EQ\"", 7, 12 },
                { "\"value\":4294967296,\"op\":\"SCMP_CMP_GE\"", UINT64_C(0x100000000), 0xffffffff },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_filter_ SeccompFilter *filter = NULL;
                char json[256];

                (void) snprintf(json, sizeof(json),
                                TOP("\"syscalls\":[{\"names\":[\"dup\"],\"action\":\"SCMP_ACT_LOG\","
                                    "\"args\":[{\"index\":0,%s}]}]"),
                                cases[i].arg);
                filter = compile(json, 0);
                assert_int_equal(ask(filter, "dup", cases[i].hit), SECCOMP_RET_LOG);
                assert_int_equal(ask(filter, "dup", cases[i].miss), ALLOW);
        }
}

static void test_comparisons_of_one_argument_are_alternatives(void **state) {
        _cleanup_filter_ SeccompFilter *either = NULL, *both = NULL;
        int nr = seccomp_syscall_resolve_name("dup2");

        if (nr < 0)
                nr = seccomp_syscall_resolve_name("dup3");
        either = compile(
                TOP("\"syscalls\":[{\"names\":[\"dup2\",\"dup3\"],\"action\":\"SCMP_ACT_LOG\",\"args\":["
                    "{\"index\":0,\"value\":3,\"op\":\"SCMP_CMP_EQ\"},"
                    "{\"index\":0,\"value\":5,\"op\":\"SCMP_CMP_EQ\"}]}]"),
                0);
        both = compile(
                TOP("\"syscalls\":[{\"names\":[\"dup2\",\"dup3\"],\"action\":\"SCMP_ACT_LOG\",\"args\":["
                    "{\"index\":0,\"value\":3,\"op\":\"SCMP_CMP_EQ\"},"
                    "{\"index\":1,\"value\":5,\"op\":\"SCMP_CMP_EQ\"}]}]"),
                0);
        assert_int_equal(ask_arch(either, seccomp_arch_native(), nr, 3, 0), SECCOMP_RET_LOG);
        assert_int_equal(ask_arch(either, seccomp_arch_native(), nr, 5, 0), SECCOMP_RET_LOG);
        assert_int_equal(ask_arch(either, seccomp_arch_native(), nr, 4, 0), ALLOW);
        assert_int_equal(ask_arch(both, seccomp_arch_native(), nr, 3, 5), SECCOMP_RET_LOG);
        assert_int_equal(ask_arch(both, seccomp_arch_native(), nr, 3, 4), ALLOW);
}

static void test_conditions(void **state) {
        static const struct {
                const char *condition;
                uint64_t capabilities;
                bool applies;
        } cases[] = {
                { "\"includes\":{},\"excludes\":{}", 0, true },
                { "\"includes\":null,\"args\":null", 0, true },
                { "\"includes\":{\"caps\":[\"CAP_SYS_ADMIN\"]}", 0, false },
                { "\"includes\":{\"caps\":[\"CAP_SYS_ADMIN\"]}", CAP(CAP_SYS_ADMIN), true },
                { "\"includes\":{\"caps\":[\"CAP_SYS_ADMIN\",\"CAP_KILL\"]}", CAP(CAP_SYS_ADMIN), false },
                { "\"excludes\":{\"caps\":[\"CAP_SYS_ADMIN\",\"CAP_KILL\"]}", CAP(CAP_SYS_ADMIN), false },
                { "\"excludes\":{\"caps\":[\"CAP_SYS_ADMIN\",\"CAP_KILL\"]}", CAP(CAP_CHOWN), true },
                { "\"includes\":{\"caps\":[\"CAP_OF_THE_FUTURE\"]}", UINT64_MAX, false },
                { "\"excludes\":{\"caps\":[\"CAP_OF_THE_FUTURE\"]}", UINT64_MAX, true },
                { "\"includes\":{\"arches\":[\"native\",\"sh\"]}", 0, true },
                { "\"includes\":{\"arches\":[\"sh\"]}", 0, false },
                { "\"excludes\":{\"arches\":[\"native\"]}", 0, false },
                { "\"includes\":{\"minKernel\":\"4.8\"}", 0, true },
                { "\"includes\":{\"minKernel\":\"9999.0\"}", 0, false },
                { "\"excludes\":{\"minKernel\":\"4.8\"}", 0, false },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_filter_ SeccompFilter *filter = NULL;
                char json[256];

                (void) snprintf(json, sizeof(json),
                                TOP("\"syscalls\":[{\"names\":[\"dup\"],\"action\":\"SCMP_ACT_LOG\",%s}]"),
                                cases[i].condition);
                filter = compile(json, cases[i].capabilities);
                if (ask(filter, "dup", 0) != (cases[i].applies ? SECCOMP_RET_LOG : ALLOW))
                        fail_msg("%s", cases[i].condition);
        }
}

static void test_flags(void **state) {
        _cleanup_filter_ SeccompFilter *none = NULL, *some = NULL;

        none = compile(TOP("\"flags\":[]"), 0);
        assert_int_equal(none->flags, 0);
        some = compile(TOP("\"flags\":[\"SECCOMP_FILTER_FLAG_TSYNC\",\"SECCOMP_FILTER_FLAG_LOG\","
                           "\"SECCOMP_FILTER_FLAG_SPEC_ALLOW\"]"),
                       0);
        assert_int_equal(some->flags, SECCOMP_FILTER_FLAG_LOG | SECCOMP_FILTER_FLAG_SPEC_ALLOW);
}

static void test_contradicting_rules_are_an_error(void **state) {
        static const char json[] = TOP("\"syscalls\":["
                                       "{\"names\":[\"dup\"],\"action\":\"SCMP_ACT_LOG\","
                                       "\"args\":[{\"index\":0,\"value\":1,\"op\":\"SCMP_CMP_EQ\"}]},"
                                       "{\"names\":[\"dup\"],\"action\":\"SCMP_ACT_KILL\","
                                       "\"args\":[{\"index\":0,\"value\":1,\"op\":\"SCMP_CMP_EQ\"}]}]");
        _cleanup_bus_error_ sd_bus_error error = SD_BUS_ERROR_NULL;
        SeccompFilter *filter = NULL;

        assert_int_equal(seccomp_compile(json, strlen(json), 0, &filter, &error), -EINVAL);
        assert_string_equal(error.message,
                            "linux.seccomp.syscalls[1]: the rule for dup contradicts an earlier one");
}

static void test_other_architectures_kill_unless_listed(void **state) {
        _cleanup_filter_ SeccompFilter *alone = NULL, *listed = NULL;
        uint32_t foreign = seccomp_arch_native() == SCMP_ARCH_S390X ? SCMP_ARCH_X86 : SCMP_ARCH_S390X;

        alone = compile(TOP("\"architectures\":[]"), 0);
        assert_int_equal(ask_arch(alone, foreign, 1, 0, 0), SECCOMP_RET_KILL_PROCESS);
        /* One that this machine can't run is accepted, and costs nothing. */
        listed = compile(
                TOP("\"architectures\":[\"SCMP_ARCH_S390X\",\"SCMP_ARCH_X86_64\",\"SCMP_ARCH_AARCH64\"]"),
                0);
        assert_int_equal(listed->n, alone->n);
        if (seccomp_arch_native() != SCMP_ARCH_X86_64)
                return;
        {
                _cleanup_filter_ SeccompFilter *all = NULL;

                assert_int_equal(ask_arch(alone, AUDIT_ARCH_I386, 1, 0, 0), SECCOMP_RET_KILL_PROCESS);
                assert_int_equal(ask_arch(alone, AUDIT_ARCH_X86_64, 0x40000001, 0, 0),
                                 SECCOMP_RET_KILL_PROCESS);
                all = compile(
                        TOP("\"architectures\":[\"SCMP_ARCH_X86_64\",\"SCMP_ARCH_X86\",\"SCMP_ARCH_X32\"],"
                            "\"syscalls\":[{\"names\":[\"mmap2\",\"accept\",\"dup\"],"
                            "\"action\":\"SCMP_ACT_LOG\"}]"),
                        0);
                assert_int_equal(ask_arch(all, AUDIT_ARCH_I386, 1, 0, 0), ALLOW);
                assert_int_equal(ask_arch(all, AUDIT_ARCH_I386, 192, 0, 0), SECCOMP_RET_LOG);
                assert_int_equal(ask_arch(all, AUDIT_ARCH_I386, 41, 0, 0), SECCOMP_RET_LOG);
                /* accept is socketcall 5 there. */
                assert_int_equal(ask_arch(all, AUDIT_ARCH_I386, 102, 5, 0), SECCOMP_RET_LOG);
                assert_int_equal(ask_arch(all, AUDIT_ARCH_I386, 102, 1, 0), ALLOW);
                assert_int_equal(ask_arch(all, AUDIT_ARCH_X86_64, 32, 0, 0), SECCOMP_RET_LOG);
                assert_int_equal(ask_arch(all, AUDIT_ARCH_X86_64, 0x40000001, 0, 0), ALLOW);
                assert_int_equal(ask_arch(all, AUDIT_ARCH_X86_64, 0x40000020, 0, 0), SECCOMP_RET_LOG);
        }
}

/* ---- The default profile. */

static void test_precompiled_default_equals_a_compiled_one(void **state) {
        _cleanup_filter_ SeccompFilter *built_in = NULL, *compiled = NULL;
        _cleanup_bus_error_ sd_bus_error error = SD_BUS_ERROR_NULL;
        _cleanup_free_ char *json = NULL;
        size_t size;

        built_in = default_filter(CAPS_DEFAULT);
        assert_int_equal(fd_read_file(AT_FDCWD, SECCOMP_DEFAULT, 0, 1 << 20, &json, &size), 0);
        assert_int_equal(seccomp_compile(json, size, CAPS_DEFAULT, &compiled, &error), 0);
        assert_int_equal(built_in->flags, compiled->flags);
        assert_int_equal(built_in->n, compiled->n);
        assert_memory_equal(built_in->program, compiled->program, built_in->n * sizeof(struct sock_filter));
}

static void test_cache_keeps_one_filter_for_each_outcome(void **state) {
        _cleanup_cache_ SeccompCache *cache = seccomp_cache_new();
        _cleanup_filter_ SeccompFilter *a = NULL, *b = NULL, *c = NULL, *d = NULL;

        assert_int_equal(seccomp_cache_get_default(cache, CAPS_DEFAULT, &a, NULL), 0);
        /* The profile asks for nothing about CAP_KILL. */
        assert_int_equal(seccomp_cache_get_default(cache, CAPS_DEFAULT & ~CAP(CAP_KILL), &b, NULL), 0);
        assert_ptr_equal(a, b);
        assert_int_equal(seccomp_cache_get_default(cache, CAPS_DEFAULT | CAP(CAP_SYS_ADMIN), &c, NULL), 0);
        assert_ptr_not_equal(a, c);
        assert_int_equal(seccomp_cache_get_default(cache, CAPS_DEFAULT | CAP(CAP_SYS_ADMIN), &d, NULL), 0);
        assert_ptr_equal(c, d);
        /* References outlive the cache. */
        cache = seccomp_cache_free(cache);
        assert_int_equal(ask(c, "mount", 0), ALLOW);
}

static void test_cache_is_bounded(void **state) {
        static const cap_value_t relevant[] = { CAP_SYS_ADMIN, CAP_SYS_TIME, CAP_SYS_BOOT, CAP_SYS_NICE,
                                                CAP_BPF };
        _cleanup_cache_ SeccompCache *cache = seccomp_cache_new();
        _cleanup_filter_ SeccompFilter *first = NULL;

        for (unsigned i = 0; i < 20; i++) {
                _cleanup_filter_ SeccompFilter *filter = NULL;
                uint64_t capabilities = 0;

                for (unsigned j = 0; j < ELEMENTSOF(relevant); j++)
                        if (i & 1U << j)
                                capabilities |= CAP(relevant[j]);
                assert_int_equal(seccomp_cache_get_default(cache, capabilities, &filter, NULL), 0);
                assert_int_equal(ask(filter, "mount", 0), i & 1 ? ALLOW : ERROR(EPERM));
                assert_int_equal(ask(filter, "bpf", 0), i & 17 ? ALLOW : ERROR(EPERM));
                if (i == 0)
                        first = seccomp_filter_ref(filter);
        }
        /* It was put out for a later one, and still is what it was. */
        assert_int_equal(first->n_ref, 1);
        assert_int_equal(ask(first, "reboot", 0), ERROR(EPERM));
}

static void test_default_denies(void **state) {
        static const char *const denied[] = {
                "acct",
                "add_key",
                "bpf",
                "clock_settime",
                "delete_module",
                "fanotify_init",
                "finit_module",
                "fsconfig",
                "fsmount",
                "fsopen",
                "fspick",
                "init_module",
                "io_uring_enter",
                "io_uring_register",
                "io_uring_setup",
                "kcmp",
                "kexec_load",
                "keyctl",
                "lookup_dcookie",
                "mbind",
                "mount",
                "mount_setattr",
                "move_mount",
                "move_pages",
                "nfsservctl",
                "open_by_handle_at",
                "open_tree",
                "perf_event_open",
                "pidfd_getfd",
                "pivot_root",
                "process_madvise",
                "quotactl",
                "quotactl_fd",
                "reboot",
                "request_key",
                "set_mempolicy",
                "setdomainname",
                "sethostname",
                "setns",
                "settimeofday",
                "swapoff",
                "swapon",
                "syslog",
                "umount2",
                "unshare",
                "userfaultfd",
                "vhangup",
        };
        static const char *const allowed[] = {
                "accept4",
                "chroot",
                "close_range",
                "execve",
                "execveat",
                "exit_group",
                "faccessat2",
                "futex",
                "getpid",
                "getrandom",
                "ioctl",
                "kill",
                "landlock_restrict_self",
                "memfd_create",
                "mknodat",
                "mmap",
                "mprotect",
                "openat2",
                "pidfd_open",
                "prctl",
                "prlimit64",
                "process_vm_readv",
                "ptrace",
                "read",
                "rseq",
                "seccomp",
                "setresuid",
                "statx",
                "wait4",
                "write",
        };
        _cleanup_filter_ SeccompFilter *filter = default_filter(CAPS_DEFAULT);

        for (size_t i = 0; i < ELEMENTSOF(denied); i++)
                if (ask(filter, denied[i], 0) != ERROR(EPERM))
                        fail_msg("%s: 0x%x", denied[i], ask(filter, denied[i], 0));
        for (size_t i = 0; i < ELEMENTSOF(allowed); i++)
                if (ask(filter, allowed[i], 0) != ALLOW)
                        fail_msg("%s: 0x%x", allowed[i], ask(filter, allowed[i], 0));
        assert_int_equal(ask(filter, "clone3", 0), ERROR(ENOSYS));
        /* What does not exist yet is said not to exist, so that callers fall back. */
        assert_int_equal(ask_arch(filter, seccomp_arch_native(), 900, 0, 0), ERROR(ENOSYS));
}

static void test_default_follows_the_capabilities(void **state) {
        static const struct {
                cap_value_t capability;
                const char *syscall;
        } cases[] = {
                { CAP_SYS_ADMIN, "mount" },
                { CAP_SYS_ADMIN, "unshare" },
                { CAP_SYS_ADMIN, "setns" },
                { CAP_SYS_ADMIN, "clone3" },
                { CAP_SYS_ADMIN, "bpf" },
                { CAP_SYS_ADMIN, "perf_event_open" },
                { CAP_SYS_ADMIN, "syslog" },
                { CAP_SYS_ADMIN, "sethostname" },
                { CAP_BPF, "bpf" },
                { CAP_PERFMON, "perf_event_open" },
                { CAP_SYSLOG, "syslog" },
                { CAP_DAC_READ_SEARCH, "open_by_handle_at" },
                { CAP_SYS_BOOT, "reboot" },
                { CAP_SYS_CHROOT, "chroot" },
                { CAP_SYS_MODULE, "init_module" },
                { CAP_SYS_NICE, "mbind" },
                { CAP_SYS_PACCT, "acct" },
                { CAP_SYS_PTRACE, "kcmp" },
                { CAP_SYS_TIME, "settimeofday" },
                { CAP_SYS_TTY_CONFIG, "vhangup" },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_filter_ SeccompFilter *with = NULL, *without = NULL;

                with = default_filter(CAP(cases[i].capability));
                without = default_filter(0);
                assert_int_equal(ask(with, cases[i].syscall, 0), ALLOW);
                assert_true(ask(without, cases[i].syscall, 0) != ALLOW);
        }
        {
                /* Nothing brings these back. */
                _cleanup_filter_ SeccompFilter *all = default_filter(UINT64_MAX);

                assert_int_equal(ask(all, "kexec_load", 0), ERROR(EPERM));
                assert_int_equal(ask(all, "keyctl", 0), ERROR(EPERM));
                assert_int_equal(ask(all, "io_uring_setup", 0), ERROR(EPERM));
                assert_int_equal(ask(all, "userfaultfd", 0), ERROR(EPERM));
        }
}

static void test_default_looks_at_arguments(void **state) {
        static const uint64_t namespaces[] = {
                CLONE_NEWNS,   CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC,
                CLONE_NEWUSER, CLONE_NEWPID,    CLONE_NEWNET,
        };
        _cleanup_filter_ SeccompFilter *filter = default_filter(CAPS_DEFAULT);
        _cleanup_filter_ SeccompFilter *admin = default_filter(CAPS_DEFAULT | CAP(CAP_SYS_ADMIN));
        const uint64_t thread = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
                                CLONE_SYSVSEM | CLONE_SETTLS | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID;

        assert_int_equal(ask(filter, "clone", SIGCHLD), ALLOW);
        assert_int_equal(ask(filter, "clone", thread), ALLOW);
        for (size_t i = 0; i < ELEMENTSOF(namespaces); i++) {
                assert_int_equal(ask(filter, "clone", namespaces[i] | SIGCHLD), ERROR(EPERM));
                assert_int_equal(ask(filter, "clone", namespaces[i] | UINT64_C(1) << 32), ERROR(EPERM));
                assert_int_equal(ask(admin, "clone", namespaces[i] | SIGCHLD), ALLOW);
        }

        /* Every family but one; and not the same one with bits above those that the kernel looks at. */
        for (uint64_t family = 0; family < 64; family++)
                assert_int_equal(ask(filter, "socket", family), family == AF_VSOCK ? ERROR(EPERM) : ALLOW);
        assert_int_equal(ask(filter, "socket", UINT64_C(0x100000000) | AF_VSOCK), ERROR(EPERM));
        assert_int_equal(ask(filter, "socket", UINT64_C(0xffffffff00000000) | AF_VSOCK), ERROR(EPERM));

        assert_int_equal(ask(filter, "personality", 0), ALLOW);
        assert_int_equal(ask(filter, "personality", 8), ALLOW);
        assert_int_equal(ask(filter, "personality", 0x20000), ALLOW);
        assert_int_equal(ask(filter, "personality", 0x20008), ALLOW);
        assert_int_equal(ask(filter, "personality", 0xffffffff), ALLOW);
        assert_int_equal(ask(filter, "personality", 0x40000), ERROR(EPERM));
        assert_int_equal(ask(filter, "personality", 0x400000), ERROR(ENOSYS));
        assert_int_equal(ask(filter, "personality", UINT64_C(0x100040000)), ERROR(ENOSYS));
}

static void test_default_for_32_bit_programs(void **state) {
        _cleanup_filter_ SeccompFilter *filter = default_filter(CAPS_DEFAULT);
        _cleanup_filter_ SeccompFilter *admin = default_filter(CAPS_DEFAULT | CAP(CAP_SYS_ADMIN));

        if (seccomp_arch_native() != SCMP_ARCH_X86_64)
                skip();
        assert_int_equal(ask_arch(filter, AUDIT_ARCH_I386, 20, 0, 0), ALLOW);        /* getpid */
        assert_int_equal(ask_arch(filter, AUDIT_ARCH_I386, 192, 0, 0), ALLOW);       /* mmap2 */
        assert_int_equal(ask_arch(filter, AUDIT_ARCH_I386, 403, 0, 0), ALLOW);       /* clock_gettime64 */
        assert_int_equal(ask_arch(filter, AUDIT_ARCH_I386, 21, 0, 0), ERROR(EPERM)); /* mount */
        assert_int_equal(ask_arch(admin, AUDIT_ARCH_I386, 21, 0, 0), ALLOW);
        assert_int_equal(ask_arch(filter, AUDIT_ARCH_I386, 22, 0, 0), ERROR(EPERM));  /* umount */
        assert_int_equal(ask_arch(filter, AUDIT_ARCH_I386, 310, 0, 0), ERROR(EPERM)); /* unshare */
        assert_int_equal(ask_arch(filter, AUDIT_ARCH_I386, 404, 0, 0), ERROR(EPERM)); /* clock_settime64 */
        assert_int_equal(ask_arch(filter, AUDIT_ARCH_I386, 120, SIGCHLD, 0), ALLOW);  /* clone */
        assert_int_equal(ask_arch(filter, AUDIT_ARCH_I386, 120, CLONE_NEWUSER, 0), ERROR(EPERM));
        assert_int_equal(ask_arch(filter, AUDIT_ARCH_I386, 359, AF_INET, 0), ALLOW); /* socket */
        assert_int_equal(ask_arch(filter, AUDIT_ARCH_I386, 359, AF_VSOCK, 0), ERROR(EPERM));
        /* socketcall: the C library's way to every socket; its arguments are out of a filter's reach. */
        for (uint64_t call = 1; call <= 20; call++)
                assert_int_equal(ask_arch(filter, AUDIT_ARCH_I386, 102, call, 0), ALLOW);
        for (uint64_t call = 1; call <= 24; call++)
                assert_int_equal(ask_arch(filter, AUDIT_ARCH_I386, 117, call, 0), ALLOW); /* ipc */
        assert_int_equal(ask_arch(filter, AUDIT_ARCH_X86_64, 0x40000001, 0, 0), SECCOMP_RET_KILL_PROCESS);
}

/* ---- In the kernel. Each step is an own exit status, so that a failure names it. */

#define STEP(condition)              \
        do {                         \
                step++;              \
                if (!(condition))    \
                        _exit(step); \
        } while (0)

static void install(const SeccompFilter *filter) {
        struct sock_fprog program = { .len = (unsigned short) filter->n, .filter = filter->program };

        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
                _exit(101);
        if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, filter->flags, &program) < 0)
                _exit(102);
}

static bool fails_with(long result, int error) {
        return result == -1 && errno == error;
}

static int wait_for(pid_t pid) {
        int status = -1;

        assert_true(pid > 0);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        return status;
}

static void test_kernel_applies_the_default(void **state) {
        _cleanup_filter_ SeccompFilter *filter = default_filter(CAPS_DEFAULT);
        pid_t pid;

        pid = fork();
        if (pid == 0) {
                int step = 0;

                install(filter);
                STEP(getpid() > 0);
                STEP(fails_with(syscall(SYS_mount, "none", "/nonexistent", "tmpfs", 0, NULL), EPERM));
                STEP(fails_with(syscall(SYS_unshare, CLONE_NEWUSER), EPERM));
                STEP(fails_with(syscall(SYS_unshare, 0), EPERM));
                STEP(fails_with(syscall(SYS_clone3, NULL, 0), ENOSYS));
                STEP(fails_with(syscall(SYS_bpf, -1, NULL, 0), EPERM));
                STEP(fails_with(syscall(SYS_keyctl, -1, 0, 0, 0, 0), EPERM));
                STEP(fails_with(syscall(SYS_io_uring_setup, 0, NULL), EPERM));
                STEP(fails_with(syscall(SYS_socket, AF_VSOCK, SOCK_STREAM, 0), EPERM));
                STEP(fails_with(syscall(SYS_socket, UINT64_C(0x100000000) | AF_VSOCK, SOCK_STREAM, 0),
                                EPERM));
                STEP(syscall(SYS_socket, AF_UNIX, SOCK_STREAM, 0) >= 0);
                STEP(fails_with(syscall(SYS_personality, 0x40000), EPERM));
                STEP(syscall(SYS_personality, 0xffffffff) >= 0);
                STEP(fails_with(syscall(900, 0), ENOSYS));
                /* The C library makes processes by the ways that are left. */
                STEP((pid = fork()) >= 0);
                if (pid == 0)
                        _exit(0);
                STEP(waitpid(pid, NULL, 0) == pid);
                _exit(0);
        }
        assert_int_equal(wait_for(pid), 0);
}

static void test_kernel_lets_unshare_pass_with_sys_admin(void **state) {
        _cleanup_filter_ SeccompFilter *filter = default_filter(CAPS_DEFAULT | CAP(CAP_SYS_ADMIN));
        pid_t pid;

        pid = fork();
        if (pid == 0) {
                int step = 0;

                install(filter);
                STEP(syscall(SYS_unshare, 0) == 0);
                STEP(fails_with(syscall(SYS_clone3, NULL, 0), EINVAL));
                STEP(fails_with(syscall(SYS_keyctl, -1, 0, 0, 0, 0), EPERM));
                _exit(0);
        }
        assert_int_equal(wait_for(pid), 0);
}

static void test_kernel_kills(void **state) {
        _cleanup_filter_ SeccompFilter *filter = NULL;
        int status;
        pid_t pid;

        filter = compile(TOP("\"syscalls\":[{\"names\":[\"dup\"],\"action\":\"SCMP_ACT_KILL_PROCESS\"}]"),
                         0);
        pid = fork();
        if (pid == 0) {
                install(filter);
                (void) syscall(SYS_dup, 0);
                _exit(0);
        }
        status = wait_for(pid);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), SIGSYS);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_errors_name_the_json_path),
                cmocka_unit_test(test_size_and_number_of_rules_have_limits),
                cmocka_unit_test(test_words),
                cmocka_unit_test(test_actions),
                cmocka_unit_test(test_operators),
                cmocka_unit_test(test_comparisons_of_one_argument_are_alternatives),
                cmocka_unit_test(test_conditions),
                cmocka_unit_test(test_flags),
                cmocka_unit_test(test_contradicting_rules_are_an_error),
                cmocka_unit_test(test_other_architectures_kill_unless_listed),
                cmocka_unit_test(test_precompiled_default_equals_a_compiled_one),
                cmocka_unit_test(test_cache_keeps_one_filter_for_each_outcome),
                cmocka_unit_test(test_cache_is_bounded),
                cmocka_unit_test(test_default_denies),
                cmocka_unit_test(test_default_follows_the_capabilities),
                cmocka_unit_test(test_default_looks_at_arguments),
                cmocka_unit_test(test_default_for_32_bit_programs),
                cmocka_unit_test(test_kernel_applies_the_default),
                cmocka_unit_test(test_kernel_lets_unshare_pass_with_sys_admin),
                cmocka_unit_test(test_kernel_kills),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
