/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A seccomp profile as JSON. What is accepted is a program that the kernel could load: every jump stays inside. */
#include <string.h>

#include "interfaces/names.h"
#include "service/seccomp.h"
#include "tests/fuzz/fuzz.h"

#define CAPABILITIES UINT64_C(0xa80425fb)

static void check(const SeccompFilter *filter) {
        fuzz_assert(filter->n > 0 && filter->n <= BPF_MAXINSNS);
        for (size_t i = 0; i < filter->n; i++) {
                const struct sock_filter *f = &filter->program[i];

                if (BPF_CLASS(f->code) != BPF_JMP)
                        continue;
                if (BPF_OP(f->code) == BPF_JA)
                        fuzz_assert(f->k < filter->n - i - 1);
                else
                        fuzz_assert(f->jt < filter->n - i - 1 && f->jf < filter->n - i - 1);
        }
        fuzz_assert(BPF_CLASS(filter->program[filter->n - 1].code) == BPF_RET);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_(seccomp_filter_unrefp) SeccompFilter *filter = NULL;
        _cleanup_bus_error_ sd_bus_error error = SD_BUS_ERROR_NULL;
        int r;

        r = seccomp_compile((const char *) data, size, CAPABILITIES, &filter, &error);
        fuzz_assert(r <= 0);
        fuzz_assert((r == 0) == (filter != NULL));
        if (r == 0)
                check(filter);
        else if (r != -ENOMEM) {
                fuzz_assert(
                        sd_bus_error_has_names(&error, BERTH_ERROR_INVALID_SPEC, BERTH_ERROR_NOT_SUPPORTED));
                fuzz_assert(strncmp(error.message, "linux.seccomp", 13) == 0);
                /* It goes into a message of the bus, which is UTF-8. */
                for (const char *p = error.message; *p; p++)
                        fuzz_assert((unsigned char) *p >= ' ' && (unsigned char) *p < 0x7f);
        }
        return 0;
}
