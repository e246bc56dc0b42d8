// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Tells the user of a peer that does not speak iWARP, where its socket has to.
#ifndef XSOCK_FRAMED_REFUSAL_H
#define XSOCK_FRAMED_REFUSAL_H

#include <stdbool.h>
#include <sys/socket.h>

#include "xsock/base/ip.h"

enum aw_refusal {
	AW_REFUSAL_OTHER_CLIENT,
	AW_REFUSAL_SILENT_CLIENT,
	AW_REFUSAL_CLIENT, /* one or the other */
	/* a server's */
	AW_REFUSAL_OTHER_SERVER,
	AW_REFUSAL_SILENT_SERVER,
	AW_REFUSAL_ENDED,
};

/*
 * Writes one line, at the default level, with the address of fd's peer, the reason and the remedy. peer NULL: the kernel knows it.
 * Keeps errno.
 */
void aw_refusal_log(int fd, const union aw_address *peer, enum aw_refusal why);
/* The same where TLS is required, and the proxy process, which carries the connection, has logged why there is none. */
void aw_refusal_log_insecure(int fd, const union aw_address *peer);
/* The same where the peer has refused this end by an alert of TLS (RFC 8446 6.2). */
void aw_refusal_log_alert(int fd, const union aw_address *peer, unsigned alert);
/* The same for a handshake in this process, with its cause. */
void aw_refusal_log_tls(int fd, const union aw_address *peer, const char *cause);
/*
 * Returns whether fd is a socket of MPTCP, whatever socket(2) was asked for, and tells the user: its bytes have several ways, and
 * iWARP has one. Keeps errno.
 */
bool aw_refusal_is_due_to_mptcp(int fd);

#endif
