// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Memory windows: life, and the WRs that bind them. A type 1 window gets a new random key with each
// bind; for type 2 the program chooses the key, the rkey's lowest 8 bits. Type 2 is 2B of the
// specifications: bound to a QP, not to a PD.
#include "verbs/mw.h"

#include "net/base/io_now.h"
#include "net/mr/mrtab.h"
#include "net/mr/mw.h"
#include "verbs/context.h"
#include "verbs/fail.h"
#include "verbs/pd.h"
#include "verbs/send.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BIND_FLAGS (IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED)
/* LOCAL_WRITE has no effect on a window; programs set it all the same, rdma-core's tests too. */
#define BIND_ACCESS                                                                    \
	(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC | \
	 IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE)

struct vb_mw {
	struct ibv_mw ibv;
	struct aw_mw *aw;
};

static struct vb_mw *mw_of(struct ibv_mw *mw)
{
	return (struct vb_mw *)mw;
}

/* EINVAL for an unknown type, ENOMEM, EIO without randomness. */
struct ibv_mw *vb_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	AW_UNCANCELLED int cancel = aw_cancel_disable();
	bool known = type == IBV_MW_TYPE_1 || type == IBV_MW_TYPE_2;
	struct vb_mw *mw = known ? calloc(1, sizeof(*mw)) : NULL;
	int err = known ? ENOMEM : EINVAL;

	if (mw)
		err = aw_mw_create(vb_pd_key(pd), type == IBV_MW_TYPE_2, &mw->aw);
	if (err) {
		free(mw);
		errno = err;
		return NULL;
	}
	mw->ibv.context = pd->context;
	mw->ibv.pd = pd;
	mw->ibv.rkey = mw->aw->stag;
	mw->ibv.handle = mw->aw->handle;
	mw->ibv.type = type;
	vb_pd_get(pd);
	return &mw->ibv;
}

int vb_dealloc_mw(struct ibv_mw *ibv_mw)
{
	AW_UNCANCELLED int cancel = aw_cancel_disable();
	struct vb_mw *mw = mw_of(ibv_mw);

	aw_mw_destroy(mw->aw);
	vb_pd_put(ibv_mw->pd);
	free(mw);
	return 0;
}

/* EINVAL before the QP may send, ENOMEM when the send queue is full, EIO without randomness. */
int vb_bind_mw(struct ibv_qp *ibv, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	struct vb_qp *qp = vb_qp_of(ibv);
	struct aw_swqe *wqe = NULL;
	uint32_t rkey = 0;
	int err = EINVAL;

	vb_post_begin(qp);
	if (vb_qp_may_send(qp) && !(bind->send_flags & ~(unsigned int)BIND_FLAGS)) {
		wqe = aw_uqp_send_slot(qp->uqp);
		err = wqe ? aw_stag_rekey(mw->rkey, &rkey) : ENOMEM;
	}
	if (!err) {
		vb_send_begin(wqe, AW_OP_BIND_MW, bind->wr_id, bind->send_flags);
		err = vb_mw_fill(wqe, IBV_MW_TYPE_1, mw, rkey, &bind->bind_info);
	}
	if (!err) {
		vb_mw_posted(wqe);
		vb_send_commit(qp);
	}
	vb_post_end(qp);
	return vb_fail(err);
}

int vb_mw_fill(struct aw_swqe *wqe, enum ibv_mw_type type, struct ibv_mw *mw, uint32_t key,
	       const struct ibv_mw_bind_info *info)
{
	unsigned int access = info->mw_access_flags & ~(unsigned int)IBV_ACCESS_OPTIONAL_RANGE;

	if (!mw || mw->type != type || access & ~(unsigned int)BIND_ACCESS)
		return EINVAL;
	if (!info->mr && (info->addr || info->length))
		return EINVAL;
	wqe->to = info->addr;
	wqe->compare_add = info->length;
	wqe->inv_or_imm = info->mr ? info->mr->lkey : 0;
	wqe->stag = aw_stag_with_key(mw_of(mw)->aw->stag, key);
	wqe->access = (uint8_t)access;
	wqe->swap = mw_of(mw)->aw->handle;
	/* A bind has no SGE, so the WQE holds the window's pointer until it is posted. */
	memcpy(wqe->data, &mw, sizeof(mw));
	return 0;
}

void vb_mw_posted(const struct aw_swqe *wqe)
{
	struct ibv_mw *mw;

	if (wqe->op != AW_OP_BIND_MW)
		return;
	memcpy(&mw, wqe->data, sizeof(mw));
	mw->rkey = wqe->stag;
}
