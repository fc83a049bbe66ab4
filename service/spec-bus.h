/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reads a spec and the options of Start from a{sv}. Every key that it does not know, every wrong type and
 * every value out of range is an error that names the key. */
#pragma once

#include <systemd/sd-bus.h>

#include "service/dict-bus.h"
#include "service/options.h"
#include "service/spec.h"

/* Reads one a{sv} from the message's current position into a new, validated spec, the caller's. Errors:
 * InvalidSpec (unknown key, wrong type, bad value, a key given twice), NotSupported (a key that this
 * version cannot honour); negative errno. */
int spec_bus_read(sd_bus_message *message, Spec **ret, sd_bus_error *error);

/* One a{sv} of Exec: the process part of a spec over what the container's gives by default, and the options of a start.
 * A command given here is run, and the key is InvalidArgs then; `more` (or NULL) are keys of the caller's own. Errors as spec_bus_read(). */
int spec_bus_read_exec(sd_bus_message *message, const Spec *base, char *const *command,
                       const DictTable *more, Spec **ret, StartOptions *ret_options, sd_bus_error *error);

/* The options of Start and RunContainer. Descriptors in them are duplicated, the caller owns them with *ret
 * (options_done()). InvalidArgs instead of InvalidSpec. */
int options_bus_read(sd_bus_message *message, StartOptions *ret, sd_bus_error *error);

/* Reads what Update takes, the limits of a container, into a spec that has nothing else. */
int spec_bus_read_resources(sd_bus_message *message, Spec **ret, sd_bus_error *error);
