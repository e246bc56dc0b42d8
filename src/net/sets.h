// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Epoll sets beside the progress thread's. Each saves system calls and none is needed, so that a process has but so
// many, however many CQs and channels it has: a file each would be as many again as its connections.
#ifndef NET_SETS_H
#define NET_SETS_H

#include <stdbool.h>

enum aw_sets {
	AW_SETS_CQ, /* of CQs that many QPs share: without one each socket is asked */
	AW_SETS_CHANNEL, /* of channels that a thread sleeps on: without one the progress thread serves it */
	AW_SETS
};

#define AW_SETS_CQ_MAX 64
#define AW_SETS_CHANNEL_MAX \
	256 /* as many as there are direct connections (xsock/preload/direct.h) */

/* needed: also beyond those. The set, close-on-exec, or -1: there is none. */
int aw_sets_open(enum aw_sets of, bool needed);
void aw_sets_close(enum aw_sets of, int epfd);

#endif
