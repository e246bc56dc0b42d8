// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The sends of a QP that wait for the program's next call. net/qp/deferral.h has all that is done with them.
#ifndef NET_DEFERRAL_STATE_H
#define NET_DEFERRAL_STATE_H

#include "net/qp/credit.h"

#include <sys/queue.h>

struct aw_uqp;

/* In the QP, guarded by its lock. */
struct aw_deferral {
	struct aw_post_credit posts;
	struct aw_ack_credit ack;
	uint64_t bytes; /* posted and not transmitted, those of Reads by their weight */
	TAILQ_ENTRY(aw_uqp) entry; /* while posts wait; guarded by the list's lock */
};

#endif
