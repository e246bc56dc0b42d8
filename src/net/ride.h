// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// An acknowledgement (core/ack.h) that waits to ride: a program that polls and finds a message mostly answers
// it at once, and one system call sends both, and one wakes the peer. Only where that was so before: a post
// within 20 us and with no vain poll in between earns its QP a credit, and none costs one; an acknowledgement that
// waited for longer costs 64, and with less none waits. The next vain poll sends it, as do arming a CQ, exit(3) and,
// for a program that stopped polling, the progress thread within two milliseconds (net/lend.h).
#ifndef NET_RIDE_H
#define NET_RIDE_H

#include <stdbool.h>
#include <stdint.h>

struct aw_cq;
struct aw_uqp;

/* In the QP, guarded by its lock. */
struct aw_ride {
	uint32_t credits;
	bool due; /* an acknowledgement, with neither a post nor a vain poll since */
	bool waits; /* and it was not sent */
	uint64_t since_ns;
};

/* All but the last with the QP's lock. A poller has served it: whether what is due now waits. */
bool aw_ride_begin(struct aw_uqp *qp);
/* The program posts; it polls in vain, or somebody else serves the QP. */
void aw_ride_posted(struct aw_uqp *qp);
void aw_ride_missed(struct aw_uqp *qp);
/* The QP transmits all that it has, or loses its socket. */
void aw_ride_end(struct aw_uqp *qp);

/* For net/lend.c. Whether any waits; whether this one does for too long, or is left by those who poll. */
bool aw_ride_any(void);
bool aw_ride_is_late(const struct aw_uqp *qp);

/* cq was armed, no lock held: what waits leaves. */
void aw_ride_armed(struct aw_cq *cq);

#endif
