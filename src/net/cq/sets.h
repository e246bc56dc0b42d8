// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Epoll sets beside the progress thread's. Each saves system calls, and none is necessary, so their
// number in a process is bounded, however many CQs and channels it has: one for each could double
// the process's files.
#ifndef NET_SETS_H
#define NET_SETS_H

#include <stdbool.h>

enum aw_sets {
	AW_SETS_CQ, /* of CQs that many QPs share; without a set pollers read each socket */
	/* of channels that a thread sleeps on; without a set the progress thread serves the QPs */
	AW_SETS_CHANNEL,
	AW_SETS
};

#define AW_SETS_CQ_MAX 64
#define AW_SETS_CHANNEL_MAX 256

/* The set, close-on-exec, or -1: there is none. needed: opens one even beyond the bound. */
int aw_sets_open(enum aw_sets of, bool needed);
void aw_sets_close(enum aw_sets of, int epfd);

#endif
