// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Writes the note. A process that is killed between two stores leaves a note that the stream does
// not rest.
#include "net/note.h"

#include "net/crc.h"
#include "net/uqp.h"
#include "wire/crc32c.h"
#include "wire/ddp.h"
#include "wire/fpdu.h"
#include "wire/octets.h"
#include "wire/rdmap.h"

#include <stdatomic.h>
#include <string.h>

void aw_note_stir(struct aw_uqp *qp)
{
	atomic_store_explicit(&qp->note->rests, 0, memory_order_seq_cst);
}

/*
 * A stream with markers never rests, because markers depend on an FPDU's position. A stream through
 * memory never rests either.
 */
static bool rests(const struct aw_uqp *qp)
{
	const struct aw_qp *core = &qp->core;

	return core->state == AW_QP_RTS && qp->fd >= 0 && !qp->ring && !qp->batch &&
	       !core->tx_begun && core->sent_pos == core->tx_pos &&
	       core->sq.next == core->sq.tail && core->irq_count == 0 && !core->stream.markers_tx;
}

void aw_note_settle(struct aw_uqp *qp)
{
	struct aw_note *note = qp->note;

	atomic_store_explicit(&note->msn, qp->core.tx_msn[DDP_QN_SEND], memory_order_relaxed);
	atomic_store_explicit(&note->crc, qp->core.stream.crc, memory_order_relaxed);
	atomic_store_explicit(&note->rests, rests(qp), memory_order_release);
}

void aw_uqp_note(struct aw_uqp *qp, struct aw_note *note)
{
	pthread_mutex_lock(&qp->lock);
	if (qp->note)
		aw_note_stir(qp);
	qp->note = note;
	if (note)
		aw_note_settle(qp);
	pthread_mutex_unlock(&qp->lock);
}

size_t aw_note_send(const struct aw_note *note, const void *octets, size_t len, uint8_t *fpdu,
		    size_t room)
{
	const struct ddp_hdr hdr = {
		.last = true,
		.ulp_ctrl = rdmap_ctrl(RDMAP_SEND),
		.qn = DDP_QN_SEND,
		.msn = atomic_load(&note->msn),
	};
	size_t ulpdu = DDP_UNTAGGED_LEN + len, size = fpdu_size(ulpdu), at;
	uint32_t crc;

	if (!atomic_load(&note->rests) || len > room || size > room)
		return 0;
	put_be16(fpdu, (uint16_t)ulpdu);
	at = FPDU_LEN_FIELD + ddp_put(&hdr, fpdu + FPDU_LEN_FIELD);
	memcpy(fpdu + at, octets, len);
	memset(fpdu + at + len, 0, size - at - len);
	crc = aw_crc32c(CRC32C_INIT, fpdu, size - FPDU_CRC_LEN);
	put_le32(fpdu + size - FPDU_CRC_LEN, atomic_load(&note->crc) ? crc32c_final(crc) : 0);
	return size;
}
