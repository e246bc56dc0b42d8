// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What must hold of a connection at its start, once its traffic is through, and when it is over.
#include "world.h"

static bool negotiated(const struct end *end)
{
	return end->result.enhanced && end->local.ird != MPA_IRD_ORD_NONE &&
	       end->local.ord != MPA_IRD_ORD_NONE;
}

void check_setup(struct conn *conn)
{
	const struct aw_mpa_result *a = &conn->end[0].result;
	const struct aw_mpa_result *b = &conn->end[1].result;
	const struct aw_mpa_local *la = &conn->end[0].local;
	const struct aw_mpa_local *lb = &conn->end[1].local;

	if (a->crc != b->crc || a->crc != (la->crc || lb->crc))
		world_fail(conn->world, "CRC: %d and %d", a->crc, b->crc);
	if (a->markers_tx != lb->markers || b->markers_tx != la->markers ||
	    a->markers_rx != la->markers || b->markers_rx != lb->markers)
		world_fail(conn->world, "markers: %d%d and %d%d", a->markers_tx, a->markers_rx,
			   b->markers_tx, b->markers_rx);
	if (a->extensions != b->extensions ||
	    a->extensions != (a->enhanced && la->extensions && lb->extensions))
		world_fail(conn->world, "extensions: %d and %d", a->extensions, b->extensions);
	if (a->large_fpdus != b->large_fpdus ||
	    a->large_fpdus != (a->enhanced && la->large_fpdus && lb->large_fpdus))
		world_fail(conn->world, "large FPDUs: %d and %d", a->large_fpdus, b->large_fpdus);
	if (a->placement != b->placement ||
	    a->placement != (a->extensions && la->placement && lb->placement))
		world_fail(conn->world, "placement: %d and %d", a->placement, b->placement);
	if (a->p2p != b->p2p || (a->p2p && (!(a->rtr & b->rtr) || a->rtr & (a->rtr - 1))))
		world_fail(conn->world, "p2p %d and %d, RTR %x and %x", a->p2p, b->p2p, a->rtr,
			   b->rtr);
	if (negotiated(&conn->end[0]) && negotiated(&conn->end[1]) &&
	    (a->ord > b->ird || b->ord > a->ird))
		world_fail(conn->world, "ORD %u over IRD %u, or ORD %u over IRD %u", a->ord, b->ird,
			   b->ord, a->ird);
}

bool check_muted(const struct end *end)
{
	return !end->initiator && end->peer->watch.fpdus == 0;
}

static void check_end_live(struct end *end)
{
	if (end->phase != PHASE_STREAM || check_muted(end))
		return;
	if (end->qp.state != AW_QP_RTS)
		world_fail(end->world, "%c: state %d error %05x though nothing went wrong",
			   end->name, end->qp.state, end->qp.error);
	if (aw_sq_count(&end->qp.sq) || end->iov_at != end->iov_count || end->out.len)
		world_fail(end->world, "%c: no progress: %u WRs left, %zu octets in the pipe",
			   end->name, aw_sq_count(&end->qp.sq), end->out.len);
	if (end->done_recvs != end->taken_recvs)
		world_fail(end->world, "%c: a Send is half received", end->name);
	if (end->stage_len)
		world_fail(end->world, "%c: %zu octets are never used", end->name, end->stage_len);
}

void check_live(struct conn *conn)
{
	for (int i = 0; i < 2 && conn->expect_clean && !conn->torn; i++)
		check_end_live(&conn->end[i]);
}

static void check_wrs(struct end *end)
{
	if (aw_sq_count(&end->qp.sq))
		world_fail(end->world, "%c: %u WRs were not flushed", end->name,
			   aw_sq_count(&end->qp.sq));
	for (; end->done < end->wr_count; end->done++) {
		struct wr *wr = end->wr[end->done];

		if (end->qp.sig_all || wr->flags & AW_WR_SIGNALED || end->failed_wr)
			world_fail(end->world, "%c: WR %u never completed", end->name, wr->index);
		check_succeeded(end, wr);
	}
}

static void check_recvs(struct end *end)
{
	if (end->done_recvs != end->taken_recvs)
		world_fail(end->world, "%c: %u receives taken, %u completed", end->name,
			   end->taken_recvs, end->done_recvs);
	for (uint32_t i = 0; i < end->recv_count; i++)
		if (!end->recv[i]->completed)
			world_fail(end->world, "%c: receive %u was not flushed", end->name, i);
}

/* What a Terminate that arrives whole must have said. */
static void check_reported(struct conn *conn)
{
	struct end *poster = conn->bad_poster;
	enum aw_error error = bad_error(conn->bad);
	bool sent = false;

	if (!conn->bad || error == AW_OK || conn->torn || conn->faulty || conn->hostile ||
	    conn->world->plan.dereg || conn->world->plan.close || conn->world->plan.abort)
		return;
	for (uint32_t i = 0; i < poster->wr_count; i++)
		sent |= poster->wr[i]->bad && poster->wr[i]->emitted && poster->wr[i]->before_close;
	if (sent && (poster->peer->qp.error != error || poster->qp.peer_error != error))
		world_fail(conn->world,
			   "%c: bad WR of kind %d: %05x found, %05x reported, not %05x",
			   poster->name, conn->bad, poster->peer->qp.error, poster->qp.peer_error,
			   error);
}

/* A Write that succeeded on a connection that ended well was placed. */
static void check_writes(struct end *end)
{
	for (uint32_t i = 0; i < end->wr_count; i++) {
		struct wr *wr = end->wr[i];

		if (!is_write(wr->op) || wr->confirmed)
			continue;
		if (wr->succeeded && end->conn->expect_clean && !memory_matches(&wr->sink[0]))
			world_fail(end->world, "%c: Write WR %u was not placed", end->name,
				   wr->index);
		memory_accept(end->world, &wr->sink[0], end->conn->untrusted);
		memory_release(&wr->sink[0]);
	}
}

/* RFC 5044 6: what the CRC, or TLS, does not vouch for is an error, or is waited for: never data. */
static void check_flip(struct end *end)
{
	if (end->in->spoiled && end->in->read > end->in->flip_at && !end->over)
		world_fail(end->world, "%c: read a record that was changed", end->name);
	bool alone = !end->in->cut && !end->conn->torn && !end->stage_len;

	if (end->in->flipped && end->qp.stream.crc && alone && end->phase == PHASE_STREAM &&
	    end->qp.error == AW_OK && end->in->read > end->in->flip_at)
		world_fail(end->world, "%c: a changed octet was not noticed", end->name);
}

void check_over(struct conn *conn)
{
	for (int i = 0; i < 2; i++) {
		struct end *end = &conn->end[i];

		if (end->qp.state != AW_QP_ERROR)
			world_fail(conn->world, "%c: ends in state %d", end->name, end->qp.state);
		if (end->stashed)
			world_fail(conn->world, "%c: %zu octets of its stash are left", end->name,
				   end->stashed);
		check_wrs(end);
		check_recvs(end);
		check_writes(end);
		check_flip(end);
	}
	check_reported(conn);
	surgery_check(conn);
}
