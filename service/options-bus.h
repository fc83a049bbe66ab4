/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The keys of a start's options, for dictionaries that have them beside others (spec-bus.c). */
#pragma once

#include "service/dict-bus.h"
#include "service/options.h"

typedef struct OptionsReader {
        StartOptions options;
} OptionsReader;

#define OPTIONS_READER_INIT \
        { .options = START_OPTIONS_INIT }

void options_reader_done(OptionsReader *reader);

/* The keys, to be read into this reader. */
DictTable options_bus_table(OptionsReader *reader);

/* Puts together what was read; *ret takes it out of the reader. */
int options_bus_finish(OptionsReader *reader, StartOptions *ret);
