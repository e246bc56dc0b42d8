// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A QP whose stream goes through memory, and a raw peer that writes FPDUs into its ring, with a bell or without one.
#ifndef TESTS_LIB_HOST_SCENE_H
#define TESTS_LIB_HOST_SCENE_H

#include "uqp_pair.h"

#include "net/progress/engine.h"
#include "wire/ddp.h"
#include "wire/fpdu.h"
#include "wire/octets.h"
#include "wire/rdmap.h"

#include <arpa/inet.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

/* e is the responder; the raw peer has the rest. */
struct scene {
	struct end e;
	int pd;
	int fd, far_fd;
	struct aw_host_ring *ring;
	uint32_t msn;
	struct aw_bells taken[AW_BELLS_MAX]; /* so that none are left for the two ends */
	int taken_count;
};

static inline void join_sockets(int fd[2])
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(addr);
	int lfd = socket(AF_INET, SOCK_STREAM, 0);

	assert_int_equal(bind(lfd, (struct sockaddr *)&addr, len), 0);
	assert_int_equal(listen(lfd, 1), 0);
	getsockname(lfd, (struct sockaddr *)&addr, &len);
	fd[0] = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(connect(fd[0], (struct sockaddr *)&addr, len), 0);
	fd[1] = accept(lfd, NULL, NULL);
	close(lfd);
}

/* As after a move: the responder has heard of a verdict for its memory. */
static inline void begin(struct scene *s)
{
	struct aw_stream stream = { .crc = true, .ird = 4, .ord = 4 };
	uint8_t hello[AW_HOST_HELLO_LEN], verdict[AW_HOST_VERDICT_LEN];
	const char *cause;
	struct aw_host_ring *ring = aw_host_ring_make(hello, &cause);
	int fd[2];

	assert_non_null(ring);
	s->ring = aw_host_ring_open(hello, verdict, &cause);
	assert_non_null(s->ring);
	assert_int_equal(aw_host_ring_decide(ring, verdict), AW_HOST_RING);
	join_sockets(fd);
	s->fd = fd[0];
	s->far_fd = fd[1];
	s->msn = 1;
	s->e = (struct end){ 0 };
	end_make(&s->e, &s->pd, NULL);
	assert_int_equal(aw_uqp_attach(s->e.qp, fd[1], &stream), 0);
	end_move(&s->e, ring);
}

static inline bool has_pipes(struct scene *s)
{
	bool has;

	aw_lock(&s->e.qp->lock);
	has = s->e.qp->ring->bells.own >= 0;
	aw_unlock(&s->e.qp->lock);
	return has;
}

/* Rings over TCP until the QP has told of its pipes; the peer opens them then. */
static inline void meet_pipes(struct scene *s)
{
	int unread;

	while (!aw_host_ring_count_bell(s->ring)) {
		assert_int_equal(write(s->fd, "", 1), 1);
		do {
			assert_int_equal(ioctl(s->far_fd, FIONREAD, &unread), 0);
			sched_yield();
		} while (unread > 0);
	}
	aw_host_ring_tell_bells(s->ring);
	assert_true(has_pipes(s));
}

static inline void join(struct scene *s)
{
	begin(s);
	assert_false(has_pipes(s));
	if (s->taken_count == 0)
		meet_pipes(s);
}

static inline void part(struct scene *s)
{
	close(s->fd);
	aw_host_ring_free(s->ring);
	end_destroy(&s->e);
}

static inline int setup(void **state)
{
	struct scene *s = calloc(1, sizeof(*s));

	assert_int_equal(aw_engine_get(), 0);
	*state = s;
	return 0;
}

static inline int setup_without_pipes(void **state)
{
	struct aw_bells_name names[2];
	struct scene *s;

	setup(state);
	s = *state;
	while (s->taken_count < (int)aw_bells_places())
		aw_bells_make(&s->taken[s->taken_count++], names);
	return s->taken[s->taken_count - 1].own < 0;
}

static inline int teardown(void **state)
{
	struct scene *s = *state;

	pair_start_progress();
	while (s->taken_count > 0)
		aw_bells_close(&s->taken[--s->taken_count]);
	aw_engine_put();
	free(*state);
	return 0;
}

static inline void ring_bell(struct scene *s)
{
	ssize_t sent;

	if (aw_host_ring_ring(s->ring))
		return;
	sent = send(s->fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	(void)sent;
}

/* The FPDU of a Send of len octets, of which no bell tells; at most so many of its own go into the ring. */
static inline void put_quietly(struct scene *s, size_t len, size_t most)
{
	const struct ddp_hdr hdr = {
		.last = true, .ulp_ctrl = rdmap_ctrl(RDMAP_SEND), .qn = DDP_QN_SEND, .msn = s->msn++
	};
	size_t size = fpdu_size(DDP_UNTAGGED_LEN + len);

	assert_true(aw_duplex_room(&s->ring->duplex) >= size);
	uint8_t *at = aw_duplex_tx(&s->ring->duplex);

	memset(at, 0, size);
	put_be16(at, (uint16_t)(DDP_UNTAGGED_LEN + len));
	memset(at + FPDU_LEN_FIELD + ddp_put(&hdr, at + FPDU_LEN_FIELD), 0x5a, len);
	aw_duplex_produce(&s->ring->duplex, size < most ? size : most);
}

static inline void put_send(struct scene *s, size_t len, size_t most)
{
	put_quietly(s, len, most);
	ring_bell(s);
}

static inline void post_recv(struct scene *s, uint32_t len)
{
	struct aw_sge sge = end_sge(&s->e, 0, len);

	assert_int_equal(aw_uqp_recv(s->e.qp, 1, &sge, 1), 0);
}

#endif
