// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A meeting place: a listener of rdma_cm at which one end of a TCP connection awaits the other end.
// It has the TCP connection's local address, a port of rdma_cm's, and a ticket. Called by
// ext_connect.c.
#ifndef XSOCK_EXT_EXT_PLACE_H
#define XSOCK_EXT_EXT_PLACE_H

#include <rdma/rdma_cma.h>

#include "xsock/endpoint/ep.h"
#include "xsock/ext/rendezvous.h"

struct aw_ext_place {
	struct rdma_event_channel *events;
	struct rdma_cm_id *id;
	struct aw_place place; /* sent to the peer; its status is the reason if it is not open */
};

/*
 * Opens a place at the TCP connection's address local. Returns 0 or an errno; the caller closes
 * place in either case.
 */
int aw_ext_place_open(struct aw_ext_place *place, const struct sockaddr_storage *local);
/*
 * Waits until a peer with the ticket connects, and has ep accept it; rejects all others. tcp: a
 * socket whose end means that the peer is gone, or -1. Returns 0, ETIMEDOUT, ECONNRESET or the
 * endpoint's errno.
 */
int aw_ext_place_await(struct aw_ext_place *place, struct aw_xs_ep *ep, int tcp, int64_t until_ns);
void aw_ext_place_close(struct aw_ext_place *place);
/* Sets the port, in host byte order, of an IPv4 or IPv6 address. */
void aw_ext_place_set_port(struct sockaddr_storage *address, uint16_t port);

#endif
