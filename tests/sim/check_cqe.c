// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Completions: each WR that asked for one has exactly one, in the order posted; each receive has
// one, in the order taken, with the message its peer posted in that place and nothing else.
#include "world.h"

#include <stdlib.h>

enum {
	ORDER_STEP = 64
};

static void check_read(struct end *end, struct wr *wr)
{
	for (unsigned int i = 0; i < wr->sink_count; i++) {
		if (!end->conn->untrusted && !memory_matches(&wr->sink[i]))
			world_fail(end->world, "%c: Read WR %u brought other octets (SGE %u)",
				   end->name, wr->index, i);
		memory_settle(&wr->sink[i]);
		memory_release(&wr->sink[i]);
	}
}

void check_succeeded(struct end *end, struct wr *wr)
{
	wr->succeeded = true;
	if (wr->bad == BAD_LKEY || wr->bad == BAD_LOCAL_INV || wr->bad == BAD_BIND ||
	    wr->bad == BAD_NOT_AGREED)
		world_fail(end->world, "%c: bad WR %u succeeds", end->name, wr->index);
	if (wr->op == AW_OP_LOCAL_INV) {
		if (wr->touches->live)
			world_fail(end->world, "%c: WR %u left its STag valid", end->name,
				   wr->index);
		return;
	}
	if ((wr->op == AW_OP_BIND_MW || (is_request(wr->op) && wr->op != AW_OP_READ)) &&
	    wr->executed != 1 && !end->conn->untrusted)
		world_fail(end->world, "%c: WR %u was executed %u times", end->name, wr->index,
			   wr->executed);
	if (wr->op == AW_OP_BIND_MW)
		return;
	if (!wr->emitted || wr->end_pos > end->taken)
		world_fail(end->world, "%c: WR %u succeeds before its octets are sent", end->name,
			   wr->index);
	if (is_request(wr->op))
		check_read(end, wr);
}

/* Only one end closed and nothing else went wrong: what it posted before has to arrive. */
static bool must_succeed(const struct end *end, const struct wr *wr)
{
	const struct conn *conn = end->conn;

	if (conn->torn || check_muted(end))
		return false;
	if (conn->expect_clean)
		return wr->before_close;
	if (conn->faulty || conn->bad || conn->hostile || end->world->plan.dereg)
		return false;
	return wr->before_close && end->closed && !end->peer->closed;
}

static void failed(struct end *end, struct wr *wr, const struct aw_cqe *cqe)
{
	end->failed_wr = true;
	if (must_succeed(end, wr))
		world_fail(end->world, "%c: WR %u fails with status %d error %05x", end->name,
			   wr->index, cqe->status, cqe->vendor_err);
	if (!is_request(wr->op))
		return;
	for (unsigned int i = 0; i < wr->sink_count; i++) {
		memory_accept(end->world, &wr->sink[i], end->conn->untrusted);
		memory_release(&wr->sink[i]);
	}
}

static void skip_unsignalled(struct end *end, uint32_t to)
{
	for (; end->done < to; end->done++) {
		struct wr *wr = end->wr[end->done];

		if (end->qp.sig_all || wr->flags & AW_WR_SIGNALED || end->failed_wr)
			world_fail(end->world, "%c: WR %u was passed over by WR %u", end->name,
				   wr->index, to);
		check_succeeded(end, wr);
	}
}

void check_sq_cqe(struct end *end, const struct aw_cqe *cqe)
{
	uint32_t index = (uint32_t)cqe->wr_id;
	struct wr *wr;

	if (cqe->wr_id >> 32 != (uint64_t)(0x5100 + end->name) || index >= end->wr_count ||
	    index < end->done) {
		world_fail(end->world, "%c: an SQ CQE for %llx, done %u of %u", end->name,
			   (unsigned long long)cqe->wr_id, end->done, end->wr_count);
		return;
	}
	skip_unsignalled(end, index);
	wr = end->wr[index];
	end->done = index + 1;
	if (cqe->op != wr->op)
		world_fail(end->world, "%c: WR %u completes as op %d", end->name, index, cqe->op);
	if (cqe->status != AW_WC_SUCCESS) {
		failed(end, wr, cqe);
		return;
	}
	if (end->failed_wr)
		world_fail(end->world, "%c: WR %u succeeds behind a failure", end->name, index);
	if (!end->qp.sig_all && !(wr->flags & AW_WR_SIGNALED))
		world_fail(end->world, "%c: unsignalled WR %u has a CQE", end->name, index);
	if (brings_octets(wr->op) && cqe->byte_len != wr->len)
		world_fail(end->world, "%c: Read of %u says %u", end->name, wr->len, cqe->byte_len);
	check_succeeded(end, wr);
}

/* The peer's Send number n. */
static struct wr *message(const struct end *peer, uint32_t n)
{
	for (uint32_t i = 0; i < peer->wr_count; i++) {
		struct wr *wr = peer->wr[i];

		if (takes_recv(wr->op) && wr->message == n)
			return wr;
	}
	return NULL;
}

static struct recv *find_recv(const struct end *end, uint64_t wr_id)
{
	const struct world *w = end->world;
	int h = end->host == &w->host[1];
	uint64_t kind = wr_id >> 32;
	uint32_t index = (uint32_t)wr_id;

	if (kind == (uint64_t)(0x5200 + end->name) && index < end->recv_count)
		return end->recv[index];
	if (kind == (uint64_t)(0x5300 + h) && index < w->srq_recv_count[h])
		return w->srq_recv[h][index];
	return NULL;
}

static void set_wants(struct recv *recv, const struct wr *wr)
{
	uint32_t off = 0;

	for (unsigned int i = 0; i < recv->sink_count; i++) {
		struct sink *sink = &recv->sink[i];

		if (off < wr->len) {
			sink->want = wr->data + off;
			sink->want_len = wr->len - off;
		}
		off += sink->len;
	}
}

void check_taken(struct end *end, const struct aw_rwqe *rwqe)
{
	struct recv *recv = find_recv(end, rwqe->wr_id);
	struct wr *wr = message(end->peer, end->taken_recvs);

	if (!recv || recv->taker) {
		world_fail(end->world, "%c: takes receive %llx wrongly", end->name,
			   (unsigned long long)rwqe->wr_id);
		return;
	}
	if (rwqe->len != recv->len || rwqe->sge_count != recv->sink_count)
		world_fail(end->world, "%c: receive of %u is taken as %u", end->name, recv->len,
			   rwqe->len);
	recv->taker = end;
	if (wr && wr->op != AW_OP_WRITE_IMM && !end->over && end->qp.state != AW_QP_ERROR)
		set_wants(recv, wr);
	if (end->taken_recvs % ORDER_STEP == 0)
		end->order = realloc(end->order, (end->taken_recvs + ORDER_STEP) * sizeof(recv));
	end->order[end->taken_recvs++] = recv;
}

/* RFC 5040 5.5: a delivered Send tells that every earlier Write was placed. */
void check_writes_placed(struct end *end, const struct wr *upto)
{
	struct end *peer = end->peer;

	for (uint32_t i = 0; i <= upto->index; i++) {
		struct wr *wr = peer->wr[i];

		if (!is_write(wr->op) || wr->confirmed)
			continue;
		if (!memory_matches(&wr->sink[0]))
			world_fail(end->world,
				   "%c: Write WR %u is not placed before a later Send or Flush",
				   peer->name, wr->index);
		wr->confirmed = true;
		memory_settle(&wr->sink[0]);
		memory_release(&wr->sink[0]);
	}
}

static void check_message(struct end *end, struct recv *recv, const struct aw_cqe *cqe)
{
	struct wr *wr = message(end->peer, end->done_recvs - 1);
	bool inv = wr && wr->op == AW_OP_SEND_INV;
	bool imm = wr && (wr->op == AW_OP_SEND_IMM || wr->op == AW_OP_WRITE_IMM);

	if (!wr || wr->bad || cqe->byte_len != wr->len) {
		world_fail(end->world, "%c: receive %llx of %u octets is not what was sent",
			   end->name, (unsigned long long)cqe->wr_id, cqe->byte_len);
		return;
	}
	if (cqe->op != wr->op || !!(cqe->flags & AW_WC_WITH_INV) != inv ||
	    !!(cqe->flags & AW_WC_WITH_IMM) != imm ||
	    ((inv || imm) && cqe->inv_or_imm != wr->inv) ||
	    !(cqe->flags & AW_WC_SOLICITED) != !(wr->flags & AW_WR_SOLICITED))
		world_fail(end->world, "%c: receive of WR %u has op %d flags %x", end->name,
			   wr->index, cqe->op, cqe->flags);
	if (inv && wr->touches->live)
		world_fail(end->world, "%c: a Send did not invalidate", end->name);
	for (unsigned int i = 0; i < recv->sink_count; i++)
		if (!memory_matches(&recv->sink[i]))
			world_fail(end->world, "%c: receive of WR %u holds other octets (SGE %u)",
				   end->name, wr->index, i);
	check_writes_placed(end, wr);
}

/* A receive that fails for want of a right is that of a Write with immediate data. */
static void check_refused(struct end *end, const struct aw_cqe *cqe)
{
	struct wr *wr = message(end->peer, end->done_recvs - 1);

	if (cqe->status == AW_WC_LOC_ACCESS_ERR && !end->conn->untrusted &&
	    (!wr || wr->op != AW_OP_WRITE_IMM))
		world_fail(end->world, "%c: receive %llx fails as that of a Write", end->name,
			   (unsigned long long)cqe->wr_id);
}

void check_rq_cqe(struct end *end, const struct aw_cqe *cqe)
{
	struct recv *recv = find_recv(end, cqe->wr_id);

	if (!recv || recv->completed || end->done_recvs == end->taken_recvs ||
	    end->order[end->done_recvs] != recv) {
		world_fail(end->world, "%c: receive %llx completes out of order or twice",
			   end->name, (unsigned long long)cqe->wr_id);
		return;
	}
	recv->completed = true;
	end->done_recvs++;
	if (cqe->status == AW_WC_SUCCESS && !end->conn->untrusted)
		check_message(end, recv, cqe);
	if (cqe->status == AW_WC_SUCCESS && cqe->op != AW_OP_WRITE_IMM && cqe->byte_len > recv->len)
		world_fail(end->world, "%c: %u octets in a receive of %u", end->name, cqe->byte_len,
			   recv->len);
	check_refused(end, cqe);
	for (unsigned int i = 0; i < recv->sink_count; i++) {
		memory_accept(end->world, &recv->sink[i], end->conn->untrusted);
		memory_release(&recv->sink[i]);
	}
}
