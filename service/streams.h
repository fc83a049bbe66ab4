/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Standard input, output and error as a start asks for them: what has to be made for the program, and what of it goes to
 * the client. No byte goes through the service. */
#pragma once

#include "service/options.h"

/* Makes the pipes that were asked for: the program's ends into options->stdio, the client's into ret_ends[], owned by
 * the caller; where there is none it is left alone. Error goes into output's pipe unless it was given. 0 or negative
 * errno, with nothing in ret_ends[]. */
int streams_open(StartOptions *options, int ret_ends[3]);

/* Bit n: stream n is a pipe made here, which the program's user is to own. */
unsigned streams_own(const StartOptions *options);
