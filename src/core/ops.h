// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The core's one way out: a const table that its driver supplies. Every call happens while the
// driver lets the core run on that QP (under its QP lock); none may call back into the core.
#ifndef CORE_OPS_H
#define CORE_OPS_H

#include "core/mr.h"
#include "core/types.h"
#include "wire/rdmap.h"

/* How far memory is written back. */
enum aw_written {
	AW_WRITTEN,
	AW_WRITING, /* aw_qp_written_back follows, not from within the call */
	AW_UNWRITTEN,
};

struct aw_ops {
	/*
	 * The MR of an STag, held so that its memory stays until mr_put; NULL when there is
	 * none. The core checks rights and bounds.
	 */
	const struct aw_mr *(*mr_get)(void *ctx, uint32_t stag);
	void (*mr_put)(void *ctx, const struct aw_mr *mr);

	/*
	 * Makes octets of a held AW_ACCESS_ON_DEMAND MR ready for the copy that follows, as a page
	 * fault would; false when they are not mapped, or not writable.
	 */
	bool (*reach)(void *ctx, const struct aw_mr *mr, uint8_t *at, size_t len, bool write);

	/*
	 * place copies checked octets into the held MR, gather out of it. dst (src) is aw_mr_at's;
	 * the driver, which chose mr->host, knows what kind of address it is. Unless crc is NULL, gather
	 * folds into it what dst gets, also while the program changes src. False when the memory
	 * is unmapped, as a program may do: some octets may have been copied. While the driver is in
	 * aw_rx_scattered, src is what that stands for.
	 */
	bool (*place)(void *ctx, const struct aw_mr *mr, uint8_t *dst, const uint8_t *src,
		      size_t len);
	bool (*gather)(void *ctx, const struct aw_mr *mr, uint8_t *dst, const uint8_t *src,
		       size_t len, uint32_t *crc);

	/*
	 * Makes an STag unusable on the peer's wish (Send with Invalidate) or the program's.
	 * AW_OK, AW_E_RDMAP_STAG (none), AW_E_RDMAP_NOT_ASSOCIATED (other PD or QP) or
	 * AW_E_RDMAP_CANNOT_INVALIDATE (an MR that is not meant for it). The program may invalidate
	 * a fast region that is invalid already; to the peer its STag is none (RFC 5040 7.2).
	 */
	enum aw_error (*invalidate)(void *ctx, uint32_t stag, bool by_peer);

	/*
	 * Binds a memory window as an AW_OP_BIND_MW asks. AW_WC_SUCCESS, or AW_WC_MW_BIND_ERR (its
	 * MR does not allow it) and nothing changed.
	 */
	enum aw_wc_status (*bind)(void *ctx, const struct aw_swqe *wqe);

	/*
	 * RFC 7306 5.1: one atomic operation, or Atomic Write, on 8 octets of a held MR, aligned to 8; *before is
	 * their value before. Atomic towards every other one, of whatever QP. False when the memory
	 * is unmapped: nothing was done.
	 */
	bool (*atomic)(void *ctx, const struct aw_mr *mr, uint8_t *at,
		       const struct rdmap_atomic_req *req, uint64_t *before);

	/*
	 * Makes octets of a held MR, all of which are placed, visible to all that share its memory;
	 * with persistent also to who comes after a crash of the host, where the MR has
	 * AW_ACCESS_FLUSH_PERSISTENT. One at a time for each QP; the MR may go before it ends.
	 */
	enum aw_written (*write_back)(void *ctx, const struct aw_mr *mr, uint8_t *at, size_t len,
				      bool persistent);

	/* Takes the next receive from the RQ or SRQ; false when there is none. */
	bool (*recv_take)(void *ctx, struct aw_rwqe *recv);

	/*
	 * Of a QP with AW_XRC_TARGET: takes the next receive of the SRQ that the peer names, to whose CQ its
	 * completion then goes, and writes the PD of the receive's MRs. AW_OK; AW_E_DDP_NO_BUFFER: it has
	 * none; AW_E_DDP_QN: the QP's XRC domain has no such SRQ.
	 */
	enum aw_error (*xrc_take)(void *ctx, uint32_t srqn, struct aw_rwqe *recv, const void **pd);
	/* Likewise: true when an SRQ of the QP's XRC domain is of that PD, so that the peer may name its MRs. */
	bool (*xrc_has_pd)(void *ctx, const void *pd);

	/* Hands a completion to the CQ of that queue. Never fails: overflow is the CQ's matter. */
	void (*complete)(void *ctx, enum aw_queue queue, const struct aw_cqe *cqe);

	/*
	 * Memory of len octets for a stash (core/stash.h), aligned as an allocator's; NULL when there is none. put gives it
	 * back, with the len that it was got with. Called only where the driver has set qp->keeps, so that a driver which never does may leave both out.
	 */
	void *(*stash_get)(void *ctx, size_t len);
	void (*stash_put)(void *ctx, void *memory, size_t len);

	/*
	 * Called for a QP with tells_each where a WR of its SQ completes, also for an unsignalled one, of which complete is not
	 * called. NULL where no QP has it.
	 */
	void (*wr_completed)(void *ctx, const struct aw_swqe *wqe, enum aw_wc_status status);

	/* Folds octets into a raw CRC32c register (see wire/crc32c.h). */
	uint32_t (*crc32c)(uint32_t crc, const void *data, size_t len);
};

#endif
