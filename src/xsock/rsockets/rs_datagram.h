// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// rsockets of SOCK_DGRAM. Their bytes go over UDP, each datagram behind the header that rsockets have
// for datagrams on the way to a peer whose UD queue pair is not known: iWARP has no such pairs.
#ifndef XSOCK_RSOCKETS_RS_DATAGRAM_H
#define XSOCK_RSOCKETS_RS_DATAGRAM_H

#include "xsock/rsockets/rs_socket.h"

/* A new one's number, or a negative errno. */
int aw_rs_datagram_open(int domain, int flags) __attribute__((warn_unused_result));

ssize_t aw_rs_datagram_send(struct aw_rs *rs, const struct msghdr *msg, int flags);
ssize_t aw_rs_datagram_recv(struct aw_rs *rs, struct msghdr *msg, int flags);

/* What poll(2) said of the UDP socket, without what is no datagram of rsockets. */
short aw_rs_datagram_revents(struct aw_rs *rs, short revents);

#endif
