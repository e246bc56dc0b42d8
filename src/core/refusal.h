// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A peer's request for memory that this end has refused, for the driver to tell: the Terminate has an error's code alone, and of
// an atomic not even the address. Nothing here runs for a request that is granted.
#ifndef CORE_REFUSAL_H
#define CORE_REFUSAL_H

#include "core/types.h"
#include "wire/rdmap.h"

enum aw_refusal_cause {
	AW_REFUSAL_NONE, /* nothing was refused */
	AW_REFUSAL_STAG, /* no MR or window has the STag */
	AW_REFUSAL_PD, /* the MR is of another PD than the QP */
	AW_REFUSAL_WINDOW, /* the window is another QP's */
	AW_REFUSAL_MR_RIGHTS, /* the MR or window does not grant the right */
	AW_REFUSAL_QP_RIGHTS, /* the QP grants it to no peer */
	AW_REFUSAL_BOUNDS, /* the MR or window does not have all of it */
	AW_REFUSAL_UNMAPPED, /* the memory of the MR is not mapped, or not writable */
	AW_REFUSAL_UNALIGNED, /* the address of an atomic or an Atomic Write */
};

/* The first request of a stream that was refused: later ones are dropped. */
struct aw_access_refusal {
	enum aw_refusal_cause cause;
	uint32_t
		access; /* the rights that it needs: AW_ACCESS_REMOTE_WRITE of a Write, and so on */
	bool is_atomic; /* an atomic or an Atomic Write, whose address must be aligned */
	uint32_t stag;
	uint64_t to, len; /* of a Write in several segments: of the one that was refused */
	uint64_t start, size; /* the extent of the MR or window; 0 where there is none */
};

struct aw_qp;
struct aw_rx_seg;

/*
 * Each keeps in qp->refusal why the request is refused, while the stream still runs. note: does so where the error is about
 * memory, and the segment a Write, a Read Request, an atomic one or a Flush. The others: for one that was accepted before.
 */
void aw_refusal_note(struct aw_qp *qp, const struct aw_rx_seg *seg, enum aw_error err);
void aw_refusal_note_read(struct aw_qp *qp, const struct rdmap_read_req *req);
void aw_refusal_note_atomic(struct aw_qp *qp, const struct rdmap_atomic_req *req);
void aw_refusal_note_flush(struct aw_qp *qp, const struct rdmap_flush_req *req, enum aw_error err);

#endif
