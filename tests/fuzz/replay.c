/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Runs a fuzz target over every file of the directories given, so that a corpus is a test. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "util/cleanup.h"
#include "util/fd.h"

static void closedirp(DIR **directory) {
        if (*directory)
                (void) closedir(*directory);
}

static int replay(const char *path) {
        _cleanup_(closedirp) DIR *directory = opendir(path);
        struct dirent *entry;
        int n = 0;

        if (!directory) {
                fprintf(stderr, "%s: %m\n", path);
                return -errno;
        }
        while ((entry = readdir(directory))) {
                _cleanup_free_ char *data = NULL;
                size_t size;
                int r;

                if (entry->d_name[0] == '.')
                        continue;
                /* Said first: a crash then shows whose it is. */
                printf("%s/%s\n", path, entry->d_name);
                (void) fflush(stdout);
                r = fd_read_file(dirfd(directory), entry->d_name, 1, 1 << 20, &data, &size);
                if (r < 0) {
                        fprintf(stderr, "%s/%s: %s\n", path, entry->d_name, strerror(-r));
                        return r;
                }
                (void) LLVMFuzzerTestOneInput((const uint8_t *) data, size);
                n++;
        }
        return n;
}

int main(int argc, char *argv[]) {
        if (argc < 2) {
                fprintf(stderr, "Usage: %s DIRECTORY...\n", argv[0]);
                return EXIT_FAILURE;
        }
        for (int i = 1; i < argc; i++)
                /* An empty corpus tests nothing. */
                if (replay(argv[i]) <= 0)
                        return EXIT_FAILURE;
        return EXIT_SUCCESS;
}
