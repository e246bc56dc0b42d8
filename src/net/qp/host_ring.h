// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The memory of a connection between two processes of one host and one user: a sealed memfd with
// two byte rings (ring/duplex.h). The responder makes it and names it in a hello (net/qp/move.h).
// The initiator opens it under /proc, where the kernel checks that the initiator may look into that
// process. The initiator checks that the memory holds the secret that came in the hello. Its
// verdict repeats a second secret, which only the memory holds.
#ifndef NET_HOST_RING_H
#define NET_HOST_RING_H

#include "net/qp/bells.h"
#include "net/qp/memfds.h"
#include "ring/duplex.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#define AW_HOST_SECRET_LEN 16
#define AW_HOST_HELLO_LEN \
	(12 + AW_HOST_SECRET_LEN) /* process, fd, the responder's port, the initiator's, a secret */
#define AW_HOST_VERDICT_LEN \
	AW_HOST_SECRET_LEN /* the secret in the memory; zeros: TCP carries the stream */

/* Bells that the responder rings and hears over TCP before it makes pipes: a short connection has none. */
#define AW_HOST_BELLS_BY_TCP 32

/* The size of each direction's ring: room for three of the largest FPDUs, within a core's cache. */
#define AW_HOST_RING_BYTES (256u * 1024)
/*
 * Rings that a process may have at a time: the kernel bounds its mappings, and with 32 bits its addresses: a ring takes a
 * megabyte of them.
 */
#define AW_HOST_RINGS_MAX (sizeof(void *) > 4 ? 4096u : 256u)

struct sockaddr;

struct aw_host_ring {
	LIST_ENTRY(aw_host_ring) entry; /* of the process's rings */
	struct aw_duplex duplex;
	void *base;
	size_t len;
	uint64_t memfd; /* responder: its name in net/qp/memfds.h; initiator: 0 */
	struct aw_bells bells; /* none: bells are bytes on the TCP socket */
	uint32_t peer_pid; /* initiator: the process that made memory and pipes; else 0 */
	uint32_t bells_by_tcp; /* rung and heard so far */
	bool bells_told; /* this end listens to its pipe, and the peer knows it */
	bool bells_heard_of; /* the peer listens to its pipe */
	uint8_t secret[AW_HOST_SECRET_LEN]; /* the verdict must equal it */
	bool gone; /* the TCP connection has ended: the peer neither wakes this end nor reads */
	bool reset; /* by a reset */
	bool drained; /* this end has read all bells and has not yet told the peer that it sleeps */
	/*
	 * another turn is due, whatever is posted or polled before it: there may be bytes without a
	 * bell
	 */
	bool more;
	bool closed_seen;
	uint64_t looked; /* the position in the peer's bytes that the last turn saw */
	bool asked; /* the socket's room is to bring that turn, or has woken the program for one that a poll has taken */
	uint64_t wakes; /* bells read, and turns brought by the socket's room */
};

/* True when both addresses of a connection are of this host. */
bool aw_host_is_one(const struct sockaddr *local, const struct sockaddr *peer);

/*
 * Writes the connection's ports into a hello; aw_host_are_ports compares them with the initiator's.
 * They differ when a relay lies between the two, which no stream may go around.
 */
void aw_host_put_ports(uint8_t *hello, const struct sockaddr *local, const struct sockaddr *peer);
bool aw_host_are_ports(const uint8_t *hello, const struct sockaddr *local,
		       const struct sockaddr *peer);

/*
 * Responder: makes the memory and hello's bytes. NULL with *cause when that fails. Initiator: opens
 * the memory that a hello names, and writes verdict's bytes. NULL with *cause when that fails; the
 * verdict then is zeros.
 */
struct aw_host_ring *aw_host_ring_make(uint8_t *hello, const char **cause);
struct aw_host_ring *aw_host_ring_open(const uint8_t *hello, uint8_t *verdict, const char **cause);

/* Ends this process's use of the memory; the peer keeps its own mapping. NULL is allowed. */
void aw_host_ring_free(struct aw_host_ring *ring);

/*
 * Called for each bell over TCP. True when pipes were made, or opened, just now: the QP, which finds bells.own at the end of its
 * turn, listens to it, and then calls tell_bells. The responder makes them after AW_HOST_BELLS_BY_TCP; the initiator opens
 * them once it has been told.
 */
bool aw_host_ring_count_bell(struct aw_host_ring *ring);

/* The peer may ring by the pipe from now on. Before, and where there is none, nothing happens. */
void aw_host_ring_tell_bells(struct aw_host_ring *ring);

/* Wakes the peer by its pipe. False: it does not listen to one, or there is none. */
bool aw_host_ring_ring(struct aw_host_ring *ring) AW_MUST_USE;

/*
 * Around a fork. The child gives up its share of the memory, which else would stay for as long as the child runs: zeros of its own take the
 * place, so that an inherited ring can still be freed.
 */
void aw_host_ring_fork_prepare(void);
void aw_host_ring_fork_parent(void);
void aw_host_ring_fork_child(void);

enum aw_host_verdict {
	AW_HOST_TCP,
	AW_HOST_RING,
	AW_HOST_LIE,
};

/* Responder: reads the initiator's verdict, and closes the memfd. */
enum aw_host_verdict aw_host_ring_decide(struct aw_host_ring *ring, const uint8_t *verdict);

#endif
