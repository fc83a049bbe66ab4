/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the files of the D-Bus interfaces offer to a connection, and share among each other. */
#pragma once

#include <systemd/sd-bus.h>

#include "service/authorize.h"
#include "service/connection.h"
#include "service/container.h"

/* manager-bus.c: org.berth1.Manager. */
int manager_bus_attach(Connection *connection);
void manager_bus_added(Connection *connection, Container *container);
void manager_bus_removed(Connection *connection, const Container *container);

/* container-bus.c: org.berth1.Container. */
int container_bus_attach(Connection *connection);
void container_bus_changed(Connection *connection, Container *container, const char *const *properties);
void container_bus_started(Connection *connection, Container *container);
void container_bus_exited(Connection *connection, Container *container);

/* process-bus.c: org.berth1.Process. */
int process_bus_attach(Connection *connection);
void process_bus_added(Connection *connection, Exec *exec);
void process_bus_exited(Connection *connection, Exec *exec);
void process_bus_removed(Connection *connection, const Exec *exec);
int process_bus_path(const Exec *exec, char **ret);

/* What handlers of both interfaces begin with: who calls, and whether they may. */
int bus_begin(sd_bus_message *message, Action action, Client **ret, sd_bus_error *error);

/* What handlers of calls that are answered later end with: an accepted call keeps its message until `done`. */
int bus_accepted(sd_bus_message *message, int r);

/* The answer to Wait. */
void process_bus_wait_done(Process *process, const sd_bus_error *error, void *userdata);

/* capture-bus.c: Capture of a container (userdata), CaptureContainer of the manager's connection (userdata). */
int capture_bus_method_capture(sd_bus_message *message, void *userdata, sd_bus_error *error);
int capture_bus_method_capture_container(sd_bus_message *message, void *userdata, sd_bus_error *error);

/* The object path of a container, malloced. */
int container_bus_path(const Container *container, char **ret);

/* Answers a call that began a process, and drops it: an error, or the object's path (unless path_of is NULL) and
 * `a{sh} stdio`, the terminal's master and the other ends of pipes, which are the client's alone afterwards. */
void process_bus_reply_started(sd_bus_message *message, Process *process, const sd_bus_error *error,
                               int (*path_of)(Process *process, char **ret));

/* Answers a call that waited with an error. */
void bus_reply_error(sd_bus_message *call, const sd_bus_error *error);
