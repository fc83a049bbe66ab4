/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <linux/mount.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "interfaces/names.h"
#include "service/spec.h"

#define LIST(...) ((char *const *) (const char *const[]) { __VA_ARGS__, NULL })

/* Adds one mount to a new spec and returns the spec. */
static Spec *with_mount(const char *destination, const char *type, const char *source,
                        char *const *options) {
        _cleanup_bus_error_ sd_bus_error error = SD_BUS_ERROR_NULL;
        Spec *spec = spec_new();

        if (spec_add_mount(spec, destination, type, source, options, &error) < 0)
                fail_msg("%s", error.message);
        assert_int_equal(spec->n_mounts, 1);
        return spec;
}

static void refuse(const char *name, const char *word, const char *destination, const char *type,
                   const char *source, char *const *options) {
        _cleanup_bus_error_ sd_bus_error error = SD_BUS_ERROR_NULL;
        _cleanup_spec_ Spec *spec = spec_new();

        assert_true(spec_add_mount(spec, destination, type, source, options, &error) < 0);
        assert_string_equal(error.name, name);
        assert_non_null(strstr(error.message, "Mounts"));
        if (!strstr(error.message, word))
                fail_msg("\"%s\" does not name %s", error.message, word);
        assert_int_equal(spec->n_mounts, 0);
}

static void test_attribute_words(void **state) {
        static const struct {
                const char *word, *inverse;
                uint64_t bit;
        } table[] = {
                { "ro", "rw", MOUNT_ATTR_RDONLY },
                { "nosuid", "suid", MOUNT_ATTR_NOSUID },
                { "nodev", "dev", MOUNT_ATTR_NODEV },
                { "noexec", "exec", MOUNT_ATTR_NOEXEC },
                { "nodiratime", "diratime", MOUNT_ATTR_NODIRATIME },
                { "nosymfollow", "symfollow", MOUNT_ATTR_NOSYMFOLLOW },
        };
        char recursive[32] = "r";

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                _cleanup_spec_ Spec *on = NULL, *off = NULL, *below = NULL, *off_below = NULL;

                on = with_mount("/m", "bind", "/s", LIST((char *) table[i].word));
                assert_int_equal(on->mounts[0].attr_set, table[i].bit);
                assert_int_equal(on->mounts[0].attr_clear, 0);
                assert_int_equal(on->mounts[0].attr_set_recursive | on->mounts[0].attr_clear_recursive, 0);

                off = with_mount("/m", "bind", "/s", LIST((char *) table[i].inverse));
                assert_int_equal(off->mounts[0].attr_set, 0);
                assert_int_equal(off->mounts[0].attr_clear, table[i].bit);

                strcpy(recursive + 1, table[i].word);
                below = with_mount("/m", "bind", "/s", LIST(recursive));
                assert_int_equal(below->mounts[0].attr_set_recursive, table[i].bit);
                assert_int_equal(below->mounts[0].attr_set | below->mounts[0].attr_clear, 0);

                strcpy(recursive + 1, table[i].inverse);
                off_below = with_mount("/m", "bind", "/s", LIST(recursive));
                assert_int_equal(off_below->mounts[0].attr_clear_recursive, table[i].bit);
                assert_int_equal(off_below->mounts[0].attr_set_recursive, 0);
        }
}

/* mount_setattr(2) refuses a kind of access time unless the whole field is cleared. */
static void test_access_times_clear_the_whole_field(void **state) {
        static const struct {
                const char *word;
                uint64_t set;
        } table[] = {
                { "noatime", MOUNT_ATTR_NOATIME },     { "strictatime", MOUNT_ATTR_STRICTATIME },
                { "relatime", MOUNT_ATTR_RELATIME },   { "atime", MOUNT_ATTR_RELATIME },
                { "norelatime", MOUNT_ATTR_RELATIME }, { "nostrictatime", MOUNT_ATTR_RELATIME },
        };
        char recursive[32] = "r";

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                _cleanup_spec_ Spec *spec = NULL, *below = NULL;

                spec = with_mount("/m", "bind", "/s",
                                  LIST("noatime", "strictatime", (char *) table[i].word));
                assert_int_equal(spec->mounts[0].attr_set, table[i].set);
                assert_int_equal(spec->mounts[0].attr_clear, MOUNT_ATTR__ATIME);

                strcpy(recursive + 1, table[i].word);
                below = with_mount("/m", "bind", "/s", LIST(recursive));
                assert_int_equal(below->mounts[0].attr_set_recursive, table[i].set);
                assert_int_equal(below->mounts[0].attr_clear_recursive, MOUNT_ATTR__ATIME);
        }
}

static void test_later_words_win(void **state) {
        _cleanup_spec_ Spec *a = NULL, *b = NULL, *c = NULL, *d = NULL;

        a = with_mount("/m", "bind", "/s", LIST("ro", "nosuid", "rw"));
        assert_int_equal(a->mounts[0].attr_set, MOUNT_ATTR_NOSUID);
        assert_int_equal(a->mounts[0].attr_clear, MOUNT_ATTR_RDONLY);
        b = with_mount("/m", "bind", "/s", LIST("rw,ro"));
        assert_int_equal(b->mounts[0].attr_set, MOUNT_ATTR_RDONLY);
        assert_int_equal(b->mounts[0].attr_clear, 0);
        /* Recursive ones are put on first: after them the mount's own may differ, before them it may not. */
        c = with_mount("/m", "bind", "/s", LIST("rro", "rw"));
        assert_int_equal(c->mounts[0].attr_set_recursive, MOUNT_ATTR_RDONLY);
        assert_int_equal(c->mounts[0].attr_clear, MOUNT_ATTR_RDONLY);
        d = with_mount("/m", "bind", "/s", LIST("rw", "rro"));
        assert_int_equal(d->mounts[0].attr_set_recursive, MOUNT_ATTR_RDONLY);
        assert_int_equal(d->mounts[0].attr_clear, 0);
}

static void test_propagation(void **state) {
        static const struct {
                const char *word;
                uint64_t propagation;
        } table[] = {
                { "private", MS_PRIVATE },
                { "shared", MS_SHARED },
                { "slave", MS_SLAVE },
                { "unbindable", MS_UNBINDABLE },
        };
        char recursive[32] = "r";

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                _cleanup_spec_ Spec *spec = NULL, *below = NULL;

                strcpy(recursive + 1, table[i].word);
                spec = with_mount("/m", "bind", "/s", LIST(recursive, (char *) table[i].word));
                assert_int_equal(spec->mounts[0].propagation, table[i].propagation);
                assert_false(spec->mounts[0].propagation_recursive);
                below = with_mount("/m", "bind", "/s", LIST("private", recursive));
                assert_int_equal(below->mounts[0].propagation, table[i].propagation);
                assert_true(below->mounts[0].propagation_recursive);
        }
}

static void test_binds(void **state) {
        _cleanup_spec_ Spec *a = NULL, *b = NULL, *c = NULL;

        a = with_mount("/m", "bind", "/s", NULL);
        assert_true(a->mounts[0].bind);
        assert_false(a->mounts[0].recursive);
        assert_false(a->mounts[0].superblock_read_only);
        b = with_mount("/m", "", "/s", LIST("defaults", "rbind", "ro"));
        assert_true(b->mounts[0].bind);
        assert_true(b->mounts[0].recursive);
        assert_string_equal(b->mounts[0].type, "bind");
        assert_string_equal(b->mounts[0].source, "/s");
        assert_null(b->mounts[0].data);
        assert_false(b->mounts[0].superblock_read_only);
        c = with_mount("/m", "none", "/s", LIST("rbind", "bind"));
        assert_true(c->mounts[0].bind);
        assert_false(c->mounts[0].recursive);

        refuse(BERTH_ERROR_INVALID_SPEC, "absolute", "/m", "bind", "s", NULL);
        refuse(BERTH_ERROR_INVALID_SPEC, "absolute", "/m", "bind", "", NULL);
        refuse(BERTH_ERROR_INVALID_SPEC, "tmpfs", "/m", "tmpfs", "/s", LIST("bind"));
        refuse(BERTH_ERROR_INVALID_SPEC, "size=1", "/m", "bind", "/s", LIST("size=1"));
        refuse(BERTH_ERROR_INVALID_SPEC, "sync", "/m", "bind", "/s", LIST("sync"));
        refuse(BERTH_ERROR_INVALID_SPEC, "lazytime", "/m", "none", "/s", LIST("rbind", "lazytime"));
}

static void test_file_systems(void **state) {
        _cleanup_spec_ Spec *a = NULL, *b = NULL;

        a = with_mount("/m", "tmpfs", "", LIST("nosuid", "mode=755", "size=64k", "sync", "ro"));
        assert_false(a->mounts[0].bind);
        assert_string_equal(a->mounts[0].type, "tmpfs");
        assert_string_equal(a->mounts[0].source, "tmpfs");
        assert_string_equal(a->mounts[0].data, "mode=755,size=64k,sync");
        assert_int_equal(a->mounts[0].attr_set, MOUNT_ATTR_NOSUID | MOUNT_ATTR_RDONLY);
        assert_true(a->mounts[0].superblock_read_only);
        /* There is nothing below, so the recursive words are the plain ones. */
        b = with_mount("/m", "tmpfs", "scratch", LIST("rro", "rnoatime", "strictatime", "rw", "rnodev"));
        assert_string_equal(b->mounts[0].source, "scratch");
        assert_int_equal(b->mounts[0].attr_set, MOUNT_ATTR_STRICTATIME | MOUNT_ATTR_NODEV);
        assert_int_equal(b->mounts[0].attr_clear, MOUNT_ATTR__ATIME | MOUNT_ATTR_RDONLY);
        assert_int_equal(b->mounts[0].attr_set_recursive | b->mounts[0].attr_clear_recursive, 0);
        assert_false(b->mounts[0].superblock_read_only);
        assert_null(b->mounts[0].data);

        refuse(BERTH_ERROR_INVALID_SPEC, "type", "/m", "", "/s", NULL);
        refuse(BERTH_ERROR_INVALID_SPEC, "type", "/m", "none", "/s", LIST("ro"));
        refuse(BERTH_ERROR_INVALID_SPEC, "tmp fs", "/m", "tmp fs", "", NULL);
}

static void test_unsupported_words_are_named(void **state) {
        refuse(BERTH_ERROR_NOT_SUPPORTED, "idmap", "/m", "bind", "/s", LIST("idmap"));
        refuse(BERTH_ERROR_NOT_SUPPORTED, "ridmap", "/m", "bind", "/s", LIST("ro,ridmap"));
        refuse(BERTH_ERROR_NOT_SUPPORTED, "idmap=uids", "/m", "bind", "/s", LIST("idmap=uids=0-1-1"));
        refuse(BERTH_ERROR_NOT_SUPPORTED, "tmpcopyup", "/m", "tmpfs", "", LIST("tmpcopyup"));
}

static void test_destinations(void **state) {
        static const struct {
                const char *given, *normal;
        } table[] = {
                { "/data", "/data" },
                { "data/x", "/data/x" },
                { "/../../etc//x/./", "/etc/x" },
                { "/a/../b", "/b" },
        };
        char longest[5000];

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                _cleanup_spec_ Spec *spec = with_mount(table[i].given, "tmpfs", "", NULL);

                assert_string_equal(spec->mounts[0].destination, table[i].normal);
        }
        refuse(BERTH_ERROR_INVALID_SPEC, "root", "/", "tmpfs", "", NULL);
        refuse(BERTH_ERROR_INVALID_SPEC, "root", "/a/..", "tmpfs", "", NULL);
        refuse(BERTH_ERROR_INVALID_SPEC, "empty", "", "tmpfs", "", NULL);
        memset(longest, 'a', sizeof(longest));
        longest[4096] = 0;
        refuse(BERTH_ERROR_INVALID_SPEC, "longer", longest, "tmpfs", "", NULL);
        longest[0] = '/';
        refuse(BERTH_ERROR_INVALID_SPEC, "absolute", "/m", "bind", longest, NULL);
}

static void test_limits(void **state) {
        _cleanup_bus_error_ sd_bus_error error = SD_BUS_ERROR_NULL;
        _cleanup_spec_ Spec *spec = spec_new();
        char word[300], *words[SPEC_MOUNT_OPTIONS_MAX + 2] = {};

        refuse(BERTH_ERROR_INVALID_SPEC, "empty", "/m", "tmpfs", "", LIST(""));
        refuse(BERTH_ERROR_INVALID_SPEC, "empty", "/m", "tmpfs", "", LIST("ro,"));
        memset(word, 'x', sizeof(word));
        word[256] = 0;
        refuse(BERTH_ERROR_INVALID_SPEC, "too long", "/m", "tmpfs", "", LIST(word));
        word[255] = 0;
        for (size_t i = 0; i < 17; i++)
                words[i] = word;
        refuse(BERTH_ERROR_INVALID_SPEC, "too many", "/m", "tmpfs", "", words);
        for (size_t i = 0; i <= SPEC_MOUNT_OPTIONS_MAX; i++)
                words[i] = (char *) "ro";
        refuse(BERTH_ERROR_INVALID_SPEC, "too many", "/m", "tmpfs", "", words);

        for (size_t i = 0; i < SPEC_MOUNTS_MAX; i++)
                assert_int_equal(spec_add_mount(spec, "/m", "tmpfs", "", NULL, NULL), 0);
        assert_true(spec_add_mount(spec, "/m", "tmpfs", "", NULL, &error) < 0);
        assert_string_equal(error.name, BERTH_ERROR_INVALID_SPEC);
        assert_int_equal(spec->n_mounts, SPEC_MOUNTS_MAX);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_attribute_words),
                cmocka_unit_test(test_access_times_clear_the_whole_field),
                cmocka_unit_test(test_later_words_win),
                cmocka_unit_test(test_propagation),
                cmocka_unit_test(test_binds),
                cmocka_unit_test(test_file_systems),
                cmocka_unit_test(test_unsupported_words_are_named),
                cmocka_unit_test(test_destinations),
                cmocka_unit_test(test_limits),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
