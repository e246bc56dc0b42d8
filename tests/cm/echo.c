// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The first message of the answering end names its memory for Writes and Reads.
#include "echo.h"

#include <stdlib.h>
#include <string.h>

#define BUFFERS (2 * ECHO_WINDOW + 1)
#define ONE_SIDED 0x1000 /* in wr_id */

struct place {
	uint64_t addr;
	uint32_t rkey;
};

static uint8_t *buffer(const struct echo *e, uint32_t i)
{
	return e->buffers + (size_t)i * ECHO_OCTETS;
}

/* Of message n: short ones, ones of about an FPDU, long ones. */
static uint32_t length(uint32_t n)
{
	uint32_t hash = n * 2654435761u >> 8;

	switch (n % 4) {
	case 0:
		return 4 + hash % 100;
	case 1:
		return 4 + hash % 3000;
	case 2:
		return 60000 + hash % 10000;
	default:
		return 4 + hash % (ECHO_OCTETS - 4);
	}
}

static void fill(uint8_t *p, uint32_t n)
{
	uint32_t len = length(n);

	memcpy(p, &n, 4);
	memset(p + 4, (int)(n * 7 + 1), len - 4);
}

static void check(const uint8_t *p, uint32_t n, uint32_t len)
{
	static uint8_t want[ECHO_OCTETS];

	assert_int_equal(len, length(n));
	fill(want, n);
	assert_memory_equal(p, want, len);
}

static void post_recv(struct echo *e, uint32_t i)
{
	struct ibv_sge sge = { (uint64_t)(uintptr_t)buffer(e, i), ECHO_OCTETS, e->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1 }, *bad;

	assert_int_equal(ibv_post_recv(e->id->qp, &wr, &bad), 0);
}

static void post(struct echo *e, struct ibv_send_wr *wr, uint32_t i, uint32_t len)
{
	struct ibv_sge sge = { (uint64_t)(uintptr_t)buffer(e, i), len, e->mr->lkey };
	struct ibv_send_wr *bad;

	wr->sg_list = &sge;
	wr->num_sge = 1;
	wr->send_flags = IBV_SEND_SIGNALED;
	assert_int_equal(ibv_post_send(e->id->qp, wr, &bad), 0);
}

static void send_message(struct echo *e, uint32_t i, uint32_t len)
{
	struct ibv_send_wr wr = { .wr_id = i, .opcode = IBV_WR_SEND };

	post(e, &wr, i, len);
}

void echo_open(struct echo *e, struct rdma_cm_id *id)
{
	const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			   IBV_ACCESS_REMOTE_READ;

	*e = (struct echo){ .id = id };
	e->channel = ibv_create_comp_channel(id->verbs);
	e->cq = ibv_create_cq(id->verbs, 4 * BUFFERS, NULL, e->channel, 0);
	assert_non_null(e->cq);
	struct ibv_qp_init_attr attr = {
		.send_cq = e->cq,
		.recv_cq = e->cq,
		.cap = { .max_send_wr = 2 * BUFFERS,
			 .max_recv_wr = ECHO_WINDOW,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};

	e->buffers = calloc(BUFFERS, ECHO_OCTETS);
	assert_int_equal(rdma_create_qp(id, NULL, &attr), 0);
	e->mr = ibv_reg_mr(id->pd, e->buffers, (size_t)BUFFERS * ECHO_OCTETS, access);
	assert_non_null(e->mr);
	for (uint32_t i = 0; i < ECHO_WINDOW; i++)
		post_recv(e, i);
	assert_int_equal(ibv_req_notify_cq(e->cq, 0), 0);
}

void echo_free(struct echo *e)
{
	assert_int_equal(ibv_dereg_mr(e->mr), 0);
	assert_int_equal(ibv_destroy_cq(e->cq), 0);
	assert_int_equal(ibv_destroy_comp_channel(e->channel), 0);
	free(e->buffers);
}

void echo_close(struct echo *e)
{
	cm_destroy(e->id);
	echo_free(e);
}

static void name_place(struct echo *e)
{
	struct place place = { (uint64_t)(uintptr_t)buffer(e, 2 * ECHO_WINDOW), e->mr->rkey };
	uint32_t i = ECHO_WINDOW;

	memcpy(buffer(e, i), &place, sizeof(place));
	send_message(e, i, sizeof(place));
}

/* A message leaves from where it came to, which is posted again when it has left. */
static bool answer(struct echo *e, const struct ibv_wc *wc)
{
	if (wc->status == IBV_WC_WR_FLUSH_ERR)
		return false;
	assert_int_equal(wc->status, IBV_WC_SUCCESS);
	if (wc->opcode == IBV_WC_RECV) {
		if (e->received++ == 0)
			name_place(e);
		send_message(e, (uint32_t)wc->wr_id, wc->byte_len);
	} else if (wc->wr_id < ECHO_WINDOW) {
		e->completed++;
		post_recv(e, (uint32_t)wc->wr_id);
	}
	return true;
}

static void await(struct echo *e)
{
	struct ibv_cq *cq;
	void *context;

	assert_int_equal(ibv_get_cq_event(e->channel, &cq, &context), 0);
	assert_ptr_equal(cq, e->cq);
	ibv_ack_cq_events(cq, 1);
	assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
}

bool echo_answer(struct echo *e, bool sleeps)
{
	struct ibv_wc wc;
	int n = ibv_poll_cq(e->cq, 1, &wc);

	assert_true(n >= 0);
	if (n > 0)
		return answer(e, &wc);
	if (sleeps)
		await(e);
	return true;
}

/* Alternately a Write of a pattern, and a Read that must find it. */
static void post_one_sided(struct echo *e)
{
	uint32_t i = 2 * ECHO_WINDOW, n = e->one_sided_count++;
	struct ibv_send_wr wr = { .wr_id = ONE_SIDED + n % 2 };

	memset(buffer(e, i), n % 2 ? 0 : (int)n, ECHO_OCTETS);
	wr.opcode = n % 2 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE;
	wr.wr.rdma.remote_addr = e->remote;
	wr.wr.rdma.rkey = e->rkey;
	post(e, &wr, i, ECHO_OCTETS);
	e->one_sided = true;
}

static void check_one_sided(struct echo *e, bool read)
{
	const uint8_t *p = buffer(e, 2 * ECHO_WINDOW);
	uint8_t octet = (uint8_t)(e->one_sided_count - 2);

	e->one_sided = false;
	for (uint32_t i = 0; read && i < ECHO_OCTETS; i++)
		if (p[i] != octet)
			fail_msg("read octet %u is 0x%x, not 0x%x", i, p[i], octet);
}

static void take_answer(struct echo *e, const struct ibv_wc *wc)
{
	const uint8_t *p = buffer(e, (uint32_t)wc->wr_id);
	struct place place;

	if (e->remote) {
		check(p, e->received++, wc->byte_len);
	} else {
		memcpy(&place, p, sizeof(place));
		e->remote = place.addr;
		e->rkey = place.rkey;
	}
	post_recv(e, (uint32_t)wc->wr_id);
}

static void ask(struct echo *e, uint32_t total)
{
	uint32_t i = ECHO_WINDOW + e->sent % ECHO_WINDOW;

	/* The peer names its place first: as many receives must be there. */
	if (e->sent < total && e->sent - e->received < ECHO_WINDOW - 1) {
		fill(buffer(e, i), e->sent);
		send_message(e, i, length(e->sent));
		e->sent++;
	}
	if (e->remote && !e->one_sided)
		post_one_sided(e);
}

bool echo_ask(struct echo *e, uint32_t total)
{
	struct ibv_wc wc;
	int n = ibv_poll_cq(e->cq, 1, &wc);

	assert_true(n >= 0);
	if (n > 0)
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
	if (n > 0 && wc.opcode == IBV_WC_RECV)
		take_answer(e, &wc);
	else if (n > 0 && wc.wr_id >= ONE_SIDED)
		check_one_sided(e, wc.wr_id & 1);
	if (n == 0)
		ask(e, total);
	return e->received < total;
}
