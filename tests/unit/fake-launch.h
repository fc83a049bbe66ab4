/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a stand-in for berth-launch shall do with a request: it is asked by the clone_flags of a plan. */
#pragma once

typedef enum FakeOrder {
        FAKE_RUN = 1,   /* a child whose program runs, and waits for a signal */
        FAKE_FAIL,      /* a child that fails at stage mount with ENOENT, about /x */
        FAKE_KILLED,    /* a child that is killed at stage mount */
        FAKE_HANG,      /* a child that stays at stage rootfs */
        FAKE_GATE,      /* a child that runs once its cgroup gate is open */
        FAKE_TALK,      /* a child that says what it should not */
        FAKE_TALK_LONG, /* and too much of it */
        FAKE_REFUSE,    /* no child: EPERM */
        FAKE_DIE,       /* no answer */
        FAKE_GARBAGE,   /* no answer that could be read */
        FAKE_NO_PIDFD,  /* an answer without what belongs to it */
        FAKE_STRANGER,  /* a process that is nobody's child here */
        FAKE_TWICE,     /* an answer for nobody first, and one more after the child's */
} FakeOrder;
