/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* systemd as the service sees it, played on a bus of the test's: org.freedesktop.systemd1 with units that are only
 * remembered, jobs that end when the test says so, and faults. It writes down what it is asked. */
#pragma once

#include <stdbool.h>
#include <sys/queue.h>
#include <sys/types.h>
#include <systemd/sd-bus.h>

typedef struct FakeUnit {
        bool abandoned;          /* it has no controller any more */
        char *name, *properties; /* the latter one "Name=value\n" each, in their order */
        pid_t pid;
        int pidfd;
        char job[64]; /* "" when it has none */
        char *client;
        TAILQ_ENTRY(FakeUnit) link;
} FakeUnit;

typedef struct FakeSystemd {
        sd_bus *bus;
        unsigned version;
        char *service; /* unique name of whoever asked for the version: only its calls are written down */
        char *log;     /* "Member first-argument\n" for each call */
        TAILQ_HEAD(, FakeUnit) units;
        unsigned n_jobs;

        /* Faults, to be set at any time */
        bool hold_jobs;          /* start jobs end by fake_systemd_release() */
        bool mute;               /* StartTransientUnit is never answered */
        const char *job_result;  /* of start jobs that are not held; "done" */
        const char *start_error; /* StartTransientUnit fails with this message */
        const char *set_error;   /* SetUnitProperties fails with this message */
        unsigned exists;         /* StartTransientUnit says UnitExists this often */
        bool mute_stop;          /* StopUnit is never answered */
} FakeSystemd;

/* On the bus at this address, as its name's owner. */
FakeSystemd *fake_systemd_new(sd_event *event, const char *address, unsigned version);
FakeSystemd *fake_systemd_free(FakeSystemd *fake);

/* Ends all jobs that were held. */
void fake_systemd_release(FakeSystemd *fake, const char *result);

/* The unit that was last started by this name and has not been stopped, or NULL. */
FakeUnit *fake_systemd_unit(FakeSystemd *fake, const char *name);

/* `systemctl stop` of a scope that has a controller. */
void fake_systemd_request_stop(FakeSystemd *fake, const char *name);

/* How many of the calls written down begin like this. */
unsigned fake_systemd_count(const FakeSystemd *fake, const char *beginning);
