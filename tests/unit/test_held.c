// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// More streams held for a receive than large stages there are, each with all that one read of its socket
// brings: what waits fits where it waits, and arrives.
#include "../lib/tcp.h"
#include "../lib/until.h"
#include "../lib/uqp_pair.h"
#include "net/mem/pool.h"
#include "net/mr/mrtab.h"
#include "net/progress/engine.h"
#include "net/qp/cq_poll.h"
#include "net/qp/uqp_sock.h"
#include "wire/ddp.h"
#include "wire/octets.h"
#include "wire/rdmap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum {
	STREAMS = 100,
	SOCKET_OCTETS = 1 << 20, /* the kernel gives less, but twice a stage that is not large */
};

/* The first is the longest that a length field can say. */
static const uint32_t payloads[] = { FPDU_ULPDU_MAX - DDP_UNTAGGED_LEN, 40000, 0, 40000 };

#define MESSAGES (sizeof(payloads) / sizeof(payloads[0]))

struct stream {
	struct aw_uqp *qp;
	int peer;
};

struct scene {
	struct aw_cq cq;
	int pd;
	struct aw_mr mr;
	uint8_t buf[FPDU_MAX];
	struct stream streams[STREAMS];
};

static uint8_t octet_of(unsigned int stream, size_t message, size_t at)
{
	return (uint8_t)(stream * 31 + message * 17 + at * 7 + (at >> 8));
}

/* Every other stream has markers: then the first message is as long as an FPDU can be. */
static bool has_markers(unsigned int stream)
{
	return stream % 2;
}

/* Without markers. Without a CRC, its field is whatever is there. */
static size_t put_plain(uint8_t *fpdu, unsigned int stream, size_t message)
{
	const struct ddp_hdr hdr = {
		.last = true,
		.ulp_ctrl = rdmap_ctrl(RDMAP_SEND),
		.qn = DDP_QN_SEND,
		.msn = (uint32_t)message + 1,
	};
	size_t len = DDP_UNTAGGED_LEN + payloads[message];

	memset(fpdu, 0, fpdu_size(len));
	put_be16(fpdu, (uint16_t)len);
	ddp_put(&hdr, fpdu + FPDU_LEN_FIELD);
	for (size_t i = 0; i < payloads[message]; i++)
		fpdu[FPDU_LEN_FIELD + DDP_UNTAGGED_LEN + i] = octet_of(stream, message, i);
	return fpdu_size(len);
}

static size_t put_message(uint8_t *octets, size_t pos, unsigned int stream, size_t message)
{
	static uint8_t plain[FPDU_MAX];
	size_t size = put_plain(plain, stream, message);

	if (has_markers(stream))
		return fpdu_insert_markers(octets + pos, plain, size, (uint32_t)pos);
	memcpy(octets + pos, plain, size);
	return size;
}

/* A connection whose socket has everything before the QP gets it. */
static int connect_and_send(struct stream *stream, unsigned int number)
{
	static uint8_t octets[MESSAGES * FPDU_MAX];
	struct sockaddr_storage addr;
	int room = SOCKET_OCTETS, listener = tcp_listen(1, &addr), fd;
	size_t len = 0;

	setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
	stream->peer = tcp_connect(&addr);
	fd = tcp_accept(listener);
	close(listener);
	for (size_t i = 0; i < MESSAGES; i++)
		len += put_message(octets, len, number, i);
	tcp_send(stream->peer, octets, len);
	tcp_unblock(fd);
	return fd;
}

static void begin_stream(struct scene *s, unsigned int number)
{
	struct stream *stream = &s->streams[number];
	struct aw_stream how = { .markers_rx = has_markers(number), .ird = 1, .ord = 1 };
	const struct aw_uqp_attr attr = {
		.send_cq = &s->cq,
		.recv_cq = &s->cq,
		.pd = &s->pd,
		.send_wr_max = 1,
		.recv_wr_max = MESSAGES,
		.send_sge_max = 1,
		.recv_sge_max = 1,
	};

	assert_int_equal(aw_uqp_create(&attr, &stream->qp), 0);
	assert_int_equal(aw_uqp_attach(stream->qp, connect_and_send(stream, number), &how), 0);
	aw_uqp_on_wake(stream->qp->handle); /* receives, unless the progress thread has */
	aw_lock(&stream->qp->lock);
	stream->qp->rnr_ms = 0; /* for ever: a loaded machine may take a second for all of them */
	aw_unlock(&stream->qp->lock);
}

static int setup(void **state)
{
	struct scene *s = calloc(1, sizeof(*s));

	assert_int_equal(aw_engine_get(), 0);
	assert_int_equal(aw_cq_init(&s->cq, 2 * STREAMS * MESSAGES, NULL, NULL), 0);
	s->mr = (struct aw_mr){
		.access = AW_ACCESS_LOCAL_WRITE,
		.iova = (uintptr_t)s->buf,
		.len = sizeof(s->buf),
		.host = s->buf,
		.pd = &s->pd,
	};
	assert_int_equal(aw_mr_add(&s->mr), 0);
	for (unsigned int i = 0; i < STREAMS; i++)
		begin_stream(s, i);
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	for (unsigned int i = 0; i < STREAMS; i++) {
		aw_uqp_destroy(s->streams[i].qp);
		close(s->streams[i].peer);
	}
	aw_cq_fini(&s->cq);
	aw_mr_remove(&s->mr);
	aw_engine_put();
	free(s);
	return 0;
}

/* Octets that a stream holds in a stage of what size. */
static size_t held(const struct stream *stream, size_t *size)
{
	size_t len;

	aw_lock(&stream->qp->lock);
	assert_true(stream->qp->core.rx_held > 0);
	if (stream->qp->core.stream.markers_rx)
		assert_int_equal(stream->qp->core.rx_held, FPDU_MAX);
	len = stream->qp->stage->len;
	*size = stream->qp->stage->size;
	aw_unlock(&stream->qp->lock);
	return len;
}

static void await_cqe(struct scene *s, struct aw_cq_entry *entry)
{
	until(aw_cq_poll(&s->cq, entry, 1) == 1);
}

static bool is_message(const uint8_t *octets, unsigned int stream, size_t message)
{
	bool is = true;

	for (size_t i = 0; i < payloads[message]; i++)
		is &= octets[i] == octet_of(stream, message, i);
	return is;
}

static void assert_arrives(struct scene *s, unsigned int stream, size_t message)
{
	struct aw_sge sge = { (uintptr_t)s->buf, sizeof(s->buf), s->mr.stag };
	struct aw_uqp *qp = s->streams[stream].qp;
	struct aw_cq_entry entry;

	assert_int_equal(aw_uqp_recv(qp, message, &sge, 1), 0);
	await_cqe(s, &entry);
	assert_ptr_equal(entry.user, &qp->of_cq);
	assert_int_equal(entry.cqe.wr_id, message);
	assert_int_equal(entry.cqe.status, AW_WC_SUCCESS);
	assert_int_equal(entry.cqe.byte_len, payloads[message]);
	assert_true(is_message(s->buf, stream, message));
}

static void held__fits_where_it_waits(void **state)
{
	struct scene *s = *state;
	unsigned int large = 0, beyond = 0;

	for (unsigned int i = 0; i < STREAMS; i++) {
		size_t size, len = held(&s->streams[i], &size);

		assert_in_range(len, 1, size);
		if (size > FPDU_MAX) {
			large++;
			beyond += len > FPDU_MAX;
		}
	}
	assert_in_range(large, 1, AW_STAGES_LARGE_MAX);
	/* Otherwise the sockets had not enough for this to be a test. */
	assert_int_equal(beyond, large);
}

/* In turns, so that places go from stream to stream. */
static void held__arrives(void **state)
{
	struct scene *s = *state;

	for (size_t message = 0; message < MESSAGES; message++)
		for (unsigned int i = 0; i < STREAMS; i++)
			assert_arrives(s, i, message);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(held__fits_where_it_waits, setup, teardown),
		cmocka_unit_test_setup_teardown(held__arrives, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
