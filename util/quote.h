/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A stranger's text made fit for an error message or a log line. */
#pragma once

#define QUOTE_SIZE 132U

/* Copies at most 128 bytes of text into buffer, "..." at the end where it was longer, '?' for control
 * characters, never a part of a UTF-8 character. Returns buffer. */
const char *quote(const char *text, char buffer[static QUOTE_SIZE]);

/* The same into memory that lives as long as the enclosing block. */
#define QUOTE(text) quote((text), (char[QUOTE_SIZE]) { 0 })
