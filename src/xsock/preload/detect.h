// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Detects at the first I/O what the peer of a connection in mode `on` speaks, and so how the connection is carried: by the MPA Request of a
// client, which has to be whole, and without asking where the program itself is the client. The functions take no lock, and may wait for the
// peer: the caller holds none.
#ifndef XSOCK_PRELOAD_DETECT_H
#define XSOCK_PRELOAD_DETECT_H

#include "xsock/preload/first_io.h"

/*
 * The ways in which a connection is carried. Ratios are to TCP's own of the same run (docs/performance.md); the proxy process carries whatever
 * is bridged, and its price is the same for all of that: two hand-overs between processes and a copy each way.
 *
 * Plain TCP.
 *   When: mode `off`; mode `auto` where no pair is made (pair/plain.h has the reasons). In `on` only where the fd has no place in the table
 *   (aw_fdtab_log_left_out), whatever the peer is; never where TLS is required.
 *   Costs: nothing.
 *   Only it: reaches any peer.
 * AF_UNIX pair (pair/offer.h).
 *   When: `auto` at both ends, on one host, of one user, in one network namespace.
 *   Costs: one more fd at each end; 0.3 to 0.6 of TCP's new connections a second. Saves: 64 bytes take 0.75 to 0.9 of TCP's time, 64 KiB go
 *   at 1.5 to 3.3 times its rate.
 *   Only it: is faster than TCP, and is the kernel's own, so that calls that no wrapper sees work.
 * Record (record/record.h, framed/).
 *   When: `on`, both ends have records, and one of 16384 slots is free. Where TLS is required, with ANYWARP_SOCKETS_RECORD=tls alone, and this
 *   process makes the handshake.
 *   Costs: 64 bytes take 1.0 to 1.2 of TCP's time, 64 KiB go at 0.85 to 1.0 of its rate; 0.4 to 0.65 of its new connections; 9 KB of memory.
 *   Only it: is iWARP at about TCP's speed, on the program's own socket and without another process.
 * Bridged record (framed/bridge.h, proxy/line_record.c).
 *   When: a record comes to where no wrapper follows: stdio, a program without the library, SCM_RIGHTS, a sandbox, SO_PEEK_OFF; or its
 *   process forks, execs, closes or ends while TCP has a part of an FPDU.
 *   Costs: 64 bytes take 2.3 to 2.8 of TCP's time, 64 KiB go at 0.35 of its rate; about five fds in the proxy process.
 *   Only it: goes on with a record that has begun, and sends what its process has left behind.
 * Waiting client (proxy/line_client.c); it becomes a bridged record or a bridged endpoint.
 *   When: an accepted connection goes to such a place, or is closed, before its client's Request is there.
 *   Costs: as the line that it becomes.
 *   Only it: waits for the Request where no thread of the program does.
 * Bridged endpoint (endpoint/line_ep.c).
 *   When: TLS is required, and a record is not asked for; the client's Request is one of rsockets' protocol; the rule `rsockets`; ANYWARP_SOCKETS_RECORD=off or ANYWARP_MPA is set; no slot is
 *   free, or the process runs code that no wrapper sees (dlmopen).
 *   Costs: as a bridged record; 0.07 of TCP's new connections.
 *   Only it: speaks with rdma-core's rsockets, adapters and siw among them, and has the MPA that the user asks for.
 * TLS of the proxy process (proxy/line_tls.c).
 *   When: the rule `tls-plain`.
 *   Costs: as a bridged record, and TLS.
 *   Only it: speaks with programs that are not anywarp's, and in no clear.
 * Extended, on the connection itself (ext/).
 *   When: the program starts it by iwarp_start, with anywarp's librdmacm at both ends.
 *   Costs: a thread and 128 KiB a connection. Reads and writes in the program's thread are the endpoint's; those that go through the pair
 *   cost two wakes a message at each end.
 *   Only it: has one-sided and asynchronous operations, and sends without a copy.
 * Extended, by a rendezvous (ext/rendezvous.h).
 *   When: the same, with rdma-core's librdmacm at one end, which takes no sockets.
 *   Costs: as above, a second connection, and the exchange of its address over the first one.
 *   Only it: has these operations over an adapter.
 */

enum aw_detected {
	AW_DETECTED_ENDPOINT, /* the proxy process carries the connection */
	AW_DETECTED_RECORD,
	AW_DETECTED_ENDED, /* the peer has ended the connection, and the program learns that from the kernel */
	AW_DETECTED_REFUSED, /* the connect has failed */
	AW_DETECTED_LATER, /* the peer's bytes do not decide yet */
	AW_DETECTED_STRANGER, /* the peer speaks something else */
	AW_DETECTED_SILENT, /* the peer has sent no whole Request, or no handshake, in its time */
	AW_DETECTED_INSECURE, /* there is no TLS with the peer: aw_tls_start_cause says why */
	AW_DETECTED_UNMOVED, /* the handshake is under way, and the connection goes to where it cannot */
	AW_DETECTED_FAILED, /* the program's call fails with errno */
};

/* The program's call that makes the first I/O. */
struct aw_first_io_call {
	int fd;
	enum aw_first_io kind;
	bool dontwait;
	bool connects; /* a connect call, which has succeeded: an error is for the next call */
};

/*
 * Judges the connection of sock, a copy of what the table has for the call's fd. With
 * FAILED errno is set.
 */
enum aw_detected aw_detect_start(const struct aw_sock *sock, const struct aw_first_io_call *call);

/*
 * Returns whether the peer of fd has closed or reset the connection before a Request came: the
 * program learns that from the kernel.
 */
bool aw_detect_has_ended(int fd);

#endif
