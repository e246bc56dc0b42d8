// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Times and counts that bound what a peer can make this process hold. They are variables only for
// the tests, which need neither wait nor open thousands of sockets; nothing else writes them. They
// are atomic because a test writes them while the progress thread reads them.
#ifndef NET_BOUNDS_H
#define NET_BOUNDS_H

#include <stdint.h>

/*
 * The time for TCP's connect, and the time from then until the MPA frame is whole. On a socket that
 * the program has connected it runs from the frame's first byte, because TCP may accept long before
 * the peer's program does.
 */
#define AW_CONN_STARTUP_MS 10000

/*
 * A responder whose program has not answered a Request lets an initiator that takes waits (docs/extensions.md) know
 * of it whenever so much time has passed: half of AW_CONN_STARTUP_MS, for which the initiator then waits anew, so that
 * a late thread costs no connection. InfiniBand's rdma_cm waits for minutes, too; ten of them, because every wait ends.
 */
#define AW_CONN_WAIT_MS 5000
#define AW_CONN_WAITS_MAX 120

/*
 * A peer that acknowledges nothing for so long is lost, whether this end sends bytes, probes a
 * closed window (net/qp/lost.h), or, when neither is under way, sends TCP's keep-alive probes,
 * which begin after half of this time. iWARP adapters probe too; TCP alone would take a quarter of
 * an hour, or never find out. RFC 9293 3.8.3 wants at least 100 seconds. A peer that acknowledges
 * and takes no byte is not lost.
 */
#define AW_CONN_LOST_MS 120000

/*
 * Connections of a listener without a whole Request; AW_FILES_HALF_OPEN may allow fewer. Beyond that
 * the oldest are dropped.
 */
#define AW_HALF_OPEN_MAX 1024
/*
 * No connection is dropped that has been silent for less, in TCP's backlog or here: the client's
 * Request may have been lost once, which its TCP finds out after 200 ms (Linux's least
 * retransmission time-out), and the client's threads and this process's need time to run.
 */
#define AW_HALF_OPEN_YOUNG_MS 250

/* A socket lingers no longer than this (net/progress/linger.h). */
#define AW_LINGER_MS 2000

/*
 * The end of a pair that does not call at once (aw_pair_is_caller) calls when no Request has come
 * for so long.
 */
#define AW_RC_YIELD_MS 100

/*
 * The least time that a post waits for a first connection, whatever the QP's timeout is: that
 * timeout is for adapters, which need no TCP handshake and no other process to be scheduled.
 */
#define AW_RC_POST_WAIT_MS 5000

/* The least time from DISCONNECTED to TIMEWAIT_EXIT, about as long as InfiniBand's timewait. */
#define AW_TIMEWAIT_MS 2000

/* Records of TLS under one set of keys; RFC 8446 5.5 allows AES-GCM 2^24.5 of them, which are at least 256 GiB in full ones. */
#define AW_TLS_RECORDS_MAX (1u << 24)

struct aw_bounds {
	_Atomic uint32_t startup_ms; /* AW_CONN_STARTUP_MS */
	_Atomic uint32_t wait_ms; /* AW_CONN_WAIT_MS */
	_Atomic uint32_t waits_max; /* AW_CONN_WAITS_MAX */
	_Atomic uint32_t lost_ms; /* AW_CONN_LOST_MS */
	_Atomic uint32_t half_open_max; /* AW_HALF_OPEN_MAX */
	_Atomic uint32_t young_ms; /* AW_HALF_OPEN_YOUNG_MS */
	_Atomic uint32_t linger_ms; /* AW_LINGER_MS */
	_Atomic uint32_t post_wait_ms; /* AW_RC_POST_WAIT_MS */
	_Atomic uint32_t yield_ms; /* AW_RC_YIELD_MS */
	_Atomic uint32_t timewait_ms; /* AW_TIMEWAIT_MS */
	_Atomic uint32_t tls_records_max; /* AW_TLS_RECORDS_MAX */
};

extern struct aw_bounds aw_bounds;

/*
 * Connections that the program has not accepted hold at most a quarter of the files that the
 * process may have (RLIMIT_NOFILE's soft limit), or five sixteenths where the program calls rlisten
 * (xsock/rsockets/rs_listen.c), so that the program's own open(2) does not fail because of them. Each
 * constant divides that limit and bounds all connections of one kind together.
 */
#define AW_FILES_HALF_OPEN 16 /* connections that have sent no whole Request */
#define AW_FILES_LINGERING 16 /* rejected connections whose peer may not have received the reject */
#define AW_FILES_REQUESTS \
	8 /* Requests that the program has not taken from rdma_cm, or that its QP holds (roce) */

#define AW_FILES_LEAST 4 /* of each holder, whatever the limit is */

/* Each holder's share of the files: the soft limit / part / holders, and at least AW_FILES_LEAST. */
uint32_t aw_bounds_files(uint32_t part, uint32_t holders);

#endif
