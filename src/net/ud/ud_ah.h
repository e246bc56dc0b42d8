// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The destination of a UD datagram: an address handle. A WR holds a reference, so a program may
// destroy the handle once the WR is posted.
#ifndef NET_UD_AH_H
#define NET_UD_AH_H

#include "wire/ud.h"

#include <stdatomic.h>
#include <stdbool.h>

struct aw_ah {
	_Atomic uint32_t refs;
	/* fixed after create */
	uint8_t dst[GID_LEN];
	uint8_t src[GID_LEN]; /* of this host; all zero: routing chooses */
	uint32_t ifindex; /* of src: the interface where multicast and link-local datagrams leave */
	uint8_t traffic_class;
	uint8_t hop_limit; /* of multicast; 0: the system's own */
	uint8_t sl;
	bool by_lid; /* a path without GRH: dst is the loopback address */
};

/* A copy of *from with one reference; NULL: out of memory. */
struct aw_ah *aw_ah_create(const struct aw_ah *from);
struct aw_ah *aw_ah_get(struct aw_ah *ah);
/* The last reference frees it. */
void aw_ah_put(struct aw_ah *ah);

#endif
