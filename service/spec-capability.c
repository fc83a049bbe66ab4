/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/spec.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/capability.h>

#include "service/spec-check.h"
#include "util/quote.h"

#define BIT(capability) (UINT64_C(1) << (capability))

uint64_t spec_default_capabilities(void) {
        return BIT(CAP_AUDIT_WRITE) | BIT(CAP_CHOWN) | BIT(CAP_DAC_OVERRIDE) | BIT(CAP_FOWNER) |
               BIT(CAP_FSETID) | BIT(CAP_KILL) | BIT(CAP_MKNOD) | BIT(CAP_NET_BIND_SERVICE) |
               BIT(CAP_NET_RAW) | BIT(CAP_SETFCAP) | BIT(CAP_SETGID) | BIT(CAP_SETPCAP) | BIT(CAP_SETUID) |
               BIT(CAP_SYS_CHROOT);
}

/* Every capability of the running kernel. */
static uint64_t all_capabilities(void) {
        int n = cap_max_bits();

        return n >= 64 ? UINT64_MAX : BIT(n) - 1;
}

static int parse(const char *name, uint64_t *ret) {
        const char *bare = strncasecmp(name, "cap_", 4) == 0 ? name + 4 : name;
        char lower[64];
        cap_value_t value;
        int n;

        if (strcasecmp(name, "ALL") == 0) {
                *ret = all_capabilities();
                return 0;
        }
        n = snprintf(lower, sizeof(lower), "cap_%s", bare);
        if (n < 0 || (size_t) n >= sizeof(lower))
                return -EINVAL;
        /* The library would take numbers, and a name with something behind it. */
        for (char *p = lower; *p; p++) {
                if (!isalpha((unsigned char) *p) && *p != '_')
                        return -EINVAL;
                *p = (char) tolower((unsigned char) *p);
        }
        if (cap_from_name(lower, &value) < 0 || value >= cap_max_bits())
                return -EINVAL;
        *ret = BIT(value);
        return 0;
}

int spec_parse_capabilities(const char *key, char *const *names, uint64_t *ret, sd_bus_error *error) {
        uint64_t set = 0, bits;

        for (; names && *names; names++) {
                if (parse(*names, &bits) < 0)
                        return spec_invalid(error, "%s: the kernel has no capability %s.", key,
                                            QUOTE(*names));
                set |= bits;
        }
        *ret = set;
        return 0;
}

int spec_set_capabilities(Spec *spec, uint64_t set, uint64_t add, uint64_t drop, sd_bus_error *error) {
        uint64_t all = all_capabilities(), both = add & drop;

        if (add == all && drop == all)
                return spec_invalid(error, "AddCapabilities and DropCapabilities are both ALL.");
        if (drop == all)
                set = add;
        else if (add == all)
                set = all & ~drop;
        else if (both) {
                char *name = cap_to_name(__builtin_ctzll(both));
                int r;

                r = spec_invalid(error, "AddCapabilities and DropCapabilities have both %s.", name ?: "one");
                cap_free(name);
                return r;
        } else
                set = (set | add) & ~drop;
        spec->capabilities = set;
        spec->capabilities_named = set == all ? 0 : set & ~spec_default_capabilities();
        return 0;
}
