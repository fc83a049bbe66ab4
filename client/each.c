/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/each.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "client/globals.h"
#include "interfaces/names.h"

typedef struct Each {
        struct EachRun *run;
        sd_bus_message **reply; /* where it goes, or NULL */
        sd_bus_slot *slot;      /* owned */
} Each;

typedef struct EachRun {
        size_t pending;
        bool failed;
} EachRun;

static void say(EachRun *run, const sd_bus_error *error, int r) {
        (void) fprintf(stderr, "berthctl: %s\n", error && error->message ? error->message : strerror(-r));
        run->failed = true;
}

static int on_reply(sd_bus_message *reply, void *userdata, sd_bus_error *ret_error) {
        Each *each = userdata;

        each->run->pending--;
        if (sd_bus_message_is_method_error(reply, NULL) > 0)
                say(each->run, sd_bus_message_get_error(reply), -EIO);
        else if (each->reply)
                *each->reply = sd_bus_message_ref(reply);
        return 0;
}

static int begin(Connection *connection, const char *name, const char *member, EachAppend append,
                 void *userdata, Each *each, sd_bus_error *error) {
        _cleanup_bus_message_ sd_bus_message *call = NULL;
        _cleanup_free_ char *path = NULL;
        int r;

        r = connection_get_container(connection, name, &path, error);
        if (r < 0)
                return r;
        r = connection_new_call(connection, path, BERTH_INTERFACE_CONTAINER, member, &call);
        if (r < 0)
                return r;
        if (append) {
                r = append(call, userdata);
                if (r < 0)
                        return r;
        }
        return sd_bus_call_async(connection->bus, &each->slot, call, on_reply, each, UINT64_MAX);
}

static int process(Connection *connection, EachRun *run, sd_bus_error *error) {
        int r;

        while (run->pending > 0) {
                r = sd_bus_process(connection->bus, NULL);
                if (r == 0)
                        r = sd_bus_wait(connection->bus, UINT64_MAX);
                if (r < 0 && r != -EINTR)
                        return connection_explain(connection, r, error);
        }
        return 0;
}

int each_call(Connection *connection, char *const *names, size_t n, const char *member, EachAppend append,
              void *userdata, sd_bus_message **ret, sd_bus_error *error) {
        _cleanup_free_ Each *each = NULL;
        EachRun run = {};
        int r;

        each = calloc(n, sizeof(*each));
        if (!each)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                _cleanup_bus_error_ sd_bus_error one = SD_BUS_ERROR_NULL;

                each[i].run = &run;
                each[i].reply = ret ? &ret[i] : NULL;
                r = begin(connection, names[i], member, append, userdata, &each[i], &one);
                if (r < 0)
                        say(&run, &one, r);
                else
                        run.pending++;
        }
        r = process(connection, &run, error);
        for (size_t i = 0; i < n; i++)
                (void) sd_bus_slot_unref(each[i].slot);
        if (r < 0)
                return r;
        return run.failed ? EXIT_BERTH : 0;
}
