// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Sends the UDP probe (base/probe_wire.h), by which a client learns whether a server speaks iWARP.
// Callers hold no lock.
#ifndef XSOCK_PRELOAD_PROBE_H
#define XSOCK_PRELOAD_PROBE_H

#include <stdbool.h>
#include <sys/socket.h>

/*
 * Returns how long either end waits for a peer of which it knows nothing: ANYWARP_SOCKETS_PROBE_MS,
 * or ms if that is not set.
 */
int aw_probe_wait_ms(int ms);
/*
 * The same for a peer that has sent an answer or a probe before: a second, or
 * ANYWARP_SOCKETS_PROBE_MS if that is longer.
 */
int aw_probe_patience_ms(void);

/*
 * Sends the probe and waits for the answer: wait_ms and two round trips of tcp, which is connected to the server, or a
 * second if the server has answered before and has not missed two probes since. A server that has not answered gets no
 * probe for 10 seconds. records: this end has records.
 */
enum aw_peer_kind {
	AW_PEER_TCP,
	AW_PEER_IWARP,
	AW_PEER_RECORDS, /* the server speaks iWARP, and both ends have records */
};
enum aw_peer_kind aw_probe_server(int tcp, const struct sockaddr_storage *local,
				  const struct sockaddr_storage *remote, bool records, int wait_ms);

#endif
