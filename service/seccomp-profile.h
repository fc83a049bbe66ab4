/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A seccomp profile as the OCI runtime spec writes it (`linux.seccomp`), read into plain data for one set of
 * capabilities. What the common engines' own profiles have beyond it is understood too: includes, excludes,
 * archMap. seccomp-compile.c makes BPF of it. */
#pragma once

#include <jansson.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-bus.h>

#define SECCOMP_PROFILE_SIZE_MAX (1U << 20)
#define SECCOMP_PROFILE_DEPTH_MAX 16U
#define SECCOMP_PROFILE_ARCHITECTURES_MAX 16U

/* Names times alternatives: a filter of more could not be loaded, and would take long to compile. */
#define SECCOMP_PROFILE_RULES_MAX 4096U

typedef struct SeccompRule {
        json_t *names; /* borrowed from the profile: a list of strings, not empty */
        size_t index;  /* in the profile's list, for messages */
        uint32_t action;
        struct scmp_arg_cmp *args; /* owned */
        unsigned n_args;
        bool alternatives; /* one argument is compared twice: each comparison is a rule of its own */
} SeccompRule;

typedef struct SeccompProfile {
        json_t *json; /* owned */
        uint32_t default_action;
        uint32_t flags;                                            /* SECCOMP_FILTER_FLAG_* */
        uint32_t architectures[SECCOMP_PROFILE_ARCHITECTURES_MAX]; /* the native one first */
        size_t n_architectures;
        SeccompRule *rules; /* owned: those that apply to the capabilities */
        size_t n_rules;
        uint64_t relevant; /* the capabilities that some condition asks for */
} SeccompProfile;

void seccomp_profile_done(SeccompProfile *profile);

/* Reads a profile from text or from a JSON object, of which it takes a reference. `path` is the object's in
 * messages. Architectures that this machine can't execute are left out: a filter for them would never be
 * asked. Errors: InvalidSpec with the JSON path in the message, NotSupported for what needs an agent;
 * -ENOMEM. */
int seccomp_profile_parse(const char *json, size_t size, const char *path, uint64_t capabilities,
                          SeccompProfile *ret, sd_bus_error *error);
int seccomp_profile_read(json_t *object, const char *path, uint64_t capabilities, SeccompProfile *ret,
                         sd_bus_error *error);
