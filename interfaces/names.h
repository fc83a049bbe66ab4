/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The names of the D-Bus API, org.berth1(5), each said once. */
#pragma once

#define BERTH_BUS_NAME "org.berth1"
#define BERTH_PATH "/org/berth1"
#define BERTH_CONTAINER_PREFIX "/org/berth1/container"

#define BERTH_INTERFACE_MANAGER "org.berth1.Manager"
#define BERTH_INTERFACE_CONTAINER "org.berth1.Container"
#define BERTH_INTERFACE_PROCESS "org.berth1.Process"

#define BERTH_ERROR(name) "org.berth1.Error." name
#define BERTH_ERROR_NO_SUCH_CONTAINER BERTH_ERROR("NoSuchContainer")
#define BERTH_ERROR_NAME_IN_USE BERTH_ERROR("NameInUse")
#define BERTH_ERROR_INVALID_NAME BERTH_ERROR("InvalidName")
#define BERTH_ERROR_INVALID_SPEC BERTH_ERROR("InvalidSpec")
#define BERTH_ERROR_NOT_RUNNING BERTH_ERROR("NotRunning")
#define BERTH_ERROR_ALREADY_RUNNING BERTH_ERROR("AlreadyRunning")
#define BERTH_ERROR_PAUSED BERTH_ERROR("Paused")
#define BERTH_ERROR_CANCELLED BERTH_ERROR("Cancelled")
#define BERTH_ERROR_LAUNCH_FAILED BERTH_ERROR("LaunchFailed")
#define BERTH_ERROR_COMMAND_NOT_FOUND BERTH_ERROR("CommandNotFound")
#define BERTH_ERROR_COMMAND_NOT_EXECUTABLE BERTH_ERROR("CommandNotExecutable")
#define BERTH_ERROR_NO_TERMINAL BERTH_ERROR("NoTerminal")
#define BERTH_ERROR_NOT_KEPT BERTH_ERROR("NotKept")
#define BERTH_ERROR_ALREADY_ATTACHED BERTH_ERROR("AlreadyAttached")
#define BERTH_ERROR_LIMIT_REACHED BERTH_ERROR("LimitReached")
#define BERTH_ERROR_OUTPUT_TOO_LARGE BERTH_ERROR("OutputTooLarge")
#define BERTH_ERROR_NOT_SUPPORTED BERTH_ERROR("NotSupported")

#define BERTH_ERROR_ACCESS_DENIED "org.freedesktop.DBus.Error.AccessDenied"
#define BERTH_ERROR_INVALID_ARGS "org.freedesktop.DBus.Error.InvalidArgs"
#define BERTH_ERROR_TIMEOUT "org.freedesktop.DBus.Error.Timeout"
