// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Acknowledgements (core/ack.h) that wait for the program's next post. A program that polls and
// finds a message mostly answers it at once, and then one system call sends both, and the peer
// wakes once. An acknowledgement waits only where that has worked before: a post within 20 us, with
// no poll in vain in between, earns its QP a credit; no such post costs one. An acknowledgement
// that waited longer costs 64 credits, and with fewer than 64 none waits. The next poll in vain
// sends it, as do arming a CQ, exit(3) and, for a program that has stopped polling, the progress
// thread within two milliseconds (net/qp/lend.h).
#ifndef NET_RIDE_H
#define NET_RIDE_H

#include <stdbool.h>
#include <stdint.h>

struct aw_cq;
struct aw_uqp;

/* In the QP, guarded by its lock. */
struct aw_ride {
	uint32_t credits;
	bool due; /* an acknowledgement is due, with neither a post nor a poll in vain since */
	bool waits; /* it was not sent yet */
	uint64_t since_ns;
};

/*
 * All functions but the last are called with the QP's lock. aw_ride_begin: a poller has served the
 * QP; true when the acknowledgement that is due now waits.
 */
bool aw_ride_begin(struct aw_uqp *qp);
/* posted: the program posts. missed: it polls in vain, or another thread serves the QP. */
void aw_ride_posted(struct aw_uqp *qp);
void aw_ride_missed(struct aw_uqp *qp);
/* Called when the QP transmits all that it has, or loses its socket. */
void aw_ride_end(struct aw_uqp *qp);

/*
 * For net/qp/lend.c. any: some acknowledgement waits. is_late: this QP's waits too long, or its
 * pollers do not serve it any more.
 */
bool aw_ride_any(void);
bool aw_ride_is_late(const struct aw_uqp *qp);

/* cq was armed: its QPs' waiting acknowledgements are sent. The caller holds no lock. */
void aw_ride_armed(struct aw_cq *cq);

#endif
