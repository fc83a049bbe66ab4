/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The functions that the compiler may call on its own account; only the freestanding program links them. */
#include <stddef.h>

void *memcpy(void *restrict to, const void *restrict from, size_t n);
void *memmove(void *to, const void *from, size_t n);
void *memset(void *to, int value, size_t n);
int memcmp(const void *a, const void *b, size_t n);
size_t strlen(const char *s);

void *memcpy(void *restrict to, const void *restrict from, size_t n) {
        char *t = to;
        const char *f = from;

        while (n--)
                *t++ = *f++;
        return to;
}

void *memmove(void *to, const void *from, size_t n) {
        char *t = to;
        const char *f = from;

        if (t <= f)
                return memcpy(to, from, n);
        while (n--)
                t[n] = f[n];
        return to;
}

void *memset(void *to, int value, size_t n) {
        char *t = to;

        while (n--)
                *t++ = (char) value;
        return to;
}

int memcmp(const void *a, const void *b, size_t n) {
        const unsigned char *x = a, *y = b;

        for (; n--; x++, y++)
                if (*x != *y)
                        return *x - *y;
        return 0;
}

size_t strlen(const char *s) {
        size_t n = 0;

        while (s[n])
                n++;
        return n;
}
