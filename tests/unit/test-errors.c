/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <setjmp.h>

#include <cmocka.h>
#include <systemd/sd-bus.h>

#include "interfaces/names.h"
#include "service/errors.h"
#include "util/cleanup.h"

/* What sd-bus says of a name that nobody has told it of. */
#define UNKNOWN EIO

static int errno_of(const char *name) {
        _cleanup_bus_error_ sd_bus_error error = SD_BUS_ERROR_NULL;
        int r;

        r = sd_bus_error_setf(&error, name, "container %s", "x");
        assert_int_equal(sd_bus_error_get_errno(&error), -r);
        return -r;
}

static void test_some(void **state) {
        assert_int_equal(errors_register(), 0);
        assert_int_equal(errors_register(), 0);
        assert_int_equal(errno_of(BERTH_ERROR_NO_SUCH_CONTAINER), ENOENT);
        assert_int_equal(errno_of(BERTH_ERROR_NAME_IN_USE), EEXIST);
        assert_int_equal(errno_of(BERTH_ERROR_INVALID_SPEC), EINVAL);
        assert_int_equal(errno_of(BERTH_ERROR_CANCELLED), ECANCELED);
        assert_int_equal(errno_of(BERTH_ERROR_NOT_SUPPORTED), EOPNOTSUPP);
        assert_int_equal(errno_of(BERTH_ERROR_ACCESS_DENIED), EACCES);
        assert_int_equal(errno_of(BERTH_ERROR_INVALID_ARGS), EINVAL);
        assert_int_equal(errno_of(BERTH_ERROR_TIMEOUT), ETIMEDOUT);
        assert_int_equal(errno_of(BERTH_ERROR("NeverHeardOf")), UNKNOWN);
}

/* Each name that the header has, read from the header: a new one can't be forgotten. */
static void test_every_name_is_mapped(void **state) {
        _cleanup_free_ char *header = NULL;
        char *rest, *line;
        unsigned n = 0;

        assert_int_equal(errors_register(), 0);
        assert_int_equal(fd_read_file(AT_FDCWD, NAMES_H, 1, 1 << 20, &header, NULL), 0);
        rest = header;
        while ((line = strsep(&rest, "\n"))) {
                char name[128], full[256];

                if (sscanf(line, "#define BERTH_ERROR_%*[A-Z_] BERTH_ERROR(\"%127[A-Za-z]\")", name) == 1)
                        (void) snprintf(full, sizeof(full), BERTH_ERROR("%s"), name);
                else if (sscanf(line, "#define BERTH_ERROR_%*[A-Z_] \"%127[A-Za-z.]\"", name) == 1)
                        (void) snprintf(full, sizeof(full), "%s", name);
                else {
                        assert_null(strstr(line, "#define BERTH_ERROR_"));
                        continue;
                }
                if (errno_of(full) == UNKNOWN)
                        fail_msg("%s has no errno", full);
                n++;
        }
        assert_true(n >= 20);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_some),
                cmocka_unit_test(test_every_name_is_mapped),
        };

        return cmocka_run_group_tests_name("errors", tests, NULL, NULL);
}
