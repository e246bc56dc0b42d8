// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A QP whose peer is the test itself: it speaks FPDUs over raw TCP, or with ANYWARP_TEST_TLS over TLS, and through the memory of a move.
#ifndef TESTS_LIB_MOVE_PEER_H
#define TESTS_LIB_MOVE_PEER_H

#include "uqp_pair.h"
#include "wire/move.h"

#define PEER_ULPDU_MAX 65535
#define PEER_FPDU_MAX (PEER_ULPDU_MAX + 16)

struct peer {
	struct end e; /* the QP */
	int pd;
	int fd; /* -1: closed */
	struct aw_tls *tls; /* over it, or NULL */
	int fds, maps; /* of the process, before */
	bool qp_initiates;
	struct aw_host_ring *ring; /* the peer's side, or NULL */
	uint8_t hello[MOVE_HELLO_LEN]; /* as it was taken, or as it is to be sent */
	uint8_t verdict[MOVE_VERDICT_LEN]; /* likewise */
	bool sends_memory, takes_memory;
	uint32_t msn;
	uint32_t received; /* Sends of the QP */
	uint32_t posted, taken; /* receives of the QP, posted and checked */
};

/* Of a group of tests. */
int peer_setup(void **state);
int peer_teardown(void **state);

/* A new stream, and its end: all that it had is given back then. */
void peer_join(struct peer *p, bool qp_initiates, bool moves);
void peer_part(struct peer *p);
void peer_hang_up(struct peer *p);
/* Ends the peer's direction in order. */
void peer_shut(struct peer *p);
/* The QP's end of the socket comes next, no octet before it. */
void peer_assert_over(struct peer *p);

/* FPDUs at at; their length is returned. A Send's payload is of 0x5a. */
size_t peer_fpdu(const struct peer *p, uint8_t *at, const uint8_t *ulpdu, size_t len);
size_t peer_move_fpdu(const struct peer *p, uint8_t *at, enum move_kind kind, const uint8_t *data);
size_t peer_send_fpdu(struct peer *p, uint8_t *at, size_t len);

void peer_put(struct peer *p, const uint8_t *octets, size_t len);
/* By the socket, wherever the stream is; octet by octet. */
void peer_put_socket(struct peer *p, const uint8_t *octets, size_t len);
void peer_put_slowly(struct peer *p, const uint8_t *octets, size_t len);
void peer_put_move(struct peer *p, enum move_kind kind, const uint8_t *data);
void peer_put_send(struct peer *p, size_t len);
void peer_ring_bells(struct peer *p, size_t count);

/* The QP's next FPDU, of which the CRC is right: the length of its ULPDU. */
size_t peer_take(struct peer *p, uint8_t *ulpdu);
/* Passes over what comes before the message. */
struct move_msg peer_await_move(struct peer *p, enum move_kind kind);
struct move_msg peer_take_move(struct peer *p, enum move_kind kind);
void peer_take_send(struct peer *p, size_t len);
/* A Terminate comes next. */
enum aw_error peer_take_terminate(struct peer *p);
/* As a local failure does. */
void peer_terminate_qp(struct peer *p);

void peer_post_recv(struct peer *p, uint32_t len);
void peer_assert_received(struct peer *p, uint32_t len);
/* A Send each way. */
void peer_exchange(struct peer *p);

/*
 * The QP responds: the peer has its hello, and has opened the memory. The QP initiates: the peer has made memory, and
 * its hello is ready.
 */
void peer_take_offer(struct peer *p);
void peer_make_offer(struct peer *p);
/* Up to the step between the verdict and MOVE_LAST, which then is the QP's to send, or the peer's. */
void peer_move_halfway(struct peer *p);
void peer_move(struct peer *p);
/* The verdict is zeros. */
void peer_stay(struct peer *p);

/* Maps of such memory that the process has more than before. */
int peer_maps(const struct peer *p);
void peer_wait_state(struct peer *p, enum aw_move_state state);
bool peer_qp_is_over(struct peer *p, bool memory);
enum aw_error peer_error(struct peer *p);

#endif
