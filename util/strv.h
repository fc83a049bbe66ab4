/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* NULL-terminated string lists; NULL is the empty list. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "util/cleanup.h"

/* Frees the list and its strings, returns NULL. */
char **strv_free(char **l);
DEFINE_CLEANUP(char **, strv_free);
#define _cleanup_strv_ _cleanup_(strv_freep)

size_t strv_length(char *const *l);

/* A deep copy of l into *ret (NULL for an empty list). 0 or -ENOMEM. */
int strv_copy(char *const *l, char ***ret);

/* Appends a copy of s. 0 or -ENOMEM, and the list is unchanged then. */
int strv_append(char ***l, const char *s);

bool strv_contains(char *const *l, const char *s);

/* The value of KEY in a list of KEY=VALUE, the last one wins; NULL without one. Borrowed from the list. */
const char *strv_env_get(char *const *l, const char *key);
