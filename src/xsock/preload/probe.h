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

enum aw_answer {
	AW_ANSWER_NONE, /* no answer came in time */
	AW_ANSWER_REFUSED, /* the server's host has refused the datagram */
	AW_ANSWER_NO, /* the server answers no, for this connection */
	AW_ANSWER_YES, /* the server speaks iWARP */
	AW_ANSWER_RECORDS, /* yes, and both ends have records */
};

/*
 * Sends the probe and waits for the answer: wait_ms and two round trips of tcp, which is connected to the server, or a
 * second if the server has answered before and has not missed two probes since. A server that has not answered gets no
 * probe for 10 seconds: NONE. records: this end has records.
 */
enum aw_answer aw_probe_server(int tcp, const struct sockaddr_storage *local,
			       const struct sockaddr_storage *remote, bool records, int wait_ms);

#endif
