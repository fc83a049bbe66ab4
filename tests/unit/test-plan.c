/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <linux/mount.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>

#include <cmocka.h>

#include "service/plan.h"
#include "util/cleanup.h"
#include "util/strv.h"

typedef struct Built {
        void *data; /* owned */
        size_t size;
        const LaunchPlan *plan;
} Built;

static void built_done(Built *b) {
        free(b->data);
}
#define _cleanup_built_ _cleanup_(built_done)

static char *true_command[] = { (char *) "true", NULL };

static Spec minimal(void) {
        return (Spec) {
                .command = true_command,
                .root_directory = (char *) "/srv/root",
                .capabilities = 0xa80425fb,
        };
}

/* Strings and arrays are looked at only through these, so that every offset is held against the bounds. */
static const char *text(const Built *b, LaunchString s) {
        if (s == 0)
                return NULL;
        assert_true(s >= sizeof(LaunchPlan) && s < b->size);
        assert_non_null(memchr((const char *) b->data + s, 0, b->size - s));
        return (const char *) b->data + s;
}

static const void *array(const Built *b, uint32_t offset, size_t n, size_t element) {
        if (n == 0)
                return b->data;
        assert_int_equal(offset % 8, 0);
        assert_true(offset >= sizeof(LaunchPlan));
        assert_true(offset + n * element <= b->size);
        return (const char *) b->data + offset;
}

static const LaunchStep *step(const Built *b, size_t i) {
        const LaunchStep *steps = array(b, b->plan->steps.offset, b->plan->steps.n, sizeof(LaunchStep));

        assert_true(i < b->plan->steps.n);
        return &steps[i];
}

static const char *entry(const Built *b, LaunchList list, size_t i) {
        const uint64_t *slots = array(b, list.offset, list.slots, sizeof(uint64_t));

        assert_true(i < list.n);
        return text(b, (LaunchString) slots[i]);
}

static void check_list(const Built *b, LaunchList list, size_t spare) {
        const uint64_t *slots = array(b, list.offset, list.slots, sizeof(uint64_t));

        assert_true(list.slots >= list.n + 1 + spare);
        for (size_t i = 0; i < list.n; i++)
                assert_non_null(entry(b, list, i));
        for (size_t i = list.n; i < list.slots; i++)
                assert_int_equal(slots[i], 0);
}

static void build(const Spec *spec, const PlanContext *context, Built *b) {
        assert_int_equal(plan_build(spec, context, &b->data, &b->size), 0);
        b->plan = b->data;
        assert_int_equal(b->plan->size, b->size);
        assert_string_equal(text(b, b->plan->root), spec->root_directory);
        check_list(b, b->plan->arguments, 0);
        check_list(b, b->plan->environment, 4);
        check_list(b, b->plan->groups, 0);
        for (size_t i = 0; i < b->plan->steps.n; i++) {
                assert_true(step(b, i)->kind < _LAUNCH_STEP_MAX);
                assert_int_equal(text(b, step(b, i)->target)[0], '/');
                (void) text(b, step(b, i)->source);
                (void) text(b, step(b, i)->type);
                (void) text(b, step(b, i)->data);
        }
}

/* The place of the n-th step on target, or -1. */
static int find(const Built *b, const char *target, unsigned n) {
        for (size_t i = 0; i < b->plan->steps.n; i++)
                if (strcmp(text(b, step(b, i)->target), target) == 0 && n-- == 0)
                        return (int) i;
        return -1;
}

static const LaunchStep *get(const Built *b, const char *target) {
        int i = find(b, target, 0);

        assert_true(i >= 0);
        return step(b, (size_t) i);
}

static bool environment_has(const Built *b, const char *variable) {
        for (uint32_t i = 0; i < b->plan->environment.n; i++)
                if (strcmp(entry(b, b->plan->environment, i), variable) == 0)
                        return true;
        return false;
}

static void test_standard_steps_in_order(void **state) {
        static const struct {
                const char *target;
                LaunchStepKind kind;
        } expected[] = {
                { "/proc", LAUNCH_STEP_FILESYSTEM },          { "/dev", LAUNCH_STEP_FILESYSTEM },
                { "/dev/pts", LAUNCH_STEP_DEVPTS },           { "/dev/shm", LAUNCH_STEP_FILESYSTEM },
                { "/dev/mqueue", LAUNCH_STEP_FILESYSTEM },    { "/sys", LAUNCH_STEP_FILESYSTEM },
                { "/sys/fs/cgroup", LAUNCH_STEP_FILESYSTEM }, { "/dev/null", LAUNCH_STEP_DEVICE },
                { "/dev/zero", LAUNCH_STEP_DEVICE },          { "/dev/full", LAUNCH_STEP_DEVICE },
                { "/dev/random", LAUNCH_STEP_DEVICE },        { "/dev/urandom", LAUNCH_STEP_DEVICE },
                { "/dev/tty", LAUNCH_STEP_DEVICE },           { "/dev/fd", LAUNCH_STEP_SYMLINK },
                { "/dev/stdin", LAUNCH_STEP_SYMLINK },        { "/dev/stdout", LAUNCH_STEP_SYMLINK },
                { "/dev/stderr", LAUNCH_STEP_SYMLINK },       { "/dev/ptmx", LAUNCH_STEP_SYMLINK },
        };
        Spec spec = minimal();
        PlanContext context = { .name = "web" };
        _cleanup_built_ Built b = { 0 };

        build(&spec, &context, &b);
        for (size_t i = 0; i < ELEMENTSOF(expected); i++) {
                assert_string_equal(text(&b, step(&b, i)->target), expected[i].target);
                assert_int_equal(step(&b, i)->kind, expected[i].kind);
        }
        for (size_t i = ELEMENTSOF(expected); i < b.plan->steps.n; i++)
                assert_true(step(&b, i)->kind == LAUNCH_STEP_MASK ||
                            step(&b, i)->kind == LAUNCH_STEP_READ_ONLY);
        assert_int_equal(get(&b, "/proc/kcore")->kind, LAUNCH_STEP_MASK);
        assert_int_equal(get(&b, "/sys/firmware")->kind, LAUNCH_STEP_MASK);
        assert_int_equal(get(&b, "/proc/sys")->kind, LAUNCH_STEP_READ_ONLY);
        assert_int_equal(get(&b, "/proc/sysrq-trigger")->kind, LAUNCH_STEP_READ_ONLY);
        assert_int_equal(find(&b, "/dev/console", 0), -1);
        assert_int_equal(find(&b, "/etc/resolv.conf", 0), -1);
}

static void test_attributes_of_the_standard_mounts(void **state) {
        const uint64_t safe = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;
        Spec spec = minimal();
        PlanContext context = { .name = "web" };
        _cleanup_built_ Built b = { 0 };
        const LaunchStep *s;

        build(&spec, &context, &b);
        assert_int_equal(get(&b, "/proc")->attr_set, safe);
        assert_string_equal(text(&b, get(&b, "/proc")->type), "proc");
        s = get(&b, "/dev");
        assert_int_equal(s->attr_set, MOUNT_ATTR_NOSUID | MOUNT_ATTR_STRICTATIME);
        assert_string_equal(text(&b, s->data), "mode=755,size=65536k");
        assert_int_equal(get(&b, "/dev/shm")->attr_set, safe);
        assert_string_equal(text(&b, get(&b, "/dev/shm")->data), "mode=1777,size=65536k");
        assert_int_equal(get(&b, "/dev/mqueue")->attr_set, safe);
        assert_int_equal(get(&b, "/sys")->attr_set, safe | MOUNT_ATTR_RDONLY);
        s = get(&b, "/sys/fs/cgroup");
        assert_int_equal(s->attr_set, safe | MOUNT_ATTR_RDONLY);
        assert_string_equal(text(&b, s->type), "cgroup2");
        assert_true(s->flags & LAUNCH_STEP_FLAG_LATE && s->flags & LAUNCH_STEP_FLAG_OPTIONAL);
        assert_string_equal(text(&b, get(&b, "/dev/pts")->data),
                            "newinstance,ptmxmode=0666,mode=0620,max=1024,gid=5");
        s = get(&b, "/dev/urandom");
        assert_int_equal(s->major, 1);
        assert_int_equal(s->minor, 9);
        assert_int_equal(s->mode, 0666);
        assert_string_equal(text(&b, s->source), "/dev/urandom");
        assert_string_equal(text(&b, get(&b, "/dev/ptmx")->source), "pts/ptmx");
        assert_string_equal(text(&b, get(&b, "/dev/stderr")->source), "/proc/self/fd/2");
}

static void test_nested_targets_are_marked(void **state) {
        SpecMount mounts[] = {
                { .destination = (char *) "/data",
                  .type = (char *) "bind",
                  .source = (char *) "/a",
                  .bind = true },
                { .destination = (char *) "/database",
                  .type = (char *) "tmpfs",
                  .source = (char *) "tmpfs" },
                { .destination = (char *) "/data/x",
                  .type = (char *) "bind",
                  .source = (char *) "/b",
                  .bind = true },
                { .destination = (char *) "/data", .type = (char *) "tmpfs", .source = (char *) "tmpfs" },
                { .destination = (char *) "/sys/fs/cgroup/x",
                  .type = (char *) "tmpfs",
                  .source = (char *) "t" },
        };
        Spec spec = minimal();
        PlanContext context = { .name = "web" };
        _cleanup_built_ Built b = { 0 };

        spec.mounts = mounts;
        spec.n_mounts = ELEMENTSOF(mounts);
        build(&spec, &context, &b);
        assert_false(get(&b, "/proc")->flags & LAUNCH_STEP_FLAG_NESTED);
        assert_true(get(&b, "/dev/null")->flags & LAUNCH_STEP_FLAG_NESTED);
        assert_true(get(&b, "/proc/sys")->flags & LAUNCH_STEP_FLAG_NESTED);
        assert_false(get(&b, "/data")->flags & LAUNCH_STEP_FLAG_NESTED);
        assert_false(get(&b, "/database")->flags & LAUNCH_STEP_FLAG_NESTED);
        assert_true(get(&b, "/data/x")->flags & LAUNCH_STEP_FLAG_NESTED);
        assert_true(step(&b, (size_t) find(&b, "/data", 1))->flags & LAUNCH_STEP_FLAG_NESTED);
        assert_true(find(&b, "/data", 0) < find(&b, "/database", 0));
        assert_true(find(&b, "/database", 0) < find(&b, "/data/x", 0));
        assert_true(find(&b, "/data/x", 0) < find(&b, "/data", 1));
        assert_true(find(&b, "/data", 1) < find(&b, "/proc/kcore", 0));
        assert_true(get(&b, "/sys/fs/cgroup/x")->flags & LAUNCH_STEP_FLAG_LATE);
        assert_false(get(&b, "/sys/firmware")->flags & LAUNCH_STEP_FLAG_LATE);
}

static void test_a_mount_replaces_the_standard_one_in_its_place(void **state) {
        SpecMount mounts[] = {
                { .destination = (char *) "/data", .type = (char *) "tmpfs", .source = (char *) "tmpfs" },
                { .destination = (char *) "/dev/shm",
                  .type = (char *) "tmpfs",
                  .source = (char *) "big",
                  .data = (char *) "size=1g" },
                { .destination = (char *) "/dev/random",
                  .type = (char *) "bind",
                  .source = (char *) "/dev/urandom",
                  .bind = true },
                { .destination = (char *) "/proc/keys",
                  .type = (char *) "bind",
                  .source = (char *) "/keys",
                  .bind = true },
                { .destination = (char *) "/dev/pts",
                  .type = (char *) "devpts",
                  .source = (char *) "devpts",
                  .attr_set = MOUNT_ATTR_NOEXEC },
        };
        Spec spec = minimal();
        PlanContext context = { .name = "web" };
        _cleanup_built_ Built b = { 0 };
        const LaunchStep *s;

        spec.mounts = mounts;
        spec.n_mounts = ELEMENTSOF(mounts);
        build(&spec, &context, &b);
        assert_int_equal(find(&b, "/dev/shm", 1), -1);
        assert_string_equal(text(&b, get(&b, "/dev/shm")->data), "size=1g");
        assert_true(find(&b, "/dev/shm", 0) < find(&b, "/dev/mqueue", 0));
        assert_int_equal(get(&b, "/dev/random")->kind, LAUNCH_STEP_BIND);
        assert_int_equal(find(&b, "/dev/random", 1), -1);
        assert_int_equal(get(&b, "/proc/keys")->kind, LAUNCH_STEP_BIND);
        assert_int_equal(find(&b, "/proc/keys", 1), -1);
        s = get(&b, "/dev/pts");
        assert_int_equal(s->kind, LAUNCH_STEP_DEVPTS);
        assert_int_equal(s->attr_set, MOUNT_ATTR_NOEXEC);
        assert_string_equal(text(&b, s->data), "newinstance,ptmxmode=0666,mode=0620,max=1024,gid=5");
        assert_true(find(&b, "/data", 0) > find(&b, "/dev/ptmx", 0));
}

static void test_nothing_is_made_in_a_bound_dev(void **state) {
        SpecMount mounts[] = {
                { .destination = (char *) "/dev",
                  .type = (char *) "bind",
                  .source = (char *) "/dev",
                  .bind = true,
                  .recursive = true },
        };
        Spec spec = minimal();
        PlanContext context = { .name = "web" };
        _cleanup_built_ Built b = { 0 };

        spec.mounts = mounts;
        spec.n_mounts = 1;
        spec.terminal = true;
        build(&spec, &context, &b);
        assert_int_equal(get(&b, "/dev")->kind, LAUNCH_STEP_BIND);
        assert_true(get(&b, "/dev")->flags & LAUNCH_STEP_FLAG_RECURSIVE);
        assert_int_equal(find(&b, "/dev/null", 0), -1);
        assert_int_equal(find(&b, "/dev/fd", 0), -1);
        assert_true(get(&b, "/dev/pts")->flags & LAUNCH_STEP_FLAG_IF_TARGET);
        assert_true(get(&b, "/dev/console")->flags & LAUNCH_STEP_FLAG_IF_TARGET);
}

static void test_options_of_mounts_arrive(void **state) {
        SpecMount mounts[] = {
                { .destination = (char *) "/a",
                  .type = (char *) "bind",
                  .source = (char *) "/src",
                  .bind = true,
                  .recursive = true,
                  .attr_set = MOUNT_ATTR_RDONLY,
                  .propagation = MS_SLAVE },
                { .destination = (char *) "/b",
                  .type = (char *) "bind",
                  .source = (char *) "/src",
                  .bind = true,
                  .recursive = true,
                  .attr_set_recursive = MOUNT_ATTR_RDONLY,
                  .attr_clear = MOUNT_ATTR_NOEXEC,
                  .propagation = MS_SHARED,
                  .propagation_recursive = true },
                { .destination = (char *) "/c",
                  .type = (char *) "tmpfs",
                  .source = (char *) "none",
                  .data = (char *) "mode=700",
                  .superblock_read_only = true },
                { .destination = (char *) "/d", .type = (char *) "cgroup", .source = (char *) "cgroup" },
        };
        Spec spec = minimal();
        PlanContext context = { .name = "web" };
        _cleanup_built_ Built b = { 0 };
        const LaunchStep *s;

        spec.mounts = mounts;
        spec.n_mounts = ELEMENTSOF(mounts);
        build(&spec, &context, &b);
        s = get(&b, "/a");
        assert_int_equal(s->flags, LAUNCH_STEP_FLAG_RECURSIVE);
        assert_int_equal(s->attr_set, MOUNT_ATTR_RDONLY);
        assert_int_equal(s->propagation, MS_SLAVE);
        assert_string_equal(text(&b, s->source), "/src");
        assert_int_equal(s->type, 0);
        s = get(&b, "/b");
        assert_int_equal(s->flags, LAUNCH_STEP_FLAG_RECURSIVE | LAUNCH_STEP_FLAG_RECURSIVE_PROPAGATION);
        assert_int_equal(s->propagation, MS_SHARED);
        assert_int_equal(s->attr_set, 0);
        assert_int_equal(s->attr_clear, MOUNT_ATTR_NOEXEC);
        assert_int_equal(s->attr_set_recursive, MOUNT_ATTR_RDONLY);
        assert_int_equal(s->attr_clear_recursive, 0);
        s = get(&b, "/c");
        assert_int_equal(s->kind, LAUNCH_STEP_FILESYSTEM);
        assert_int_equal(s->sb_read_only, 1);
        assert_string_equal(text(&b, s->type), "tmpfs");
        assert_string_equal(text(&b, s->data), "mode=700");
        s = get(&b, "/d");
        assert_string_equal(text(&b, s->type), "cgroup2");
        assert_true(s->flags & LAUNCH_STEP_FLAG_LATE);
}

static void test_host_network(void **state) {
        SpecMount own = {
                .destination = (char *) "/etc/resolv.conf",
                .type = (char *) "bind",
                .source = (char *) "/x",
                .bind = true,
        };
        Spec spec = minimal();
        PlanContext context = { .name = "web" };
        _cleanup_built_ Built root = { 0 }, user = { 0 }, named = { 0 };
        const LaunchStep *s;

        spec.network = SPEC_NETWORK_HOST;
        build(&spec, &context, &root);
        assert_int_equal(root.plan->clone_flags, CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWUTS | CLONE_NEWIPC);
        assert_false(root.plan->flags & LAUNCH_PLAN_NETWORK_LOOPBACK);
        assert_int_equal(get(&root, "/sys")->kind, LAUNCH_STEP_FILESYSTEM);
        s = get(&root, "/etc/resolv.conf");
        assert_int_equal(s->kind, LAUNCH_STEP_BIND);
        assert_true(s->flags & LAUNCH_STEP_FLAG_IF_TARGET);
        assert_true(s->attr_set & MOUNT_ATTR_RDONLY);

        context.user_namespace = true;
        build(&spec, &context, &user);
        s = get(&user, "/sys");
        assert_int_equal(s->kind, LAUNCH_STEP_BIND);
        assert_true(s->flags & LAUNCH_STEP_FLAG_RECURSIVE);
        assert_true(s->attr_set_recursive & MOUNT_ATTR_RDONLY);
        assert_string_equal(text(&user, s->source), "/sys");
        assert_int_equal(s->type, 0);

        spec.mounts = &own;
        spec.n_mounts = 1;
        build(&spec, &context, &named);
        assert_string_equal(text(&named, get(&named, "/etc/resolv.conf")->source), "/x");
        assert_int_equal(find(&named, "/etc/resolv.conf", 1), -1);
}

static void test_environment_defaults_and_overrides(void **state) {
        char *given[] = { (char *) "A=1", (char *) "PATH=/bin", (char *) "AB=2", (char *) "A=3", NULL };
        Spec spec = minimal();
        PlanContext context = { .name = "web" };
        _cleanup_built_ Built plain = { 0 }, full = { 0 };

        build(&spec, &context, &plain);
        assert_int_equal(plain.plan->environment.n, 2);
        assert_true(environment_has(&plain,
                                    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"));
        assert_true(environment_has(&plain, "container=berth"));

        spec.environment = given;
        spec.terminal = true;
        build(&spec, &context, &full);
        assert_int_equal(full.plan->environment.n, 5);
        assert_string_equal(entry(&full, full.plan->environment, 0), "container=berth");
        assert_string_equal(entry(&full, full.plan->environment, 1), "TERM=xterm");
        assert_string_equal(entry(&full, full.plan->environment, 2), "PATH=/bin");
        assert_string_equal(entry(&full, full.plan->environment, 3), "AB=2");
        assert_string_equal(entry(&full, full.plan->environment, 4), "A=3");
}

static void test_flags_and_terminal(void **state) {
        Spec spec = minimal();
        PlanContext context = { .name = "web", .send_devpts = true };
        _cleanup_built_ Built none = { 0 }, all = { 0 };

        build(&spec, &context, &none);
        /* The devpts is there for whatever process may want a terminal later. */
        assert_int_equal(none.plan->flags, LAUNCH_PLAN_CGROUP_NAMESPACE | LAUNCH_PLAN_NETWORK_LOOPBACK |
                                                   LAUNCH_PLAN_SEND_DEVPTS);
        assert_int_equal(none.plan->rows, 0);

        spec.terminal = spec.read_only = spec.ephemeral = spec.no_new_privileges = true;
        spec.oom_score_adjust_set = true;
        spec.oom_score_adjust = -7;
        context = (PlanContext) {
                .name = "web",
                .user_namespace = true,
                .one_id = true,
                .send_devpts = true,
                .cgroup_gate = true,
                .die_with_parent = true,
                .rows = 50,
        };
        build(&spec, &context, &all);
        assert_int_equal(all.plan->flags,
                         LAUNCH_PLAN_USER_NAMESPACE | LAUNCH_PLAN_CGROUP_GATE |
                                 LAUNCH_PLAN_CGROUP_NAMESPACE | LAUNCH_PLAN_NETWORK_LOOPBACK |
                                 LAUNCH_PLAN_READ_ONLY | LAUNCH_PLAN_EPHEMERAL | LAUNCH_PLAN_TERMINAL |
                                 LAUNCH_PLAN_SEND_DEVPTS | LAUNCH_PLAN_NO_NEW_PRIVILEGES |
                                 LAUNCH_PLAN_OOM_SCORE_ADJUST | LAUNCH_PLAN_SETGROUPS_DENIED |
                                 LAUNCH_PLAN_DIE_WITH_PARENT);
        assert_int_equal(all.plan->clone_flags, CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWUTS | CLONE_NEWIPC |
                                                        CLONE_NEWNET | CLONE_NEWUSER);
        assert_int_equal(all.plan->oom_score_adjust, -7);
        assert_int_equal(all.plan->rows, 24);
        assert_int_equal(all.plan->columns, 80);
        assert_int_equal(get(&all, "/dev/console")->kind, LAUNCH_STEP_CONSOLE);
        assert_string_equal(text(&all, get(&all, "/dev/pts")->data),
                            "newinstance,ptmxmode=0666,mode=0620,max=1024");
}

static void test_credentials_limits_and_filter(void **state) {
        char *groups[] = { (char *) "audio", (char *) "100", NULL };
        struct sock_filter program[] = {
                { .code = BPF_LD | BPF_W | BPF_ABS, .k = 4 },
                { .code = BPF_RET | BPF_K, .k = 0x7fff0000 },
        };
        Spec spec = minimal();
        PlanContext context = {
                .name = "web",
                .filter = program,
                .n_filter = ELEMENTSOF(program),
                .filter_flags = 2,
                .rows = 43,
                .columns = 132,
        };
        _cleanup_built_ Built number = { 0 }, name = { 0 };
        const LaunchLimit *limits;

        spec.uid = 1000;
        spec.gid = 7;
        spec.has_gid = true;
        spec.supplementary_groups = groups;
        spec.terminal = true;
        spec.limits_set = 1U << RLIMIT_NOFILE | 1U << RLIMIT_CORE;
        spec.limits[RLIMIT_NOFILE] = (struct rlimit) { 10, 20 };
        spec.limits[RLIMIT_CORE] = (struct rlimit) { 0, RLIM_INFINITY };
        build(&spec, &context, &number);
        assert_int_equal(number.plan->user, 0);
        assert_int_equal(number.plan->uid, 1000);
        assert_int_equal(number.plan->gid, 7);
        assert_int_equal(number.plan->has_gid, 1);
        assert_int_equal(number.plan->groups.n, 2);
        assert_string_equal(entry(&number, number.plan->groups, 0), "audio");
        assert_string_equal(entry(&number, number.plan->groups, 1), "100");
        assert_int_equal(number.plan->cap_bounding, 0xa80425fb);
        assert_int_equal(number.plan->cap_effective, 0xa80425fb);
        assert_int_equal(number.plan->cap_permitted, 0xa80425fb);
        assert_int_equal(number.plan->cap_inheritable, 0);
        assert_int_equal(number.plan->cap_ambient, 0);
        assert_int_equal(number.plan->rows, 43);
        assert_int_equal(number.plan->columns, 132);
        assert_string_equal(text(&number, number.plan->working_directory), "/");

        assert_int_equal(number.plan->limits.n, 2);
        limits = array(&number, number.plan->limits.offset, 2, sizeof(LaunchLimit));
        assert_int_equal(limits[0].resource, RLIMIT_CORE);
        assert_true(limits[0].hard == UINT64_MAX);
        assert_int_equal(limits[1].resource, RLIMIT_NOFILE);
        assert_int_equal(limits[1].soft, 10);
        assert_int_equal(limits[1].hard, 20);

        assert_int_equal(number.plan->filter.n, 2);
        assert_int_equal(number.plan->filter_flags, 2);
        assert_memory_equal(array(&number, number.plan->filter.offset, 2, sizeof(struct sock_filter)),
                            program, sizeof(program));

        spec.user = (char *) "daemon";
        spec.has_gid = false;
        spec.working_directory = (char *) "/tmp";
        build(&spec, &context, &name);
        assert_string_equal(text(&name, name.plan->user), "daemon");
        assert_int_equal(name.plan->has_gid, 0);
        assert_string_equal(text(&name, name.plan->working_directory), "/tmp");
}

static void test_hostname(void **state) {
        static const struct {
                const char *name, *expected;
        } cases[] = {
                { "web", "web" },
                { "a_b+c.d-e", "a-b-c.d-e" },
                { "a__", "a" },
                { "0123456789012345678901234567890123456789012345678901234567890123456789",
                  "0123456789012345678901234567890123456789012345678901234567890123" },
        };
        Spec spec = minimal();
        PlanContext context = { 0 };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_built_ Built b = { 0 };

                context.name = cases[i].name;
                build(&spec, &context, &b);
                assert_string_equal(text(&b, b.plan->hostname), cases[i].expected);
        }
        {
                _cleanup_built_ Built b = { 0 };

                spec.hostname = (char *) "given";
                build(&spec, &context, &b);
                assert_string_equal(text(&b, b.plan->hostname), "given");
        }
}

static void test_thermal_counters_are_hidden(void **state) {
        Spec spec = minimal();
        PlanContext context = { .name = "web", .n_throttle = 12 };
        _cleanup_built_ Built b = { 0 };

        build(&spec, &context, &b);
        assert_int_equal(get(&b, "/sys/devices/system/cpu/cpu0/thermal_throttle")->kind, LAUNCH_STEP_MASK);
        assert_int_equal(get(&b, "/sys/devices/system/cpu/cpu11/thermal_throttle")->kind, LAUNCH_STEP_MASK);
        assert_int_equal(find(&b, "/sys/devices/system/cpu/cpu12/thermal_throttle", 0), -1);
}

static void test_many_strings_stay_in_bounds(void **state) {
        _cleanup_strv_ char **environment = NULL;
        Spec spec = minimal();
        PlanContext context = { .name = "web" };
        _cleanup_built_ Built b = { 0 };

        for (unsigned i = 0; i < 1000; i++) {
                char variable[40];

                (void) snprintf(variable, sizeof(variable), "V%u=%u", i / 2, i);
                assert_int_equal(strv_append(&environment, variable), 0);
        }
        spec.environment = environment;
        build(&spec, &context, &b);
        assert_int_equal(b.plan->environment.n, 502);
        for (uint32_t i = 0; i < 500; i++) {
                char variable[40];

                (void) snprintf(variable, sizeof(variable), "V%u=%u", i, i * 2 + 1);
                assert_string_equal(entry(&b, b.plan->environment, i + 2), variable);
        }
}

static void test_too_large_is_refused(void **state) {
        _cleanup_free_ char *big = NULL;
        void *data = (void *) 7;
        char *command[] = { NULL, NULL };
        Spec spec = minimal();
        PlanContext context = { .name = "web" };
        size_t size = 7;

        big = malloc(LAUNCH_PLAN_MAX);
        assert_non_null(big);
        memset(big, 'x', LAUNCH_PLAN_MAX - 1);
        big[LAUNCH_PLAN_MAX - 1] = 0;
        command[0] = big;
        spec.command = command;
        assert_int_equal(plan_build(&spec, &context, &data, &size), -E2BIG);
        assert_ptr_equal(data, (void *) 7);
        assert_int_equal(size, 7);

        /* Half of it fits, twice that does not. */
        big[LAUNCH_PLAN_MAX / 2] = 0;
        assert_int_equal(plan_build(&spec, &context, &data, &size), 0);
        free(data);
        spec.working_directory = big;
        assert_int_equal(plan_build(&spec, &context, &data, &size), -E2BIG);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_standard_steps_in_order),
                cmocka_unit_test(test_attributes_of_the_standard_mounts),
                cmocka_unit_test(test_nested_targets_are_marked),
                cmocka_unit_test(test_a_mount_replaces_the_standard_one_in_its_place),
                cmocka_unit_test(test_nothing_is_made_in_a_bound_dev),
                cmocka_unit_test(test_options_of_mounts_arrive),
                cmocka_unit_test(test_host_network),
                cmocka_unit_test(test_environment_defaults_and_overrides),
                cmocka_unit_test(test_flags_and_terminal),
                cmocka_unit_test(test_credentials_limits_and_filter),
                cmocka_unit_test(test_hostname),
                cmocka_unit_test(test_thermal_counters_are_hidden),
                cmocka_unit_test(test_many_strings_stay_in_bounds),
                cmocka_unit_test(test_too_large_is_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
