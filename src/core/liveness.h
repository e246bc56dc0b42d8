// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Finds peers that vanished without a FIN or reset. TCP keep-alive finds those to which nothing is under way; this code finds
// those that acknowledge nothing of what is. A peer whose TCP answers is alive, though its program takes no byte: so
// TCP_USER_TIMEOUT, which ends a connection whose window stays closed, would be wrong. The driver looks now and then at what TCP
// tells of a connection that has bytes under way, and asks here.
#ifndef CORE_LIVENESS_H
#define CORE_LIVENESS_H

#include <stdbool.h>
#include <stdint.h>

/* TCP's view of a connection. */
struct aw_tcp_seen {
	bool under_way; /* bytes wait in the driver or in TCP, or are not acknowledged */
	bool unacked; /* bytes were sent, and are not acknowledged */
	bool probing; /* it probes a closed window, and the last probe has no answer yet */
	uint64_t sent_ns; /* how long ago it last sent bytes */
	uint64_t
		heard_ns; /* how long ago it last heard from the peer: bytes count, though they need acknowledge none */
};

enum aw_liveness_state {
	AW_LIVENESS_IDLE, /* nothing is under way: no look is due until bytes are sent again */
	AW_LIVENESS_LOOK, /* the driver looks again */
	AW_LIVENESS_LOST,
};

/* Zeroed when a stream begins. */
struct aw_liveness {
	bool owes; /* the peer's TCP owes an answer, */
	uint64_t since_ns; /* as the looks have found since then */
};

/*
 * One look. The peer is lost when its TCP has owed an answer for timeout_ns, counted from the first look that found it so, and
 * none has come. RFC 9293 3.8.3 wants at least 100 s; and TCP's longest pause between two probes is two minutes (TCP_RTO_MAX),
 * behind which a driver leaves one interval of its looks for the probe's answer.
 */
enum aw_liveness_state aw_liveness_look(struct aw_liveness *liveness,
					const struct aw_tcp_seen *seen, uint64_t timeout_ns,
					uint64_t now_ns);

#endif
