/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a fuzz target is: one function, run by libFuzzer or by replay.c. It aborts when something is
 * wrong. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* assert() that no build type turns off. */
#define fuzz_assert(expression)    \
        do {                       \
                if (!(expression)) \
                        abort();   \
        } while (0)
