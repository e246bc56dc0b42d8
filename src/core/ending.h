// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The end of a stream: when its driver sends the FIN, and when it gives the socket up. RFC 5040 6.2.1: a Terminate is the
// last message; RFC 5044 7.2: FIN behind the last FPDU.
//
// In CLOSING what was posted goes out, then the FIN, then the peer's FIN is awaited. In TERMINATE the message goes out, then
// the FIN; nothing that the peer sends matters any more. Each has a time, which starts with the ending, so that a peer that
// takes nothing cannot delay the flush.
#ifndef CORE_ENDING_H
#define CORE_ENDING_H

#include "core/qp.h"

/* How long a graceful close may take: sending what was posted, our FIN, the peer's. */
#define AW_CLOSE_MS 10000
/* How long a Terminate may take to reach the socket. */
#define AW_TERMINATE_MS 1000

/* Zeroed when a stream begins. */
struct aw_ending {
	bool begun; /* deadline_ns holds */
	bool fin_sent;
	uint64_t deadline_ns;
};

/* The steps of the driver: a mask, in this order. */
enum aw_ending_step {
	AW_ENDING_BEGUN = 1, /* the deadline was set */
	AW_ENDING_FIN = 2, /* send the FIN */
};

/*
 * Called while there is a socket, after anything that may have changed the core's state or sent octets. is_sent: none of the
 * octets that the core gave out waits in the driver. Where the core is in ERROR then, the driver gives the socket up.
 */
unsigned int aw_ending_follow(struct aw_ending *ending, struct aw_qp *qp, bool is_sent,
			      uint64_t now_ns);

/*
 * Called when the deadline may have passed, before follow: then the stream is aborted; but a Terminate that only answers kept
 * back has AW_TERMINATE_MS more, without them.
 */
void aw_ending_expire(struct aw_ending *ending, struct aw_qp *qp, uint64_t now_ns);

#endif
