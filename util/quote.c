/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "util/quote.h"

#include <string.h>

const char *quote(const char *text, char buffer[static QUOTE_SIZE]) {
        size_t max = QUOTE_SIZE - 4, n = strnlen(text, max + 1);

        if (n > max) {
                n = max;
                /* Cut before a character, not within one. */
                while (n > 0 && ((unsigned char) text[n] & 0xc0) == 0x80)
                        n--;
        }
        for (size_t i = 0; i < n; i++)
                buffer[i] = (unsigned char) text[i] < ' ' || text[i] == 0x7f ? '?' : text[i];
        strcpy(buffer + n, text[n] ? "..." : "");
        return buffer;
}
