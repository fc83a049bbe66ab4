/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Run while building: writes the default profile as a header, its text and the filter for the default
 * capabilities, so that the first start of a daemon need not compile it. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "service/seccomp-profile.h"
#include "service/seccomp.h"
#include "util/fd.h"

/* chown dac_override fowner fsetid kill setgid setuid setpcap net_bind_service net_raw sys_chroot mknod
 * audit_write setfcap */
#define DEFAULT_CAPABILITIES UINT64_C(0xa80425fb)

static void print_text(const char *text, size_t size) {
        printf("static const char default_json[] =\n        \"");
        for (size_t i = 0; i < size; i++)
                if (text[i] == '\n')
                        printf("\\n\"\n        \"");
                else if (text[i] == '"' || text[i] == '\\')
                        printf("\\%c", text[i]);
                else
                        putchar(text[i]);
        printf("\";\n\n");
}

static void print_program(const SeccompFilter *filter) {
        printf("static const struct sock_filter default_program[] = {\n");
        for (size_t i = 0; i < filter->n; i++) {
                const struct sock_filter *f = &filter->program[i];

                printf("        { 0x%02x, %u, %u, 0x%08x },\n", f->code, f->jt, f->jf, f->k);
        }
        printf("};\n");
}

int main(int argc, char *argv[]) {
        _cleanup_(seccomp_profile_done) SeccompProfile profile = { 0 };
        _cleanup_(seccomp_filter_unrefp) SeccompFilter *filter = NULL;
        _cleanup_bus_error_ sd_bus_error error = SD_BUS_ERROR_NULL;
        _cleanup_free_ char *json = NULL;
        size_t size;
        int r;

        if (argc != 2) {
                fprintf(stderr, "Usage: %s PROFILE\n", argv[0]);
                return EXIT_FAILURE;
        }
        r = fd_read_file(AT_FDCWD, argv[1], 0, SECCOMP_PROFILE_SIZE_MAX, &json, &size);
        if (r >= 0)
                r = seccomp_profile_parse(json, size, "linux.seccomp", DEFAULT_CAPABILITIES, &profile,
                                          &error);
        if (r >= 0)
                r = seccomp_compile(json, size, DEFAULT_CAPABILITIES, &filter, &error);
        if (r < 0) {
                fprintf(stderr, "%s: %s\n", argv[1], error.message ? error.message : strerror(-r));
                return EXIT_FAILURE;
        }

        printf("/* Generated, do not edit. */\n\n");
        printf("#define DEFAULT_RELEVANT UINT64_C(0x%" PRIx64 ")\n", profile.relevant);
        printf("#define DEFAULT_PRECOMPILED UINT64_C(0x%" PRIx64 ")\n",
               DEFAULT_CAPABILITIES & profile.relevant);
        printf("#define DEFAULT_FLAGS 0x%xU\n\n", filter->flags);
        print_text(json, size);
        print_program(filter);
        return fflush(stdout) == 0 && !ferror(stdout) ? EXIT_SUCCESS : EXIT_FAILURE;
}
