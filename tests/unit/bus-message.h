/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* For tests: messages without a bus daemon. Functions end the test when they fail. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <systemd/sd-bus.h>

/* A connection that nobody answers, good for building messages; its other end is to be kept open as long. */
sd_bus *test_bus_new(int *ret_peer);

/* An empty method call on it. */
sd_bus_message *test_message_new(sd_bus *bus);

/* Makes what was appended readable. */
void test_message_seal(sd_bus_message *message);

/* A message with this body, as it comes from a peer that sends what it likes. */
sd_bus_message *test_message_raw(const char *signature, const void *body, size_t size);
