/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/plan-environment.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/cleanup.h"
#include "util/strv.h"

typedef struct Variable {
        const char *text; /* borrowed from the spec */
        size_t key;       /* length of it */
        size_t index;
} Variable;

static size_t key_length(const char *text) {
        return (size_t) (strchrnul(text, '=') - text);
}

static int compare_keys(const Variable *a, const Variable *b) {
        int c;

        c = memcmp(a->text, b->text, a->key < b->key ? a->key : b->key);
        if (c != 0)
                return c;
        return (a->key > b->key) - (a->key < b->key);
}

/* By key, the last one of a key first. */
static int compare_variables(const void *x, const void *y) {
        const Variable *a = x, *b = y;
        int c;

        c = compare_keys(a, b);
        return c != 0 ? c : (a->index < b->index) - (a->index > b->index);
}

/* The spec's variables in their order, those left out that come again later. Sorting, since comparing each
 * with each would let a client with 4096 long variables keep the event loop busy. */
static int drop_overridden(char *const *environment, size_t n, const char **kept, size_t *ret_n) {
        _cleanup_free_ Variable *sorted = NULL;
        _cleanup_free_ bool *drop = NULL;
        size_t n_kept = 0;

        sorted = calloc(n, sizeof(Variable));
        drop = calloc(n, sizeof(bool));
        if (!sorted || !drop)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++)
                sorted[i] = (Variable) { environment[i], key_length(environment[i]), i };
        qsort(sorted, n, sizeof(Variable), compare_variables);
        for (size_t i = 1; i < n; i++)
                if (compare_keys(&sorted[i - 1], &sorted[i]) == 0)
                        drop[sorted[i].index] = true;
        for (size_t i = 0; i < n; i++)
                if (!drop[i])
                        kept[n_kept++] = environment[i];
        *ret_n = n_kept;
        return 0;
}

int plan_add_environment(PlanBuilder *builder, const Spec *spec, LaunchList *ret) {
        static const struct {
                const char *key, *text;
                bool terminal_only;
        } defaults[] = {
                { "PATH", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", false },
                { "container", "container=berth", false },
                { "TERM", "TERM=xterm", true },
        };
        _cleanup_free_ const char **variables = NULL;
        size_t n_given = strv_length(spec->environment), n_kept = 0, n = 0;
        int r;

        variables = calloc(n_given + ELEMENTSOF(defaults), sizeof(char *));
        if (!variables)
                return -ENOMEM;
        for (size_t i = 0; i < ELEMENTSOF(defaults); i++) {
                if (defaults[i].terminal_only && !spec->terminal)
                        continue;
                if (!strv_env_get(spec->environment, defaults[i].key))
                        variables[n++] = defaults[i].text;
        }
        if (n_given > 0) {
                r = drop_overridden(spec->environment, n_given, variables + n, &n_kept);
                if (r < 0)
                        return r;
        }
        *ret = plan_builder_list(builder, variables, n + n_kept, PLAN_ENVIRONMENT_SPARE);
        return 0;
}
