// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Decides which sends of a QP may wait for the program's next call, so that one system call sends both: posts of a burst, for
// the poll behind it; an acknowledgement (core/ack.h), for the post that answers the message. Pure: net/qp/deferral.h does what
// is decided here, and passes the time in.
//
// Waiting pays off only if the expected call comes, so each of the two keeps a credit account of how often it did. A burst is calls that
// post within AW_BURST_GAP_NS of each other with no poll in between. A burst that a poll follows as soon earns a credit
// for each call but the first, which is a system call that waiting saves; any other burst costs one. A post within
// AW_WAIT_NS of a message, with no empty poll in between, earns one credit; no such post costs one. A send that waited
// too long costs AW_CREDIT_PRICE, and an account that holds less lets nothing wait. The two have an account each, since a program that
// polls behind its posts need not post behind its polls.
#ifndef NET_CREDIT_H
#define NET_CREDIT_H

#include "net/qp/times.h"

#include <stdbool.h>
#include <stdint.h>

#define AW_CREDIT_PRICE 64
#define AW_CREDIT_MAX (4 * AW_CREDIT_PRICE)
/*
 * So many posts, or these bytes, are sent at once: what TCP sends as one segment of a local path. A burst of Writes of 4 KiB then takes
 * one send(2) for 16 and wakes the peer as seldom: both ends' processor time of a GB 0.40 s, where bounds of 32 and 8 KiB have 0.49 and
 * 0.82. The peer has nothing to do before it has a Read's request, so the bytes of Reads count for more.
 */
#define AW_WAITING_POSTS_MAX 64
#define AW_WAITING_BYTES_MAX 65536
#define AW_WAITING_READ_WEIGHT 4

struct aw_post_credit {
	uint32_t credits;
	uint32_t calls; /* of the burst */
	uint32_t polls; /* of the QP's CQs, at the last of these calls */
	uint64_t posted_ns; /* when the last of these calls ended */
	bool waits; /* posts wait */
	uint64_t since_ns; /* when the oldest of them was posted */
};

struct aw_ack_credit {
	uint32_t credits;
	bool due; /* an acknowledgement is due, with neither a post nor an empty poll since */
	bool waits; /* it was not sent yet */
	uint64_t since_ns;
};

/* The polls of the QP's two CQs. */
struct aw_credit_polls {
	uint32_t count;
	uint64_t behind_burst_ns[2]; /* the time of the first poll behind the last burst */
};

/* The posts that the QP has to send, and how many more WRs its send queue takes. */
struct aw_credit_posts {
	uint32_t posts, slots;
	uint64_t bytes;
};

/* A call that posts: ends the last burst or counts into it. True when it belongs to a burst. */
bool aw_credit_posted(struct aw_post_credit *credit, const struct aw_credit_polls *polls,
		      uint64_t now_ns);

/* True when the posts may wait for the poll that is to be expected. */
bool aw_credit_lets_posts_wait(const struct aw_post_credit *credit,
			       const struct aw_credit_posts *posts, uint64_t now_ns);

/* The posts wait, from now on if none did. */
void aw_credit_posts_wait(struct aw_post_credit *credit, uint64_t now_ns);

/* True when no poll came for the posts that wait; aw_credit_posts_were_late charges for that. */
bool aw_credit_posts_are_late(const struct aw_post_credit *credit, uint64_t now_ns);
void aw_credit_posts_were_late(struct aw_post_credit *credit);

/* An acknowledgement is due, and nothing else is to be sent. True when it may wait. */
bool aw_credit_ack_due(struct aw_ack_credit *credit, uint64_t now_ns);

/* answered: the program posts. missed: its poll is empty, or another thread serves the QP. */
void aw_credit_ack_answered(struct aw_ack_credit *credit, uint64_t now_ns);
void aw_credit_ack_missed(struct aw_ack_credit *credit, uint64_t now_ns);

/* True when the acknowledgement that waits has waited so long that the program evidently does something else. */
bool aw_credit_ack_is_late(const struct aw_ack_credit *credit, uint64_t now_ns);

#endif
