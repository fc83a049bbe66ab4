/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/launch/mountinfo.h"

#include "service/launch/sys.h"
#include "service/launch/text.h"

/* A hundred thousand mounts, the kernel's limit, take less. */
#define MOUNTINFO_MAX (64U << 20)

/* Cuts the next word off the line; NULL when there is none. */
static char *next_word(char **at) {
        char *word = *at;

        if (!*word)
                return NULL;
        while (**at && **at != ' ')
                (*at)++;
        if (**at)
                *(*at)++ = 0;
        return word;
}

static bool is_octal(char c) {
        return c >= '0' && c <= '7';
}

static void unescape(char *text) {
        char *to = text;

        for (const char *p = text; *p; to++) {
                if (p[0] == '\\' && p[1] >= '0' && p[1] <= '3' && is_octal(p[2]) && is_octal(p[3])) {
                        *to = (char) ((p[1] - '0') * 64 + (p[2] - '0') * 8 + (p[3] - '0'));
                        p += 4;
                } else
                        *to = *p++;
        }
        *to = 0;
}

static bool parse_id(const char *word, uint32_t *ret) {
        uint64_t value;

        if (!word || !text_parse_number(word, text_length(word), UINT32_MAX, &value))
                return false;
        *ret = (uint32_t) value;
        return true;
}

static bool parse_line(char *line, MountEntry *ret) {
        MountEntry entry;
        char *word, *point;

        if (!parse_id(next_word(&line), &entry.id) || !parse_id(next_word(&line), &entry.parent) ||
            !next_word(&line) || !next_word(&line))
                return false;
        point = next_word(&line);
        if (!point || *point != '/')
                return false;
        unescape(point);
        entry.point = point;
        do
                word = next_word(&line);
        while (word && !text_equal(word, "-"));
        entry.type = word ? next_word(&line) : NULL;
        if (!entry.type)
                return false;
        *ret = entry;
        return true;
}

bool mountinfo_next(char **at, char *end, MountEntry *ret) {
        while (*at < end) {
                char *line = *at, *p = line;

                while (p < end && *p != '\n')
                        p++;
                if (p == end) /* not a whole line, and no room for its NUL */
                        return false;
                *p = 0;
                *at = p + 1;
                if (parse_line(line, ret))
                        return true;
        }
        return false;
}

int mountinfo_read(int self, char **ret_text, size_t *ret_size) {
        _cleanup_close_ int fd = -EBADF;
        size_t size = 0;
        char *text;

        fd = sys_openat(self, "mountinfo", O_RDONLY | O_CLOEXEC, 0);
        if (fd < 0)
                return fd;
        text = sys_allocate(MOUNTINFO_MAX);
        if (sys_is_error(text))
                return (int) (long) text;
        while (size < MOUNTINFO_MAX) {
                long n;

                n = sys_read(fd, text + size, MOUNTINFO_MAX - size);
                if (n == -EINTR)
                        continue;
                if (n < 0)
                        return (int) n;
                if (n == 0) {
                        *ret_text = text;
                        *ret_size = size;
                        return 0;
                }
                size += (size_t) n;
        }
        return -EFBIG;
}
