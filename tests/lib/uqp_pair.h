// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Two QPs of the driver in one process, connected over loopback TCP, each with a CQ and memory.
#ifndef TESTS_LIB_UQP_PAIR_H
#define TESTS_LIB_UQP_PAIR_H

#include "net/qp/uqp.h"

#include <stddef.h>

#define BUF_OCTETS (3u << 20)
#define UQP_PAIR_WAIT_NS 60000000000ull /* nothing takes so long but a hang */

struct end {
	struct aw_cq cq;
	struct aw_uqp *qp;
	uint8_t *buf;
	struct aw_mr mr;
	_Atomic uint32_t events;
};

struct pair {
	struct end a, b; /* a is the initiator */
	int pd;
};

/* A QP with a CQ, or with one that is given; and the way back. */
void end_make(struct end *e, const void *pd, struct aw_srq *srq);
void end_make_on(struct end *e, const void *pd, struct aw_cq *cq);
void end_destroy(struct end *e);
/* Both directions of the stream go on through the memory, which the QP then owns. */
void end_move(struct end *e, struct aw_host_ring *ring);

/* Both ends onto the two sockets of a new connection, which pair_secure, where it is not NULL, puts under TLS first (tls_ends.h). */
void pair_attach(struct pair *p);
extern void (*pair_secure)(const int fd[2], struct aw_tls *tls[2]);

/* For cmocka: *state is a connected struct pair, and the engine runs. */
int pair_setup(void **state);
int pair_teardown(void **state);

/* While the progress thread is stopped only what a test does itself moves a stream. This teardown starts it again. */
void pair_stop_progress(void);
void pair_start_progress(void);
int pair_teardown_stopped(void **state);

/* The channel of e's CQ: over memory its QP has an event as it begins, which asks for that. */
void end_set_channel(struct end *e, struct aw_channel *channel);

struct aw_cq_entry end_wait_cqe(struct end *e);
void end_wait_event(struct end *e, uint32_t event);
/* From now on a message that finds no receive at e waits for one. */
void end_hold(struct end *e);
/* Until the stream is held: a message waits there for a receive. */
void end_wait_held(struct end *e);
/* Whether a direction of the stream goes through memory. */
bool end_is_in_memory(struct end *e, bool in);
/* Whether the end has more to send, for which there is no room. */
bool end_is_full(struct end *e);
/* Sends what waits until the socket takes no more, and nothing is on its way whose arrival would make room: it is full until the peer reads. */
void end_fill_socket(struct end *e, int peers_fd);
struct aw_sge end_sge(struct end *e, size_t offset, uint32_t len);

/* A signalled WR over the first octets of e's memory and of peer's. */
void end_post(struct end *e, enum aw_op op, struct end *peer, uint32_t len);
/* Without a completion. */
void end_write_unsignalled(struct end *e, struct end *peer, uint32_t len);

/* Whether other threads than the progress thread serve the QP (net/qp/serve.h): waiters of that channel, or, with NULL, any. */
bool uqp_is_away(struct aw_uqp *qp, const struct aw_channel *to);
/*
 * With the QP's lock: leaves the QP to pollers, unless the progress thread has; takes it back at once, though they may go on
 * polling.
 */
void uqp_leave_to_pollers(struct aw_uqp *qp);
void uqp_take_back(struct aw_uqp *qp);

/* One round of a thread that polls the QP's CQ. */
void uqp_poll(struct aw_uqp *qp);

/* The channel to whose waiters an arrival would leave the QP now, or NULL; it counts as one. */
struct aw_channel *uqp_waiters_next(struct aw_uqp *qp);

/* True where the QP's arrivals have raised events enough to be left to a program that polls its channel's fd. */
bool uqp_is_eventful(struct aw_uqp *qp);

/* Returns when the progress thread has received all that came, and has left the QP's lock. */
void uqp_wait_received(struct aw_uqp *qp);

/* Returns when other threads no longer serve the QP. */
void uqp_wait_taken_back(struct aw_uqp *qp, const struct aw_channel *to);

/* An octet that a peer may be writing: watching memory is a race by design. */
uint8_t octet_at(const uint8_t *p);

#endif
