// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// One end of a connection; see end.h.
#include "end.h"

#include "link.h"

#include <stdlib.h>
#include <string.h>

#define NOTE_OCTETS_MAX 64
#define SENDS_MAX 16
#define ALIGNMENT 64
/* In a wr_id: of a receive. A flushed WR's opcode would not tell. */
#define RECEIVE (1ULL << 63)
#define ACCESS                                                                       \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | \
	 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND)

static size_t rounded(size_t size)
{
	return (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static uint8_t *take(uint8_t **next, size_t size)
{
	uint8_t *taken = *next;

	*next += rounded(size);
	return taken;
}

static void open_memory(struct end *end)
{
	size_t message = end->size_max > NOTE_OCTETS_MAX ? end->size_max : NOTE_OCTETS_MAX;
	size_t octets = (END_RECEIVES + 3) * rounded(message) + 2 * rounded(NOTE_OCTETS_MAX);
	uint8_t *next = aligned_alloc(ALIGNMENT, octets);
	struct end_memory *memory = &end->memory;

	CHECK(next);
	memset(next, 0, octets);
	end->mr = ibv_reg_mr(end->pd, next, octets, ACCESS);
	CHECK(end->mr);
	memory->cells = (uint64_t *)(void *)take(&next, NOTE_OCTETS_MAX);
	memory->note = take(&next, NOTE_OCTETS_MAX);
	memory->out = take(&next, message);
	memory->target = take(&next, message);
	memory->in = take(&next, message);
	for (int i = 0; i < END_RECEIVES; i++)
		memory->received[i] = take(&next, message);
	end->size_max = message;
}

static void open_qp(struct end *end)
{
	struct ibv_qp_init_attr attr = {
		.cap = { SENDS_MAX, END_RECEIVES, 1, 1, 0 },
		.qp_type = IBV_QPT_RC,
	};

	end->completions = ibv_create_comp_channel(end->id->verbs);
	CHECK(end->completions);
	end->cq =
		ibv_create_cq(end->id->verbs, SENDS_MAX + END_RECEIVES, NULL, end->completions, 0);
	CHECK(end->cq);
	attr.send_cq = attr.recv_cq = end->cq;
	CHECK(rdma_create_qp(end->id, end->pd, &attr) == 0);
}

void end_open(struct end *end, struct rdma_event_channel *events, struct rdma_cm_id *id,
	      size_t size_max, uint32_t seed)
{
	*end = (struct end){ .events = events, .id = id, .size_max = size_max };
	end->pd = ibv_alloc_pd(id->verbs);
	CHECK(end->pd);
	open_memory(end);
	open_qp(end);
	end->mine = (struct advert){ .out = (uintptr_t)end->memory.out,
				     .target = (uintptr_t)end->memory.target,
				     .cell = (uintptr_t)end->memory.cells,
				     .rkey = end->mr->rkey,
				     .seed = seed };
	end->memory.cells[0] = seed;
	for (int i = 0; i < END_RECEIVES; i++)
		end_receive(end);
}

void end_close(struct end *end)
{
	void *memory = end->mr->addr;

	rdma_destroy_qp(end->id);
	CHECK(!end->window || ibv_dealloc_mw(end->window) == 0);
	CHECK(ibv_dereg_mr(end->mr) == 0);
	CHECK(ibv_destroy_cq(end->cq) == 0);
	CHECK(ibv_destroy_comp_channel(end->completions) == 0);
	CHECK(ibv_dealloc_pd(end->pd) == 0);
	CHECK(rdma_destroy_id(end->id) == 0);
	rdma_destroy_event_channel(end->events);
	free(memory);
}

void end_receive(struct end *end)
{
	uint64_t number = end->receives_posted++;
	struct ibv_sge sge = { (uintptr_t)end->memory.received[number % END_RECEIVES],
			       (uint32_t)end->size_max, end->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = RECEIVE | number, .sg_list = &sge, .num_sge = 1 }, *bad;

	CHECK(ibv_post_recv(end->id->qp, &wr, &bad) == 0);
}

void end_post(struct end *end, struct ibv_send_wr *wr, const void *at, size_t size)
{
	struct ibv_sge sge = { (uintptr_t)at, (uint32_t)size, end->mr->lkey };
	struct ibv_send_wr *bad;

	wr->wr_id = end->sends_posted++;
	wr->send_flags |= IBV_SEND_SIGNALED;
	wr->sg_list = &sge;
	wr->num_sge = at ? 1 : 0;
	CHECK(ibv_post_send(end->id->qp, wr, &bad) == 0);
}

/* Blocks until there is a CQE. */
static void next_cqe(struct end *end, struct ibv_wc *wc)
{
	while (ibv_poll_cq(end->cq, 1, wc) == 0) {
		struct ibv_cq *cq;
		void *context;

		CHECK(ibv_req_notify_cq(end->cq, 0) == 0);
		if (ibv_poll_cq(end->cq, 1, wc) != 0)
			return;
		CHECK(ibv_get_cq_event(end->completions, &cq, &context) == 0);
		ibv_ack_cq_events(cq, 1);
	}
}

/* Takes one CQE. Each WR completes once and in the order of its queue. */
static bool take_cqe(struct end *end)
{
	struct ibv_wc wc;

	next_cqe(end, &wc);
	if (wc.wr_id & RECEIVE) {
		CHECK(wc.wr_id == (RECEIVE | end->receives_done));
		CHECK(end->receives_done < end->receives_posted);
		end->arrived[end->receives_done++ % END_RECEIVES] = wc;
	} else {
		CHECK(wc.wr_id == end->sends_done && end->sends_done < end->sends_posted);
		end->sends_done++;
	}
	if (wc.status != IBV_WC_SUCCESS && end->status == IBV_WC_SUCCESS)
		end->status = wc.status;
	CHECK(wc.status != IBV_WC_SUCCESS || end->status == IBV_WC_SUCCESS);
	return wc.status == IBV_WC_SUCCESS;
}

bool end_wait_sent(struct end *end)
{
	while (end->sends_done < end->sends_posted)
		if (!take_cqe(end))
			return false;
	return true;
}

bool end_wait_message(struct end *end, struct ibv_wc *wc)
{
	while (end->taken == end->receives_done)
		if (!take_cqe(end))
			return false;
	*wc = end->arrived[end->taken++ % END_RECEIVES];
	return wc->status == IBV_WC_SUCCESS;
}

const uint8_t *end_received(const struct end *end)
{
	return end->memory.received[(end->taken - 1) % END_RECEIVES];
}

void end_drain(struct end *end)
{
	while (end->sends_done < end->sends_posted || end->receives_done < end->receives_posted)
		take_cqe(end);
}

void end_expect(struct end *end, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;

	CHECK(rdma_get_cm_event(end->events, &event) == 0);
	if (event->event != type) {
		fprintf(stderr, "wanted %s, got %s, status %d\n", rdma_event_str(type),
			rdma_event_str(event->event), event->status);
		exit(1);
	}
	CHECK(rdma_ack_cm_event(event) == 0);
}
