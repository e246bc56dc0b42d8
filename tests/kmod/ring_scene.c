// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "ring_scene.h"

#include "core/rx.h"
#include "core/tx.h"

#include "kmod/mr/mr.h"

#include "kclock.h"

#include <rdma/ib_umem.h>

static _Alignas(4096) u8 memory[SCENE_PAGES << PAGE_SHIFT];

static struct page *page_of(u64 addr)
{
	u64 at = addr - SCENE_BASE;

	return at < sizeof(memory) ? (struct page *)(memory + at) : NULL;
}

static void count_overflow(struct ib_event *event, void *context)
{
	struct ring_end *end = context;

	end->overflows += event->event == IB_EVENT_CQ_ERR;
}

static struct awk_cq *cq_create(struct ring_scene *scene, struct ring_end *end, u32 cqe_max)
{
	struct ib_udata udata = { .uctx = &scene->uctx.base, .outlen = 64 };
	struct ib_cq_init_attr attr = { .cqe = cqe_max };
	struct awk_cq *cq = kzalloc(sizeof(*cq), GFP_KERNEL);

	cq->base.device = &scene->dev.base;
	cq->base.event_handler = count_overflow;
	cq->base.cq_context = end;
	KSHIM_CHECK(awk_cq_create(&cq->base, &attr, &udata) == 0);
	return cq;
}

static struct awk_srq *srq_create(struct ring_scene *scene, u32 wr_max)
{
	struct ib_udata udata = { .uctx = &scene->uctx.base, .outlen = 64 };
	struct ib_srq_init_attr attr = { .attr = { .max_wr = wr_max, .max_sge = 1 } };
	struct awk_srq *srq = kzalloc(sizeof(*srq), GFP_KERNEL);

	srq->base.device = &scene->dev.base;
	srq->base.pd = &scene->pd;
	KSHIM_CHECK(awk_srq_create(&srq->base, &attr, &udata) == 0);
	return srq;
}

static struct awk_qp *qp_create(struct ring_scene *scene, struct awk_cq *cq, struct awk_srq *srq,
				u32 wr_max)
{
	struct ib_udata udata = { .uctx = &scene->uctx.base, .outlen = 64 };
	struct awk_qp *qp = kzalloc(sizeof(*qp), GFP_KERNEL);
	struct ib_qp_init_attr attr = {
		.send_cq = &cq->base,
		.recv_cq = &cq->base,
		.srq = srq ? &srq->base : NULL,
		.cap = { .max_send_wr = wr_max, .max_recv_wr = wr_max },
	};

	qp->base.device = &scene->dev.base;
	qp->base.pd = &scene->pd;
	KSHIM_CHECK(awk_qp_create(&qp->base, &attr, &udata) == 0);
	return qp;
}

static void qp_start(struct awk_qp *qp, bool initiator)
{
	const struct aw_stream stream = {
		.initiator = initiator,
		.crc = true,
		.ird = 4,
		.ord = 4,
		.emss = 1460,
	};

	awk_qp_lock(qp);
	aw_qp_start(&qp->core, &stream);
	awk_qp_unlock(qp);
}

struct ring_scene *ring_scene_create(u32 wr_max, u32 cqe_max)
{
	const int access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ;
	struct ring_scene *scene = calloc(1, sizeof(*scene));
	struct ib_udata udata = { .uctx = &scene->uctx.base, .outlen = 64 };

	kshim_page_of = page_of;
	scene->dev.netdev = &scene->netdev;
	scene->pd.device = &scene->dev.base;
	scene->mr =
		awk_mr_reg_user(&scene->pd, SCENE_BASE, sizeof(memory), SCENE_BASE, access, &udata);
	KSHIM_CHECK(!IS_ERR(scene->mr));
	scene->stag = scene->mr->rkey;
	scene->srq = srq_create(scene, wr_max);
	for (unsigned int i = 0; i < 2; i++) {
		struct ring_end *end = &scene->ends[i];

		end->wire = malloc(SCENE_WIRE);
		end->cq = cq_create(scene, end, cqe_max);
		end->qp = qp_create(scene, end->cq, i ? scene->srq : NULL, wr_max);
		qp_start(end->qp, i == 0);
	}
	return scene;
}

void ring_scene_destroy(struct ring_scene *scene)
{
	for (unsigned int i = 0; i < 2; i++) {
		struct ring_end *end = &scene->ends[i];

		awk_qp_destroy(&end->qp->base, NULL);
		awk_cq_destroy(&end->cq->base, NULL);
		kfree(end->qp);
		kfree(end->cq);
		free(end->wire);
	}
	awk_srq_destroy(&scene->srq->base, NULL);
	kfree(scene->srq);
	awk_mr_dereg(scene->mr, NULL);
	free(scene);
	KSHIM_CHECK(kshim_allocated == 0 && kshim_work_is_none());
}

/* With the lock. False: nothing is due, or the wire is full. */
static bool transmit_one(struct ring_end *end)
{
	static u8 arena[AW_TX_ARENA_MIN];
	struct aw_iov iov[AW_TX_IOV_MIN];
	struct aw_tx_out out = {
		.arena = arena,
		.arena_len = sizeof(arena),
		.iov = iov,
		.iov_max = ARRAY_SIZE(iov),
	};

	if (end->wire_len + AW_TX_ARENA_MIN > SCENE_WIRE || end->qp->core.state == AW_QP_ERROR ||
	    aw_tx_next(&end->qp->core, &out) != AW_TX_FPDU)
		return false;
	for (size_t i = 0; i < out.iov_count; i++) {
		(memcpy)(end->wire + end->wire_len, iov[i].base, iov[i].len);
		end->wire_len += iov[i].len;
	}
	aw_tx_sent(&end->qp->core, out.octets);
	return true;
}

void ring_scene_transmit(struct ring_scene *scene, unsigned int end, unsigned int count)
{
	struct awk_qp *qp = scene->ends[end].qp;

	awk_qp_lock(qp);
	awk_qp_drain(qp);
	while (count-- > 0 && transmit_one(&scene->ends[end]))
		;
	awk_qp_unlock(qp);
}

void ring_scene_deliver(struct ring_scene *scene, unsigned int end)
{
	struct ring_end *from = &scene->ends[end];
	struct awk_qp *qp = scene->ends[!end].qp;
	size_t used = 0;

	awk_qp_lock(qp);
	if (qp->core.state != AW_QP_ERROR)
		used = aw_rx_octets(&qp->core, from->wire, from->wire_len);
	awk_qp_unlock(qp);
	from->wire_len -= used;
	memmove(from->wire, from->wire + used, from->wire_len);
}
