/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Checks that the spec's setters share. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-bus.h>

#include "interfaces/names.h"

/* Both set *error to a sentence that names the key, and return negative errno. */
#define spec_invalid(error, ...) sd_bus_error_setf((error), BERTH_ERROR_INVALID_SPEC, __VA_ARGS__)
#define spec_not_supported(error, ...) sd_bus_error_setf((error), BERTH_ERROR_NOT_SUPPORTED, __VA_ARGS__)

/* Absolute, and short enough for the kernel. */
int spec_check_path(const char *key, const char *path, sd_bus_error *error);

/* At most max strings, each short enough for execve(2). */
int spec_check_strings(const char *key, char *const *list, size_t max, sd_bus_error *error);

/* Is the text all digits? */
bool spec_is_number(const char *text);

/* A uid or gid: decimal, 0 to 4294967294 (the last one means "none" to the kernel). 0 or -EINVAL. */
int spec_parse_id(const char *text, uint32_t *ret);

/* Could this be the name of a user or group in passwd(5)? */
bool spec_is_account(const char *name);
