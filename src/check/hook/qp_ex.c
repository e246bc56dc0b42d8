// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The extended interface of a QP: ibv_wr_start, the work requests and their setters, ibv_wr_complete.
#include "check/base/newer.h"
#include "check/explain/explain.h"
#include "check/hook/light.h"
#include "check/hook/ops.h"
#include "check/model/batch.h"
#include "check/model/post.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

typedef void flush_fn(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr, size_t len,
		      uint8_t type, uint8_t level);

/* Where newer headers have wr_flush. */
#define FLUSH_AT (offsetof(struct ibv_qp_ex, wr_atomic_write) + sizeof(flush_fn *))

/* The QP's shadow, which is there as long as its functions are replaced; the caller puts it. */
static struct aw_qp_shadow *shadow_get(struct ibv_qp_ex *qp)
{
	return aw_qp_get(&qp->qp_base);
}

static void shadow_put(struct aw_qp_shadow *shadow)
{
	aw_object_put(&shadow->object);
}

static void wr_start(struct ibv_qp_ex *qp)
{
	struct aw_qp_shadow *shadow;

	aw_inside_enter();
	shadow = shadow_get(qp);
	shadow->extended.wr_start(qp);
	/* The library holds its lock of the QP from here to the end: no other thread is in a batch of it. */
	aw_batch_destroy(shadow->batch);
	shadow->batch = aw_batch_create();
	shadow_put(shadow);
	aw_inside_leave();
}

static int wr_complete(struct ibv_qp_ex *qp)
{
	struct aw_wr_batch *batch;
	struct aw_qp_shadow *shadow;
	int err;

	aw_inside_enter();
	shadow = shadow_get(qp);
	batch = shadow->batch;
	shadow->batch = NULL;

	struct ibv_send_wr *list = aw_batch_list(batch);

	if (!aw_hook_may("ibv_wr_complete")) {
		err = errno;
		shadow->extended.wr_abort(qp);
	} else if (!list) {
		err = shadow->extended.wr_complete(qp);
	} else {
		aw_post_send_begin(shadow, list);
		err = shadow->extended.wr_complete(qp);
		aw_post_send_end(shadow, list, err ? list : NULL);
	}
	if (err)
		aw_hook_failed("ibv_wr_complete", err);
	aw_batch_destroy(batch);
	shadow_put(shadow);
	aw_inside_leave();
	return err;
}

static void wr_abort(struct ibv_qp_ex *qp)
{
	struct aw_qp_shadow *shadow;

	aw_inside_enter();
	shadow = shadow_get(qp);
	aw_batch_destroy(shadow->batch);
	shadow->batch = NULL;
	shadow->extended.wr_abort(qp);
	shadow_put(shadow);
	aw_inside_leave();
}

/* Puts a work request of the batch down, and returns the shadow for the real call. */
static struct aw_qp_shadow *wr_begin(struct ibv_qp_ex *qp, enum ibv_wr_opcode opcode)
{
	struct aw_qp_shadow *shadow;

	aw_inside_enter();
	shadow = shadow_get(qp);
	aw_batch_add(shadow->batch, opcode, qp->wr_id, qp->wr_flags);
	return shadow;
}

static void wr_end(struct aw_qp_shadow *shadow)
{
	shadow_put(shadow);
	aw_inside_leave();
}

static void wr_atomic_cmp_swp(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr,
			      uint64_t compare, uint64_t swap)
{
	struct aw_qp_shadow *shadow = wr_begin(qp, IBV_WR_ATOMIC_CMP_AND_SWP);

	aw_batch_remote(shadow->batch, rkey, remote_addr);
	shadow->extended.wr_atomic_cmp_swp(qp, rkey, remote_addr, compare, swap);
	wr_end(shadow);
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr,
				uint64_t add)
{
	struct aw_qp_shadow *shadow = wr_begin(qp, IBV_WR_ATOMIC_FETCH_AND_ADD);

	aw_batch_remote(shadow->batch, rkey, remote_addr);
	shadow->extended.wr_atomic_fetch_add(qp, rkey, remote_addr, add);
	wr_end(shadow);
}

static void wr_atomic_write(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr,
			    const void *atomic_wr)
{
	struct aw_qp_shadow *shadow = wr_begin(qp, IBV_WR_ATOMIC_WRITE);

	aw_batch_remote(shadow->batch, rkey, remote_addr);
	shadow->extended.wr_atomic_write(qp, rkey, remote_addr, atomic_wr);
	wr_end(shadow);
}

static void wr_flush(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr, size_t len,
		     uint8_t type, uint8_t level)
{
	struct aw_qp_shadow *shadow = wr_begin(qp, (enum ibv_wr_opcode)AW_NEWER_WR_FLUSH);

	((flush_fn *)shadow->flush)(qp, rkey, remote_addr, len, type, level);
	wr_end(shadow);
}

static void flush_hook(struct aw_qp_shadow *shadow, struct ibv_qp_ex *qp)
{
	flush_fn *const hook = wr_flush;
	char *slot = (char *)qp + FLUSH_AT;

	memcpy(&shadow->flush, slot, sizeof(shadow->flush));
	memcpy(slot, &hook, sizeof(hook));
}

static void wr_bind_mw(struct ibv_qp_ex *qp, struct ibv_mw *mw, uint32_t rkey,
		       const struct ibv_mw_bind_info *bind_info)
{
	struct aw_qp_shadow *shadow = wr_begin(qp, IBV_WR_BIND_MW);

	shadow->extended.wr_bind_mw(qp, mw, rkey, bind_info);
	wr_end(shadow);
}

static void wr_local_inv(struct ibv_qp_ex *qp, uint32_t invalidate_rkey)
{
	struct aw_qp_shadow *shadow = wr_begin(qp, IBV_WR_LOCAL_INV);

	shadow->extended.wr_local_inv(qp, invalidate_rkey);
	wr_end(shadow);
}

static void wr_rdma_read(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr)
{
	struct aw_qp_shadow *shadow = wr_begin(qp, IBV_WR_RDMA_READ);

	aw_batch_remote(shadow->batch, rkey, remote_addr);
	shadow->extended.wr_rdma_read(qp, rkey, remote_addr);
	wr_end(shadow);
}

static void wr_rdma_write(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr)
{
	struct aw_qp_shadow *shadow = wr_begin(qp, IBV_WR_RDMA_WRITE);

	aw_batch_remote(shadow->batch, rkey, remote_addr);
	shadow->extended.wr_rdma_write(qp, rkey, remote_addr);
	wr_end(shadow);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr,
			      __be32 imm_data)
{
	struct aw_qp_shadow *shadow = wr_begin(qp, IBV_WR_RDMA_WRITE_WITH_IMM);

	aw_batch_remote(shadow->batch, rkey, remote_addr);
	shadow->extended.wr_rdma_write_imm(qp, rkey, remote_addr, imm_data);
	wr_end(shadow);
}

static void wr_send(struct ibv_qp_ex *qp)
{
	struct aw_qp_shadow *shadow = wr_begin(qp, IBV_WR_SEND);

	shadow->extended.wr_send(qp);
	wr_end(shadow);
}

static void wr_send_imm(struct ibv_qp_ex *qp, __be32 imm_data)
{
	struct aw_qp_shadow *shadow = wr_begin(qp, IBV_WR_SEND_WITH_IMM);

	shadow->extended.wr_send_imm(qp, imm_data);
	wr_end(shadow);
}

static void wr_send_inv(struct ibv_qp_ex *qp, uint32_t invalidate_rkey)
{
	struct aw_qp_shadow *shadow = wr_begin(qp, IBV_WR_SEND_WITH_INV);

	shadow->extended.wr_send_inv(qp, invalidate_rkey);
	wr_end(shadow);
}

static void wr_set_sge(struct ibv_qp_ex *qp, uint32_t lkey, uint64_t addr, uint32_t length)
{
	const struct ibv_sge sge = { .addr = addr, .length = length, .lkey = lkey };
	struct aw_qp_shadow *shadow;

	aw_inside_enter();
	shadow = shadow_get(qp);
	aw_batch_sges(shadow->batch, &sge, 1);
	shadow->extended.wr_set_sge(qp, lkey, addr, length);
	wr_end(shadow);
}

static void wr_set_sge_list(struct ibv_qp_ex *qp, size_t num_sge, const struct ibv_sge *sg_list)
{
	struct aw_qp_shadow *shadow;

	aw_inside_enter();
	shadow = shadow_get(qp);
	aw_batch_sges(shadow->batch, sg_list, num_sge);
	shadow->extended.wr_set_sge_list(qp, num_sge, sg_list);
	wr_end(shadow);
}

static void wr_set_inline_data(struct ibv_qp_ex *qp, void *addr, size_t length)
{
	struct aw_qp_shadow *shadow;

	aw_inside_enter();
	shadow = shadow_get(qp);
	aw_batch_inline(shadow->batch, length);
	shadow->extended.wr_set_inline_data(qp, addr, length);
	wr_end(shadow);
}

static void wr_set_inline_data_list(struct ibv_qp_ex *qp, size_t num_buf,
				    const struct ibv_data_buf *buf_list)
{
	struct aw_qp_shadow *shadow;
	size_t len = 0;

	for (size_t i = 0; i < num_buf; i++)
		len += buf_list[i].length;
	aw_inside_enter();
	shadow = shadow_get(qp);
	aw_batch_inline(shadow->batch, len);
	shadow->extended.wr_set_inline_data_list(qp, num_buf, buf_list);
	wr_end(shadow);
}

static int light_wr_complete(struct ibv_qp_ex *qp)
{
	struct aw_qp_shadow *shadow;
	int err;

	aw_inside_enter();
	shadow = shadow_get(qp);
	err = shadow->extended.wr_complete(qp);
	if (err)
		aw_hook_failed("ibv_wr_complete", err);
	shadow_put(shadow);
	aw_inside_leave();
	return err;
}

void aw_hook_qp_ex(struct ibv_qp_ex *qp)
{
	struct aw_qp_shadow *shadow = shadow_get(qp);

	if (!shadow)
		return;
	if (qp->wr_start != wr_start && qp->wr_complete != light_wr_complete)
		shadow->extended = *qp;
	if (aw_light_is_on()) {
		qp->wr_complete = light_wr_complete;
	} else if (qp->wr_start != wr_start) {
		qp->wr_start = wr_start;
		qp->wr_complete = wr_complete;
		qp->wr_abort = wr_abort;
		qp->wr_atomic_cmp_swp = wr_atomic_cmp_swp;
		qp->wr_atomic_fetch_add = wr_atomic_fetch_add;
		qp->wr_atomic_write = wr_atomic_write;
		if (shadow->has_flush)
			flush_hook(shadow, qp);
		qp->wr_bind_mw = wr_bind_mw;
		qp->wr_local_inv = wr_local_inv;
		qp->wr_rdma_read = wr_rdma_read;
		qp->wr_rdma_write = wr_rdma_write;
		qp->wr_rdma_write_imm = wr_rdma_write_imm;
		qp->wr_send = wr_send;
		qp->wr_send_imm = wr_send_imm;
		qp->wr_send_inv = wr_send_inv;
		qp->wr_set_sge = wr_set_sge;
		qp->wr_set_sge_list = wr_set_sge_list;
		qp->wr_set_inline_data = wr_set_inline_data;
		qp->wr_set_inline_data_list = wr_set_inline_data_list;
	}
	shadow_put(shadow);
}

struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
	struct ibv_qp_ex *extended;

	aw_inside_enter();
	extended = aw_real()->ibv_qp_to_qp_ex(qp);
	if (extended)
		aw_hook_qp_ex(extended);
	aw_inside_leave();
	return extended;
}
