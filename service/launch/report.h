/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The shared page in which a child says how far it has come. */
#pragma once

#include "service/launch/message.h"

/* The step that comes next. The detail of the last one is forgotten. */
void report_stage(LaunchReport *report, LaunchStage stage);

/* Names what a step is about, cut off at the end of its room. Returns error, so that a failing call ends
 * with `return report_detail(report, r, path);`. */
int report_detail(LaunchReport *report, int error, const char *detail);

/* Tells the error (negative errno) of the current stage and ends the process. */
_Noreturn void report_exit(LaunchReport *report, int error);
