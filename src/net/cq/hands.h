// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Busy-poll ownership: the threads that serve a lent QP (net/qp/lend.h) are the pollers of a CQ or
// the waiters of a channel.
#ifndef NET_HANDS_H
#define NET_HANDS_H

#include <stdatomic.h>
#include <stdint.h>
#include <sys/queue.h>

/* Embedded in CQs and channels; zero at first. */
struct aw_hands {
	/*
	 * Grows as these threads serve: with each poll in vain, each QP that a poll found ready,
	 * each wake.
	 */
	_Atomic uint32_t turns;
	/* Grows as these threads take what serving gave: with each poll that returned receives. */
	_Atomic uint32_t takes;
	/* guarded by lend.c's lock */
	TAILQ_ENTRY(aw_hands) entry; /* while QPs are lent */
	uint32_t lent; /* QPs; a QP that uses the CQ for both queues counts twice */
	uint32_t seen; /* turns and takes at the last tick */
	uint32_t ticks_idle; /* since they grew */
	uint32_t turns_seen; /* turns at the last tick */
	uint32_t
		ticks_unserved; /* since turns grew: the CQ may never be empty, and so no QP be served */
};

#endif
