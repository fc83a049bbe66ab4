/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "util/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <systemd/sd-journal.h>
#include <unistd.h>

#define LINE_MAX_BYTES 2048

/* The variable is inherited by whatever a service starts, so it must be standard error that it speaks of
 * (systemd.exec(5)). */
static bool is_journal(void) {
        const char *stream = getenv("JOURNAL_STREAM");
        uintmax_t device, inode;
        struct stat st;
        char end;

        return stream && sscanf(stream, "%ju:%ju%c", &device, &inode, &end) == 2 &&
               fstat(STDERR_FILENO, &st) >= 0 && st.st_dev == device && st.st_ino == inode;
}

__attribute__((format(printf, 4, 0))) static void
log_line(int priority, const char *container, const char *unit, const char *format, va_list ap) {
        char line[LINE_MAX_BYTES];
        int saved = errno;

        (void) vsnprintf(line, sizeof(line), format, ap);
        if (!is_journal()) {
                if (priority <= LOG_WARNING)
                        (void) fprintf(stderr, "berthd: %s\n", line);
        } else if (!container)
                (void) sd_journal_send("MESSAGE=%s", line, "PRIORITY=%i", priority, NULL);
        else if (!unit || !*unit)
                (void) sd_journal_send("MESSAGE=%s", line, "PRIORITY=%i", priority, "BERTH_CONTAINER=%s",
                                       container, NULL);
        else
                (void) sd_journal_send("MESSAGE=%s", line, "PRIORITY=%i", priority, "BERTH_CONTAINER=%s",
                                       container, "OBJECT_SYSTEMD_UNIT=%s", unit, "UNIT=%s", unit, NULL);
        errno = saved;
}

void log_message(int priority, const char *format, ...) {
        va_list ap;

        va_start(ap, format);
        log_line(priority, NULL, NULL, format, ap);
        va_end(ap);
}

void log_container(int priority, const char *container, const char *unit, const char *format, ...) {
        va_list ap;

        va_start(ap, format);
        log_line(priority, container, unit, format, ap);
        va_end(ap);
}
