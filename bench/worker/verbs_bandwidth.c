// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// As many messages as the window allows, over all connections of a thread in turn. iWARP has no flow
// control for Sends: the receiver gives credit for a part of its receive queue at a time, by a Send of
// no bytes. A Send of a length that no message has says that no more will come.
#include "worker/verbs.h"

#include "worker/fail.h"
#include "worker/pace.h"

#include <errno.h>
#include <stdlib.h>

#define WCS_MAX 16
#define BATCH_MAX 128
#define CREDIT_OCTETS 0

/* A wr_id: the connection, what was posted, and how many messages its completion tells of. */
enum posted {
	POSTED_RECEIVE,
	POSTED_DATA,
	POSTED_CREDIT,
	POSTED_END
};
#define WR_ID(number, what, messages) \
	((uint64_t)(messages) << 48 | (uint64_t)(what) << 32 | (number))

struct stream {
	struct verbs_link *link;
	uint32_t under_way; /* messages posted and not known to be completed */
	uint32_t silent; /* the newest of them, not signalled */
	bool all_out, end_posted, all_in;
};

struct turn {
	const struct session *session;
	struct verbs_lane *lane;
	struct stream *streams;
	uint32_t first, count; /* numbers of this thread's connections */
	enum ibv_wr_opcode opcode;
	enum mode mode;
	uint32_t part; /* messages that one signal or one credit stands for */
	uint32_t credit;
	uint32_t end_octets;
	struct pace pace;
	uint32_t out_open, in_open;
	struct moved moved;
	struct ibv_sge sge;
	struct ibv_send_wr wrs[BATCH_MAX]; /* a list */
};

static void begin(struct turn *turn, unsigned int lane, unsigned int flow)
{
	const struct args *args = &turn->session->args;
	bool out = flow & (FLOW_OUT | FLOW_ASK), in = flow & (FLOW_IN | FLOW_ANSWER);

	turn->lane = &verbs.lanes[lane];
	turn->count = (uint32_t)(verbs.count / args->threads);
	turn->first = lane * turn->count;
	turn->opcode = args->op == OP_READ    ? IBV_WR_RDMA_READ
		       : args->op == OP_WRITE ? IBV_WR_RDMA_WRITE
					      : IBV_WR_SEND;
	turn->mode = (enum mode)args->mode;
	/* An end that neither posts nor receives messages waits for the end alone, and sleeps. */
	if (!out && args->op != OP_SEND)
		turn->mode = MODE_EVENT;
	turn->part = (uint32_t)args->window / WINDOW_PARTS;
	turn->credit = verbs_room(args) / WINDOW_PARTS;
	turn->end_octets = args->size == 1 ? 2 : 1;
	turn->out_open = out ? turn->count : 0;
	turn->in_open = in ? turn->count : 0;
	turn->streams = calloc(turn->count, sizeof(*turn->streams));
	if (!turn->streams)
		fail("no memory for %u streams", turn->count);
	for (uint32_t i = 0; i < turn->count; i++)
		turn->streams[i] = (struct stream){ .link = &verbs.links[turn->first + i],
						    .all_out = !out,
						    .all_in = !in };
}

static void begin_wrs(struct turn *turn)
{
	const struct args *args = &turn->session->args;

	turn->sge.length = (uint32_t)args->size;
	turn->sge.lkey = turn->lane->mr->lkey;
	for (uint64_t i = 0; i < args->batch; i++)
		turn->wrs[i] = (struct ibv_send_wr){
			.next = i + 1 < args->batch ? &turn->wrs[i + 1] : NULL,
			.sg_list = &turn->sge,
			.num_sge = 1,
			.opcode = turn->opcode,
		};
}

static void post_list(struct stream *stream, struct ibv_send_wr *first)
{
	struct ibv_send_wr *bad;

	errno = ibv_post_send(stream->link->qp, first, &bad);
	if (errno)
		fail_errno("ibv_post_send");
}

/* A message of a batch: signalled at the end of a part, and where the window has no room for another
 * batch, since nothing would tell of the last ones else. */
static void fill_wr(struct turn *turn, struct stream *stream, struct ibv_send_wr *wr, bool full)
{
	const struct verbs_link *link = stream->link;

	wr->send_flags = turn->sge.length <= verbs.shape.inline_octets &&
					 turn->opcode != IBV_WR_RDMA_READ
				 ? IBV_SEND_INLINE
				 : 0;
	wr->wr.rdma.remote_addr = turn->opcode == IBV_WR_RDMA_READ ? link->far.out : link->far.in;
	wr->wr.rdma.rkey = link->far.key;
	stream->silent++;
	if (stream->silent < turn->part && !full)
		return;
	wr->send_flags |= IBV_SEND_SIGNALED;
	wr->wr_id = WR_ID(link->number, POSTED_DATA, stream->silent);
	stream->silent = 0;
}

static void post_batch(struct turn *turn, struct stream *stream)
{
	uint32_t batch = (uint32_t)turn->session->args.batch;
	uint32_t window = (uint32_t)turn->session->args.window;

	turn->sge.addr = (uintptr_t)(turn->opcode == IBV_WR_RDMA_READ ? stream->link->in
								      : stream->link->out);
	stream->under_way += batch;
	for (uint32_t i = 0; i < batch; i++)
		fill_wr(turn, stream, &turn->wrs[i],
			i + 1 == batch && stream->under_way + batch > window);
	post_list(stream, turn->wrs);
	turn->moved.out += batch;
	if (turn->opcode == IBV_WR_SEND)
		stream->link->room -= batch;
}

/* The fence keeps it behind Reads that are under way. */
static void post_end(struct turn *turn, struct stream *stream)
{
	struct verbs_link *link = stream->link;
	struct ibv_sge sge = { (uintptr_t)link->out, turn->end_octets, turn->lane->mr->lkey };
	struct ibv_send_wr wr = { .wr_id = WR_ID(link->number, POSTED_END, stream->silent),
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED | IBV_SEND_FENCE };

	post_list(stream, &wr);
	stream->silent = 0;
	stream->end_posted = true;
}

static void post_credit(struct stream *stream)
{
	struct ibv_send_wr wr = { .wr_id = WR_ID(stream->link->number, POSTED_CREDIT, 0),
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED };

	post_list(stream, &wr);
}

static void pump(struct turn *turn, struct stream *stream)
{
	const struct args *args = &turn->session->args;

	while (!stream->end_posted && !stream->all_out) {
		if (pace_over(&turn->pace, 0)) {
			post_end(turn, stream);
			return;
		}
		if (stream->under_way + args->batch > args->window ||
		    (turn->opcode == IBV_WR_SEND && stream->link->room < args->batch))
			return;
		turn->pace.bytes += args->batch * args->size;
		post_batch(turn, stream);
	}
}

static void received(struct turn *turn, struct stream *stream, uint32_t octets)
{
	struct verbs_link *link = stream->link;

	verbs_post_receive(link);
	if (octets == CREDIT_OCTETS) {
		link->room += turn->credit;
	} else if (octets == turn->end_octets) {
		stream->all_in = true;
		turn->in_open--;
	} else {
		turn->moved.in++;
		if (++link->taken == turn->credit) {
			link->taken = 0;
			post_credit(stream);
		}
	}
}

static void completed(struct turn *turn, const struct ibv_wc *wc)
{
	struct stream *stream = &turn->streams[(uint32_t)wc->wr_id - turn->first];
	uint32_t messages = (uint32_t)(wc->wr_id >> 48);

	switch ((enum posted)(uint16_t)(wc->wr_id >> 32)) {
	case POSTED_RECEIVE:
		received(turn, stream, wc->byte_len);
		break;
	case POSTED_END:
		stream->all_out = true;
		turn->out_open--;
		stream->under_way -= messages;
		break;
	case POSTED_DATA:
		stream->under_way -= messages;
		break;
	case POSTED_CREDIT:
		break;
	}
}

/* Stands for the other end's first credit, once. */
static void begin_room(struct turn *turn)
{
	for (uint32_t i = 0; i < turn->count; i++) {
		struct verbs_link *link = turn->streams[i].link;

		if (!link->opened)
			link->room = verbs_room(&turn->session->args);
		link->opened = true;
	}
}

struct moved verbs_flow(struct session *session, unsigned int lane, unsigned int flow,
			uint64_t deadline_ns)
{
	struct turn turn = { .session = session, .pace = { .deadline_ns = deadline_ns } };
	struct ibv_wc wcs[WCS_MAX];

	begin(&turn, lane, flow);
	begin_wrs(&turn);
	begin_room(&turn);
	while (turn.out_open > 0 || turn.in_open > 0) {
		int found;

		for (uint32_t i = 0; i < turn.count; i++)
			pump(&turn, &turn.streams[i]);
		found = verbs_wait(session, turn.lane, turn.mode, WCS_MAX, wcs);
		for (int i = 0; i < found; i++)
			completed(&turn, &wcs[i]);
	}
	free(turn.streams);
	/* Every Read brought its message in. */
	if (flow & FLOW_ASK)
		turn.moved.in = turn.moved.out;
	return turn.moved;
}
