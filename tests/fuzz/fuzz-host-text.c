/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Text that is read about containers: a command line, which its process writes as it likes; a list of processors, which a client
 * does; files of control groups. The input is taken for each of them. */
#include <string.h>

#include "service/cgroup-parse.h"
#include "service/command-lines.h"
#include "tests/fuzz/fuzz.h"
#include "util/cleanup.h"

#define REPLACEMENT_SIZE 3U

static void try_command_line(const char *bytes, size_t size) {
        _cleanup_free_ char *text = command_line_clean(bytes, size), *again = NULL;
        size_t length;

        fuzz_assert(text);
        length = strlen(text);
        fuzz_assert(length <= REPLACEMENT_SIZE * size);
        /* D-Bus closes the connection of who sends anything else. */
        again = command_line_clean(text, length);
        fuzz_assert(again && strcmp(again, text) == 0);
}

static void try_processors(const char *text) {
        uint8_t mask[CPU_LIST_MAX / 8];
        size_t n;

        if (cpu_list_parse(text, mask, &n) < 0)
                return;
        fuzz_assert(n > 0 && n <= sizeof(mask) && mask[n - 1] != 0);
        for (size_t i = n; i < sizeof(mask); i++)
                fuzz_assert(mask[i] == 0);
}

static void try_control_group(const char *text) {
        const char *p = text;
        uint64_t value;
        pid_t pid;

        (void) cgroup_parse_key(text, "oom_kill", &value);
        (void) cgroup_parse_number(text, &value);
        (void) cgroup_parse_io(text, "rbytes");
        (void) cgroup_parse_pressure(text, "some", &value);
        while ((pid = cgroup_parse_next_pid(&p)) != 0)
                fuzz_assert(pid > 0 && p > text && p <= text + strlen(text));
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size) {
        _cleanup_free_ char *text = NULL;

        try_command_line((const char *) input, size);
        text = strndup((const char *) input, size);
        fuzz_assert(text);
        try_processors(text);
        try_control_group(text);
        return 0;
}
