/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Seccomp profiles in OCI's JSON form, compiled to BPF by libseccomp once per profile and kept. */
#pragma once

#include <linux/filter.h>
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-bus.h>

#include "util/cleanup.h"

/* A compiled profile: reference counted, immutable. */
typedef struct SeccompFilter {
        unsigned n_ref;
        size_t n;                    /* instructions */
        uint32_t flags;              /* SECCOMP_FILTER_FLAG_* for seccomp(2) */
        struct sock_filter *program; /* owned */
} SeccompFilter;

SeccompFilter *seccomp_filter_ref(SeccompFilter *filter);
SeccompFilter *seccomp_filter_unref(SeccompFilter *filter);
DEFINE_CLEANUP(SeccompFilter *, seccomp_filter_unref);

/* Compiles a profile (the `linux.seccomp` object of the OCI runtime spec, UTF-8 JSON of this size). `capabilities`
 * are those that the program gets: a rule with `includes.caps` or `excludes.caps` (an addition that the common
 * engines' profiles have too) is used accordingly. Syscall names that the library does not know are skipped. Errors:
 * InvalidSpec with the JSON path in the message. *ret is the caller's reference. */
int seccomp_compile(const char *json, size_t size, uint64_t capabilities, SeccompFilter **ret,
                    sd_bus_error *error);

/* The built-in default profile for these capabilities. Compiled filters are kept by `cache`, one for each different
 * outcome; the cache of the caller outlives none of the references it gave. */
typedef struct SeccompCache SeccompCache;
SeccompCache *seccomp_cache_new(void);
SeccompCache *seccomp_cache_free(SeccompCache *cache);
DEFINE_CLEANUP(SeccompCache *, seccomp_cache_free);
int seccomp_cache_get_default(SeccompCache *cache, uint64_t capabilities, SeccompFilter **ret,
                              sd_bus_error *error);
