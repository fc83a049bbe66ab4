/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The lines of /proc/self/mountinfo. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct MountEntry {
        uint32_t id, parent;
        const char *point; /* unescaped; borrowed from the text, as type is */
        const char *type;
} MountEntry;

/* Takes the next line off *at, which lies in text that ends at end; the line is changed in place. Lines
 * that aren't well formed are passed over. False at the end. */
bool mountinfo_next(char **at, char *end, MountEntry *ret);

/* Maps a copy of the whole of /proc/self/mountinfo. The memory stays until the program is executed. */
int mountinfo_read(int self, char **ret_text, size_t *ret_size);
