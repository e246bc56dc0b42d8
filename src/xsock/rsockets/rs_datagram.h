// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// rsockets of SOCK_DGRAM. Their bytes go over UDP, each datagram behind the header that rsockets
// use towards a peer whose UD QP is not known: iWARP has no UD QPs. Called by rs_data.c and rs_poll.c.
#ifndef XSOCK_RSOCKETS_RS_DATAGRAM_H
#define XSOCK_RSOCKETS_RS_DATAGRAM_H

#include "xsock/rsockets/rs_socket.h"

ssize_t aw_rs_datagram_send(struct aw_rs *rs, const struct msghdr *msg, int flags);
ssize_t aw_rs_datagram_recv(struct aw_rs *rs, struct msghdr *msg, int flags);

/* Returns what to ask poll(2) for on the UDP socket where the program has asked for events. */
short aw_rs_datagram_events(short events);
/*
 * Returns the revents for events, of what poll(2) has answered: POLLIN only for a datagram of an rsocket's, or after
 * a shutdown.
 */
short aw_rs_datagram_revents(struct aw_rs *rs, short events, short asked);

#endif
