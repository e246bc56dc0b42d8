// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Asks a server by UDP whether this connection may become iWARP: xsock/question.h.
#ifndef XSOCK_PRELOAD_PROBE_H
#define XSOCK_PRELOAD_PROBE_H

#include <stdbool.h>
#include <sys/socket.h>

/* How long either end waits for the other to make itself known: ANYWARP_SOCKETS_PROBE_MS, or else ms. */
int aw_probe_wait_ms(int ms);
/* For one that has made itself known before: a second, or what ANYWARP_SOCKETS_PROBE_MS says if that is longer. */
int aw_probe_patience_ms(void);

/*
 * Sends the probe and waits for the answer: for wait_ms, or a second where the server has answered before and was not
 * silent twice since. A server that was silent is not asked for 10 seconds. records: this end has records.
 */
enum aw_peer_kind {
	AW_PEER_TCP,
	AW_PEER_IWARP,
	AW_PEER_RECORDS, /* yes, and both ends have records */
};
enum aw_peer_kind aw_probe_server(const struct sockaddr_storage *local,
				  const struct sockaddr_storage *remote, bool records, int wait_ms);

#endif
