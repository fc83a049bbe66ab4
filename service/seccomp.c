/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/seccomp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "service/seccomp-default.h" /* generated */

/* Clients choose the capabilities, so there is an end to what is kept. */
#define CACHE_MAX 16U

typedef struct CacheEntry {
        uint64_t relevant;     /* those of the capabilities that the profile asks for */
        SeccompFilter *filter; /* owned */
} CacheEntry;

struct SeccompCache {
        CacheEntry entries[CACHE_MAX];
        size_t n;
        size_t next; /* replaced when it is full */
};

SeccompCache *seccomp_cache_new(void) {
        return calloc(1, sizeof(SeccompCache));
}

SeccompCache *seccomp_cache_free(SeccompCache *cache) {
        if (!cache)
                return NULL;
        for (size_t i = 0; i < cache->n; i++)
                seccomp_filter_unref(cache->entries[i].filter);
        free(cache);
        return NULL;
}

static int precompiled(SeccompFilter **ret) {
        _cleanup_(seccomp_filter_unrefp) SeccompFilter *filter = NULL;

        filter = calloc(1, sizeof(SeccompFilter));
        if (!filter)
                return -ENOMEM;
        filter->n_ref = 1;
        filter->program = malloc(sizeof(default_program));
        if (!filter->program)
                return -ENOMEM;
        memcpy(filter->program, default_program, sizeof(default_program));
        filter->n = ELEMENTSOF(default_program);
        filter->flags = DEFAULT_FLAGS;
        *ret = TAKE_PTR(filter);
        return 0;
}

int seccomp_cache_get_default(SeccompCache *cache, uint64_t capabilities, SeccompFilter **ret,
                              sd_bus_error *error) {
        uint64_t relevant = capabilities & DEFAULT_RELEVANT;
        SeccompFilter *filter;
        CacheEntry *entry;
        int r;

        for (size_t i = 0; i < cache->n; i++)
                if (cache->entries[i].relevant == relevant) {
                        *ret = seccomp_filter_ref(cache->entries[i].filter);
                        return 0;
                }
        if (relevant == DEFAULT_PRECOMPILED)
                r = precompiled(&filter);
        else
                r = seccomp_compile(default_json, sizeof(default_json) - 1, relevant, &filter, error);
        if (r < 0)
                return r;

        entry = &cache->entries[cache->next];
        cache->next = (cache->next + 1) % CACHE_MAX;
        if (cache->n < CACHE_MAX)
                cache->n++;
        else
                seccomp_filter_unref(entry->filter);
        *entry = (CacheEntry) { relevant, filter };
        *ret = seccomp_filter_ref(filter);
        return 0;
}
