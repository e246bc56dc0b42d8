// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Life of a QP: RC, and in the roce persona UC and UD. The queues have exactly the sizes asked for, except
// that a WR may always have one SGE.
#include "verbs/qp.h"

#include "base/log.h"
#include "net/base/io_now.h"
#include "net/base/persona.h"
#include "net/roce/rc.h"
#include "net/tls/want.h"
#include "net/ud/ud.h"
#include "net/ud/ud_group.h"
#include "verbs/ack.h"
#include "verbs/context.h"
#include "verbs/cq.h"
#include "verbs/fail.h"
#include "verbs/limits.h"
#include "verbs/pd.h"
#include "verbs/port_watch.h"
#include "verbs/private.h"
#include "verbs/qp_target.h"
#include "verbs/refusal.h"
#include "verbs/srq.h"

#include <errno.h>
#include <stdlib.h>

#define ATTR_KNOWN \
	(IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)
#define SEND_OPS                                                                                 \
	((uint64_t)(IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_READ | \
		    IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_SEND_WITH_INV |                    \
		    IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |                \
		    IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |           \
		    IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_ATOMIC_WRITE |          \
		    VB_QP_EX_WITH_FLUSH))
/* ibv_post_send(3) */
#define UC_SEND_OPS                                                                              \
	((uint64_t)(IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_LOCAL_INV | \
		    IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_BIND_MW |                      \
		    IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND_WITH_IMM))
/* The STag of a Send with Invalidate stands where a Send of XRC has the number of the SRQ. */
#define XRC_SEND_OPS (SEND_OPS & ~(uint64_t)IBV_QP_EX_WITH_SEND_WITH_INV)
#define UD_SEND_OPS ((uint64_t)(IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM))

/*
 * A stream's end raises one of three error events: as with adapters, access and request errors come
 * alone.
 */
static const struct {
	uint32_t event; /* enum aw_uqp_event */
	enum ibv_event_type type;
} sources[VB_QP_SOURCES] = {
	{ AW_UQP_BEGUN, IBV_EVENT_COMM_EST },
	{ AW_UQP_FATAL, IBV_EVENT_QP_FATAL },
	{ AW_UQP_REQ_ERR, IBV_EVENT_QP_REQ_ERR },
	{ AW_UQP_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR },
	{ AW_UQP_LAST_WQE, IBV_EVENT_QP_LAST_WQE_REACHED },
	{ AW_UQP_DRAINED, IBV_EVENT_SQ_DRAINED },
};

static struct vb_limit qps = { .max = VB_QP_MAX };

static uint64_t send_ops_of(enum ibv_qp_type type);
static struct ibv_qp_init_attr attr_meant(const struct ibv_qp_init_attr *attr);
static int attr_check(struct ibv_pd *pd, const struct ibv_qp_init_attr *attr);
static int qp_create(struct ibv_pd *pd, struct ibv_qp_init_attr *attr, struct vb_qp **created);
static void on_events(void *arg, uint32_t events);
static void users_change(struct vb_qp *qp, int change);

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	AW_UNCANCELLED int cancel = aw_cancel_disable();
	struct ibv_qp_init_attr meant = attr_meant(attr);
	struct vb_qp *qp = NULL;
	int err = attr_check(pd, &meant);

	if (!err)
		err = qp_create(pd, &meant, &qp);
	if (err) {
		errno = err;
		return NULL;
	}
	vb_port_watch_look(pd->context);
	attr->cap = meant.cap;
	return &qp->ibv.qp_base;
}

struct ibv_qp *vb_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr_ex)
{
	AW_UNCANCELLED int cancel = aw_cancel_disable();
	/* The extended struct begins with the plain one. */
	struct ibv_qp_init_attr *attr = (struct ibv_qp_init_attr *)attr_ex;
	uint64_t send_ops = send_ops_of(attr_ex->qp_type);
	uint32_t mask = attr_ex->comp_mask;
	struct ibv_qp *qp;
	int err = 0;

	if (attr_ex->qp_type == IBV_QPT_XRC_RECV && aw_persona_is_roce())
		return vb_target_create(context, attr_ex);
	if (mask & ~(uint32_t)ATTR_KNOWN)
		err = EOPNOTSUPP;
	else if (!(mask & IBV_QP_INIT_ATTR_PD) || !attr_ex->pd || attr_ex->pd->context != context)
		err = EINVAL;
	else if (mask & IBV_QP_INIT_ATTR_CREATE_FLAGS && attr_ex->create_flags)
		err = EOPNOTSUPP;
	else if (mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS && attr_ex->send_ops_flags & ~send_ops)
		err = EOPNOTSUPP;
	if (err) {
		errno = err;
		return NULL;
	}
	qp = ibv_create_qp(attr_ex->pd, attr);
	if (qp && mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)
		vb_qp_wr_init(vb_qp_of(qp));
	return qp;
}

/* EBUSY while the QP is in a multicast group. Waits until events that were read are acknowledged. */
int ibv_destroy_qp(struct ibv_qp *ibv)
{
	AW_UNCANCELLED int cancel = aw_cancel_disable();
	struct vb_qp *qp = vb_qp_of(ibv);

	if (qp->target) {
		vb_target_close(qp);
		return 0;
	}
	if (qp->uqp->ud && aw_ud_group_has(qp->uqp))
		return vb_fail(EBUSY);
	aw_uqp_listen(qp->uqp, AW_UQP_VERBS, NULL, NULL);
	aw_uqp_destroy(qp->uqp);
	vb_qp_counters_leave(qp);
	vb_qp_sources_end(qp);
	users_change(qp, -1);
	pthread_cond_destroy(&ibv->cond);
	pthread_mutex_destroy(&ibv->mutex);
	pthread_mutex_destroy(&qp->post_lock);
	free(qp);
	vb_limit_give(&qps);
	return 0;
}

struct aw_uqp *avb_qp_uqp(struct ibv_qp *qp)
{
	return vb_qp_of(qp)->uqp;
}

static bool is_xrc(enum ibv_qp_type type)
{
	return type == IBV_QPT_XRC_SEND || type == IBV_QPT_XRC_RECV;
}

static uint64_t send_ops_of(enum ibv_qp_type type)
{
	if (type == IBV_QPT_UD)
		return UD_SEND_OPS;
	if (is_xrc(type))
		return XRC_SEND_OPS;
	return type == IBV_QPT_UC ? UC_SEND_OPS : SEND_OPS;
}

/*
 * Programs print "Couldn't create QP". Those that try all types to see what a device has are told of each once.
 */
static int refuse_type(enum ibv_qp_type type)
{
	static _Atomic uint32_t told;
	uint32_t bit = 1u << ((unsigned int)type % 32);

	if (atomic_fetch_or_explicit(&told, bit, memory_order_relaxed) & bit)
		return EOPNOTSUPP;
	if (type == IBV_QPT_UD || type == IBV_QPT_UC || is_xrc(type))
		aw_log(AW_LOG_ERROR,
		       "%s qp refused: an iwarp device has rc qps alone; the roce persona has xrc, uc and ud ones, too "
		       "(both ends: anywarp run --persona roce)",
		       is_xrc(type)	    ? "xrc"
		       : type == IBV_QPT_UD ? "ud"
					    : "uc");
	else
		aw_log(AW_LOG_ERROR,
		       "%s qp refused: this device has rc qps (perftest: -c RC), and xrc, uc and ud ones in the roce "
		       "persona (anywarp run --persona roce)",
		       type == IBV_QPT_RAW_PACKET ? "raw packet" : "driver's own");
	return EOPNOTSUPP;
}

/* The initiator QP of XRC receives nothing: what is given for receives is ignored. */
static struct ibv_qp_init_attr attr_meant(const struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr meant = *attr;

	if (attr->qp_type == IBV_QPT_XRC_SEND) {
		meant.recv_cq = meant.send_cq;
		meant.srq = NULL;
		meant.cap.max_recv_wr = meant.cap.max_recv_sge = 0;
	}
	return meant;
}

static bool is_offered(enum ibv_qp_type type)
{
	bool of_roce = type == IBV_QPT_UC || type == IBV_QPT_UD || is_xrc(type);

	return type == IBV_QPT_RC || (of_roce && aw_persona_is_roce());
}

static int attr_check(struct ibv_pd *pd, const struct ibv_qp_init_attr *attr)
{
	if (!is_offered(attr->qp_type))
		return refuse_type(attr->qp_type);
	int err = attr->qp_type == IBV_QPT_UD ? aw_tls_refuse("ibv_create_qp: a ud qp") : 0;

	if (err)
		return err;
	/* Made with an XRCD, by ibv_create_qp_ex. */
	if (attr->qp_type == IBV_QPT_XRC_RECV)
		return EINVAL;
	if (!pd || !attr->send_cq || !attr->recv_cq)
		return EINVAL;
	if (attr->send_cq->context != pd->context || attr->recv_cq->context != pd->context ||
	    (attr->srq && attr->srq->context != pd->context))
		return EINVAL;
	/* Its completions have their own CQ, and the receives are those of target QPs. */
	if (attr->srq && vb_srq_of(attr->srq)->xrc)
		return EINVAL;
	if (attr->cap.max_send_wr > AW_WR_MAX || attr->cap.max_send_sge > AW_SGE_MAX ||
	    attr->cap.max_inline_data > AW_INLINE_MAX)
		return EINVAL;
	/* With an SRQ the receive sizes are ignored. */
	if (!attr->srq &&
	    (attr->cap.max_recv_wr > AW_WR_MAX || attr->cap.max_recv_sge > AW_SGE_MAX))
		return EINVAL;
	return 0;
}

/* Adapters give inline room unasked, and programs rely on it: rdma_xclient asks for none. */
#define INLINE_MIN 64

static int uqp_create(struct ibv_pd *pd, const struct ibv_qp_init_attr *attr, struct aw_uqp **uqp)
{
	struct aw_uqp_attr want = {
		.send_cq = &vb_cq_of(attr->send_cq)->aw,
		.recv_cq = &vb_cq_of(attr->recv_cq)->aw,
		.srq = attr->srq ? &vb_srq_of(attr->srq)->aw : NULL,
		.pd = vb_pd_key(pd),
		.memory = vb_pd_memory(pd),
		.send_wr_max = attr->cap.max_send_wr,
		.recv_wr_max = attr->cap.max_recv_wr,
		.send_sge_max = attr->cap.max_send_sge,
		.recv_sge_max = attr->cap.max_recv_sge,
		.inline_max = attr->cap.max_inline_data,
		.sig_all = attr->sq_sig_all,
		.uc = attr->qp_type == IBV_QPT_UC,
		.xrc = attr->qp_type == IBV_QPT_XRC_SEND ? AW_XRC_INITIATOR : AW_XRC_NONE,
		.ud_mtu = attr->qp_type == IBV_QPT_UD ? vb_port_mtu() : 0,
	};

	if (attr->qp_type == IBV_QPT_UD && !want.ud_mtu)
		return ENODEV;
	if (want.ud_mtu)
		want.kind = &aw_ud_kind;
	else if (aw_persona_is_roce())
		want.kind = &aw_rc_kind;
	return aw_uqp_create(&want, uqp);
}

static void qp_fill(struct vb_qp *qp, struct ibv_pd *pd, const struct ibv_qp_init_attr *attr)
{
	struct ibv_qp *ibv = &qp->ibv.qp_base;

	ibv->context = pd->context;
	ibv->qp_context = attr->qp_context;
	ibv->pd = pd;
	ibv->send_cq = attr->send_cq;
	ibv->recv_cq = attr->recv_cq;
	ibv->srq = attr->srq;
	ibv->handle = qp->uqp->handle;
	ibv->qp_num = qp->uqp->qpn;
	/*
	 * The shown state is RESET until the program queries or modifies the QP, as with
	 * rdma-core's library.
	 */
	ibv->state = IBV_QPS_RESET;
	atomic_init(&qp->walked, aw_persona_is_roce() ? IBV_QPS_RESET : IBV_QPS_INIT);
	ibv->qp_type = attr->qp_type;
	if (qp->uqp->ud)
		qp->send_end = aw_ud_send_end;
	else
		qp->send_end = qp->uqp->varied ? aw_uqp_send_end_late : aw_uqp_send_end;
	pthread_mutex_init(&ibv->mutex, NULL);
	pthread_mutex_init(&qp->post_lock, NULL);
	pthread_cond_init(&ibv->cond, NULL);
	vb_qp_sources_begin(qp);
	users_change(qp, 1);
}

static int qp_create(struct ibv_pd *pd, struct ibv_qp_init_attr *attr, struct vb_qp **created)
{
	struct vb_qp *qp;
	int err = ENOMEM;

	if (!vb_limit_take(&qps))
		return ENOMEM;
	qp = calloc(1, sizeof(*qp));
	if (!qp)
		goto give;
	qp->init = *attr;
	if (qp->init.cap.max_inline_data < INLINE_MIN)
		qp->init.cap.max_inline_data = INLINE_MIN;
	if (!qp->init.cap.max_send_sge)
		qp->init.cap.max_send_sge = 1;
	if (attr->srq)
		qp->init.cap.max_recv_wr = qp->init.cap.max_recv_sge = 0;
	else if (attr->qp_type != IBV_QPT_XRC_SEND && !qp->init.cap.max_recv_sge)
		qp->init.cap.max_recv_sge = 1;
	err = uqp_create(pd, &qp->init, &qp->uqp);
	if (err)
		goto free_qp;
	qp_fill(qp, pd, attr);
	aw_uqp_listen(qp->uqp, AW_UQP_VERBS, on_events, qp);
	attr->cap = qp->init.cap;
	*created = qp;
	return 0;

free_qp:
	free(qp);
give:
	vb_limit_give(&qps);
	return err;
}

static void on_events(void *arg, uint32_t events)
{
	vb_qp_event(arg, events);
}

void vb_qp_sources_begin(struct vb_qp *qp)
{
	for (int i = 0; i < VB_QP_SOURCES; i++)
		aw_source_init(&qp->source[i], &qp->ibv.qp_base, (int)sources[i].type);
}

void vb_qp_sources_end(struct vb_qp *qp)
{
	struct ibv_qp *ibv = &qp->ibv.qp_base;
	struct aw_channel *async = &vb_context_of(ibv->context)->async;
	struct vb_ack ack = { &ibv->mutex, &ibv->cond, &ibv->events_completed };
	uint32_t taken = 0;

	for (int i = 0; i < VB_QP_SOURCES; i++) {
		aw_channel_forget(async, &qp->source[i]);
		taken += qp->source[i].taken;
	}
	vb_ack_wait(ibv->context, ack, taken);
}

void vb_qp_event(struct vb_qp *qp, uint32_t events)
{
	struct aw_channel *async = &vb_context_of(qp->ibv.qp_base.context)->async;

	/*
	 * COMM_EST is of a message that comes while the QP is in RTR. A QP that rdma_cm connects is in a
	 * like state if it may not send before the other end has: the responder (RFC 5044 7.1.2), unless
	 * an RTR of the library's comes before the message (RFC 6581 9.2).
	 */
	const struct aw_stream *stream = &qp->uqp->core.stream;
	bool is_in_rtr = qp->uqp->by_rc ? vb_qp_walked(vb_qp_real(&qp->ibv.qp_base)) == IBV_QPS_RTR
					: !stream->initiator && !stream->p2p;

	/* To the initiator of XRC come answers alone. */
	if (!is_in_rtr || qp->uqp->attr.xrc == AW_XRC_INITIATOR)
		events &= ~(uint32_t)AW_UQP_BEGUN;
	if (events & (AW_UQP_ACCESS_ERR | AW_UQP_REQ_ERR))
		vb_refusal_tell(qp);
	for (int i = 0; i < VB_QP_SOURCES; i++)
		if (events & sources[i].event)
			aw_channel_raise(async, &qp->source[i]);
}

/* Objects that a QP uses cannot be destroyed before it. */
static void users_change(struct vb_qp *qp, int change)
{
	struct ibv_qp *ibv = &qp->ibv.qp_base;
	/* Release pairs with the acquire where the used object is destroyed. */
	memory_order order = memory_order_release;

	atomic_fetch_add_explicit(&vb_cq_of(ibv->send_cq)->users, (uint32_t)change, order);
	atomic_fetch_add_explicit(&vb_cq_of(ibv->recv_cq)->users, (uint32_t)change, order);
	if (ibv->srq)
		atomic_fetch_add_explicit(&vb_srq_of(ibv->srq)->users, (uint32_t)change, order);
	if (change > 0)
		vb_pd_get(ibv->pd);
	else
		vb_pd_put(ibv->pd);
}
