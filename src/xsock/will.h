// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What an endpoint leaves to be done if its process is killed, and what can be told of it meanwhile: a page
// that the process shares with its keeper (keeper/wills.h), and a pipe whose end tells of the death.
#ifndef XSOCK_WILL_H
#define XSOCK_WILL_H

#include <stdatomic.h>
#include <stdint.h>

#include "anywarp/cm.h"

#define AW_XS_WILL_OCTETS 4096 /* of memory */

enum aw_xs_will_state {
	AW_XS_WILL_EARLY, /* the connection is not there yet */
	AW_XS_WILL_OPEN, /* the peer expects to be told of the end */
	AW_XS_WILL_TOLD, /* it was told, or cannot be */
	AW_XS_WILL_VOID, /* the connection is not this process's any more */
};

/* Written by the endpoint, under its lock; zero at first. */
struct aw_xs_will {
	struct anywarp_cm_note note;
	_Atomic(uint32_t) state; /* enum aw_xs_will_state */
	_Atomic(uint32_t) behind; /* octets taken that could not be posted yet */
	_Atomic(uint32_t) unread; /* octets received that the program has not read */
	_Atomic(uint32_t) net; /* messages are in network byte order */
	/* as in struct aw_xs_stats */
	_Atomic(uint32_t) ep_state, send_credits, receive_credits;
	_Atomic(uint64_t) octets_in, octets_out;
};

#endif
