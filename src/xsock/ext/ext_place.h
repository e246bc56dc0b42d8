// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A place where one end of a TCP connection awaits the other one by rdma_cm: the connection's address here, a port
// of rdma_cm's, and a ticket.
#ifndef XSOCK_EXT_EXT_PLACE_H
#define XSOCK_EXT_EXT_PLACE_H

#include <rdma/rdma_cma.h>

#include "xsock/endpoint/ep.h"
#include "xsock/ext/rendezvous.h"

struct aw_ext_place {
	struct rdma_event_channel *events;
	struct rdma_cm_id *id;
	struct aw_place place; /* for the peer; of one that is not open it says why */
};

/* 0 or an errno; to be closed either way. local: of the TCP connection. */
int aw_ext_place_open(struct aw_ext_place *place, const struct sockaddr_storage *local);
/*
 * Until who has the ticket comes, and ep has answered him; others are rejected. tcp: whose end is the peer's, or -1.
 * 0, ETIMEDOUT, ECONNRESET or what the endpoint says.
 */
int aw_ext_place_await(struct aw_ext_place *place, struct aw_xs_ep *ep, int tcp, int64_t until_ns);
void aw_ext_place_close(struct aw_ext_place *place);

#endif
