// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "kmod/stream/stage.h"

#include "core/rx.h"

bool awk_stage_may_fill(const struct awk_qp *qp)
{
	const struct awk_stream *s = qp->stream;

	lockdep_assert_held(&qp->lock);
	return s->sock && !qp->core.peer_closed && qp->core.state != AW_QP_ERROR && !s->rx_waits &&
	       !s->packed;
}

struct awk_stage *awk_stage_of(struct awk_stream *s)
{
	lockdep_assert_held(&s->qp->lock);
	if (!s->stage)
		s->stage = awk_stage_try();
	s->starved |= !s->stage;
	return s->stage;
}

size_t awk_stage_room(struct awk_stage *stage)
{
	if (stage->at > sizeof(stage->buf) - FPDU_MAX) {
		memmove(stage->buf, stage->buf + stage->at, stage->len);
		stage->at = 0;
	}
	return sizeof(stage->buf) - stage->at - stage->len;
}

u8 *awk_stage_end(struct awk_stage *stage)
{
	return stage->buf + stage->at + stage->len;
}

void awk_stage_use(struct awk_qp *qp, size_t added)
{
	struct awk_stage *stage = qp->stream->stage;
	size_t used;

	lockdep_assert_held(&qp->lock);
	stage->len += added;
	used = aw_rx_octets(&qp->core, stage->buf + stage->at, stage->len);
	stage->len -= used;
	stage->at = stage->len ? stage->at + used : 0;
	WRITE_ONCE(qp->stream->rx_waits, aw_rnr_wait_holds(&qp->core));
}

void awk_stage_wake(struct awk_stream *s)
{
	lockdep_assert_held(&s->qp->lock);
	if (!s->packed || !awk_stage_of(s))
		return;
	awk_stage_unpack(s->stage, s->packed);
	s->packed = NULL;
}

void awk_stage_retry(struct awk_qp *qp)
{
	struct awk_stream *s = qp->stream;

	lockdep_assert_held(&qp->lock);
	if (!qp->core.rx_held || !s->stage)
		return;
	aw_rnr_wait_try(&s->rnr_wait, &qp->core, AW_RNR_MS, awk_now_ns());
	awk_stage_use(qp, 0);
}

/*
 * A stage stays with the stream only while it holds something, and for half an FPDU only for so
 * long: by RFC 5042 6.4.1 a byte of a peer's must not cost as much as a stage. Each FPDU has the whole
 * time: the position in the stream tells one from the next.
 */
void awk_stage_rest(struct awk_qp *qp)
{
	struct awk_stream *s = qp->stream;

	lockdep_assert_held(&qp->lock);
	if (!s->stage || s->rx_waits)
		return;
	if (s->stage->len == 0) {
		awk_stage_put(s->stage);
		s->stage = NULL;
		return;
	}
	if (s->stage_pos != qp->core.rx_pos) {
		s->stage_pos = qp->core.rx_pos;
		s->stage_since = jiffies;
	}
	if (time_before(jiffies, s->stage_since + msecs_to_jiffies(AWK_STAGE_MS)))
		return;
	s->packed = awk_stage_pack(s->stage);
	if (s->packed)
		s->stage = NULL;
	else
		s->stage_since = jiffies;
}

size_t awk_stage_held(const struct awk_stream *s)
{
	return s->packed ? s->packed->len : s->stage ? s->stage->len : 0;
}
