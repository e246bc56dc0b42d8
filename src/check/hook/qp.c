// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// QPs and SRQs, and the posts to them.
#include "check/base/newer.h"
#include "check/explain/explain.h"
#include "check/faults/faults.h"
#include "check/hook/failure.h"
#include "check/hook/ops.h"
#include "check/hook/vary.h"
#include "check/model/post.h"
#include "check/report/report.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

static void qp_create_failed(const struct ibv_context *context, const struct ibv_qp_init_attr *attr)
{
	struct aw_context_shadow *device = aw_context_get(context);
	const int err = errno;
	char why[AW_EXPLAIN_MAX];

	aw_explain_create_qp(attr, device ? &device->attr : NULL, err, why);
	aw_failure_explain_memory("ibv_create_qp", err, why);
	aw_object_put(device ? &device->object : NULL);
	errno = err;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp *qp = NULL;

	aw_inside_enter();
	aw_hook_context(pd->context);
	if (aw_like_allows(aw_hook_like() ? aw_like_check_create_qp(aw_hook_like(), attr) : 0) &&
	    aw_hook_may("ibv_create_qp"))
		qp = aw_real()->ibv_create_qp(pd, attr);
	if (qp)
		aw_qp_add(qp, attr);
	else
		qp_create_failed(pd->context, attr);
	aw_inside_leave();
	return qp;
}

/* The extended attributes begin with the plain ones. */
static struct ibv_qp_init_attr plain_attr(const struct ibv_qp_init_attr_ex *extended)
{
	return (struct ibv_qp_init_attr){ .qp_context = extended->qp_context,
					  .send_cq = extended->send_cq,
					  .recv_cq = extended->recv_cq,
					  .srq = extended->srq,
					  .cap = extended->cap,
					  .qp_type = extended->qp_type,
					  .sq_sig_all = extended->sq_sig_all };
}

/* A library that grants the operation has the slot. */
static void flush_note(struct ibv_qp *qp, const struct ibv_qp_init_attr_ex *attr)
{
	struct aw_qp_shadow *shadow = aw_qp_get(qp);

	if (!shadow)
		return;
	shadow->has_flush = attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS &&
			    attr->send_ops_flags & AW_NEWER_QP_EX_WITH_FLUSH;
	aw_object_put(&shadow->object);
}

struct ibv_qp *aw_op_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
	struct aw_context_shadow *device;
	struct ibv_qp_init_attr plain;
	struct ibv_qp *qp = NULL;

	aw_inside_enter();
	device = aw_ops_get(context);
	plain = plain_attr(attr);
	if (aw_like_allows(aw_hook_like() ? aw_like_check_create_qp(aw_hook_like(), &plain) : 0) &&
	    aw_hook_may("ibv_create_qp_ex"))
		qp = device->extended.create_qp_ex(context, attr);
	plain = plain_attr(attr);
	if (qp) {
		aw_qp_add(qp, &plain);
		flush_note(qp, attr);
	} else {
		qp_create_failed(context, &plain);
	}
	aw_object_put(&device->object);
	aw_inside_leave();
	return qp;
}

/* The QP of another process: what it was created with is not known here, and it is not followed. */
struct ibv_qp *aw_op_open_qp(struct ibv_context *context, struct ibv_qp_open_attr *attr)
{
	struct aw_context_shadow *device;
	struct ibv_qp *qp = NULL;

	aw_inside_enter();
	device = aw_ops_get(context);
	if (aw_hook_may("ibv_open_qp"))
		qp = device->extended.open_qp(context, attr);
	if (!qp)
		aw_hook_failed("ibv_open_qp", errno);
	aw_object_put(&device->object);
	aw_inside_leave();
	return qp;
}

int ibv_destroy_qp(struct ibv_qp *qp)
{
	struct aw_object *object;
	int err;

	aw_inside_enter();
	object = aw_object_get(qp, AW_KIND_QP);
	if (aw_destroy_begin("ibv_destroy_qp", object)) {
		if (object)
			aw_qp_end((struct aw_qp_shadow *)object);
		err = aw_real()->ibv_destroy_qp(qp);
		aw_destroy_end("ibv_destroy_qp", object, err);
	} else {
		err = errno;
	}
	aw_object_put(object);
	aw_inside_leave();
	return err;
}

/* Tells an ORD or IRD beyond the device's. */
static void rd_atomic_judge(const struct aw_qp_shadow *qp, const struct ibv_qp_attr *attr, int mask)
{
	struct aw_context_shadow *device = aw_context_get(qp->qp->context);
	char name[AW_OBJECT_NAME_MAX];
	struct aw_report report = { .rule = AW_RULE_RD_ATOMIC_EXCEEDED, .object = name };

	if (!device)
		return;
	aw_object_name(&qp->object, name);
	if (mask & IBV_QP_MAX_QP_RD_ATOMIC &&
	    attr->max_rd_atomic > device->attr.max_qp_init_rd_atom)
		aw_report(&report,
			  "max_rd_atomic (ORD) is %u, beyond max_qp_init_rd_atom %d of the device",
			  attr->max_rd_atomic, device->attr.max_qp_init_rd_atom);
	if (mask & IBV_QP_MAX_DEST_RD_ATOMIC &&
	    attr->max_dest_rd_atomic > device->attr.max_qp_rd_atom)
		aw_report(&report,
			  "max_dest_rd_atomic (IRD) is %u, beyond max_qp_rd_atom %d of the device",
			  attr->max_dest_rd_atomic, device->attr.max_qp_rd_atom);
	aw_object_put(&device->object);
}

static void qp_modified(struct aw_qp_shadow *qp, const struct ibv_qp_attr *attr, int mask)
{
	if (mask & IBV_QP_MAX_QP_RD_ATOMIC) {
		qp->rd_atomic = attr->max_rd_atomic;
		qp->has_rd_atomic = true;
	}
	if (mask & IBV_QP_PORT)
		qp->port = attr->port_num;
	if (!(mask & IBV_QP_STATE))
		return;
	qp->state = attr->qp_state;
	if (attr->qp_state == IBV_QPS_RESET)
		aw_qp_reset(qp);
}

/* Says why the call failed. qp: as it was; shadow: what is known of it. */
static void modify_failed(struct ibv_qp *qp, struct aw_qp_shadow *shadow,
			  struct aw_explain_qp *facts, const struct ibv_qp_attr *attr, int mask,
			  int err)
{
	struct aw_context_shadow *device = aw_context_get(qp->context);
	char name[AW_OBJECT_NAME_MAX], why[AW_EXPLAIN_MAX];
	struct ibv_port_attr port;

	aw_object_name(&shadow->object, name);
	facts->object = name;
	facts->type = qp->qp_type;
	facts->is_iwarp = aw_like_transport(qp->context->device) == IBV_TRANSPORT_IWARP;
	facts->port_num = shadow->port;
	facts->device = device ? &device->attr : NULL;
	if (shadow->port && device && device->extended.query_port &&
	    device->extended.query_port(qp->context, shadow->port, &port, sizeof(port)) == 0)
		facts->port = &port;
	aw_explain_modify_qp(facts, attr, mask, err, why);
	aw_hook_explain("ibv_modify_qp", why);
	aw_object_put(device ? &device->object : NULL);
}

/* The adapter's answer to the program's own call. librdmacm asks for what its own device has, as the adapter's would. */
static int unlike_modify(const struct ibv_qp_attr *attr, int mask)
{
	const struct aw_like *like = aw_hook_like();
	struct aw_stack stack;

	if (!like || aw_inside_depth() > 1)
		return 0;
	aw_stack_take(&stack);
	return aw_stack_is_library(&stack) ? 0 : aw_like_check_modify_qp(like, attr, mask);
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	struct aw_explain_qp facts = { 0 };
	struct aw_qp_shadow *shadow;
	int err;

	aw_inside_enter();
	shadow = aw_qp_get(qp);
	if (shadow && aw_object_enter(&shadow->object, false)) {
		facts.state = aw_qp_state(shadow);
		rd_atomic_judge(shadow, attr, mask);
	}
	err = aw_like_allows(unlike_modify(attr, mask)) && aw_hook_may("ibv_modify_qp")
		      ? aw_real()->ibv_modify_qp(qp, attr, mask)
		      : errno;
	if (err && shadow)
		modify_failed(qp, shadow, &facts, attr, mask, err);
	else if (shadow)
		qp_modified(shadow, attr, mask);
	if (shadow)
		aw_object_leave(&shadow->object);
	aw_object_put(shadow ? &shadow->object : NULL);
	aw_inside_leave();
	return err;
}

static void srq_create_failed(const struct ibv_context *context, const struct ibv_srq_attr *attr)
{
	struct aw_context_shadow *device = aw_context_get(context);
	const int err = errno;
	char why[AW_EXPLAIN_MAX];

	aw_explain_create_srq(attr, device ? &device->attr : NULL, err, why);
	aw_failure_explain_memory("ibv_create_srq", err, why);
	aw_object_put(device ? &device->object : NULL);
	errno = err;
}

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct ibv_srq *srq = NULL;

	aw_inside_enter();
	aw_hook_context(pd->context);
	if (aw_like_allows(aw_hook_like() ? aw_like_check_create_srq(aw_hook_like(), attr) : 0) &&
	    aw_hook_may("ibv_create_srq"))
		srq = aw_real()->ibv_create_srq(pd, attr);
	if (srq)
		aw_srq_add(srq, &attr->attr, NULL);
	else
		srq_create_failed(pd->context, &attr->attr);
	aw_inside_leave();
	return srq;
}

int ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *srq_attr, int srq_attr_mask)
{
	int err;

	aw_inside_enter();
	err = aw_hook_may("ibv_modify_srq")
		      ? aw_real()->ibv_modify_srq(srq, srq_attr, srq_attr_mask)
		      : errno;
	return aw_hook_end("ibv_modify_srq", err);
}

struct ibv_srq *aw_op_create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr)
{
	struct aw_context_shadow *device;
	struct ibv_srq *srq = NULL;

	aw_inside_enter();
	device = aw_ops_get(context);
	if (aw_hook_may("ibv_create_srq_ex"))
		srq = device->extended.create_srq_ex(context, attr);
	if (srq)
		aw_srq_add(srq, &attr->attr,
			   attr->comp_mask & IBV_SRQ_INIT_ATTR_CQ ? attr->cq : NULL);
	else
		srq_create_failed(context, &attr->attr);
	aw_object_put(&device->object);
	aw_inside_leave();
	return srq;
}

int ibv_destroy_srq(struct ibv_srq *srq)
{
	struct aw_object *object;
	int err;

	aw_inside_enter();
	object = aw_object_get(srq, AW_KIND_SRQ);
	if (aw_destroy_begin("ibv_destroy_srq", object)) {
		err = aw_real()->ibv_destroy_srq(srq);
		if (object && err == 0)
			aw_srq_end((struct aw_srq_shadow *)object);
		aw_destroy_end("ibv_destroy_srq", object, err);
	} else {
		err = errno;
	}
	aw_object_put(object);
	aw_inside_leave();
	return err;
}

static struct ibv_send_wr *send_at(struct ibv_send_wr *wr, int index)
{
	while (wr && index-- > 0)
		wr = wr->next;
	return wr;
}

static unsigned sends_count(const struct ibv_send_wr *wr)
{
	unsigned count = 0;

	for (; wr; wr = wr->next)
		count++;
	return count;
}

/* The first WR that the adapter refuses, which the device is to be like; NULL: it takes all. */
static struct ibv_send_wr *unlike_find(const struct ibv_qp *qp, struct ibv_send_wr *wr, int *err)
{
	const struct aw_like *like = aw_hook_like();

	*err = 0;
	for (; like && wr; wr = wr->next) {
		*err = aw_like_check_post_send(like, qp->qp_type, wr);
		if (*err)
			return wr;
	}
	return NULL;
}

/* The device gets the WRs before stop, which are cut off the program's list for the call. 0: it accepted these. */
static int sends_before(const struct aw_context_shadow *device, struct ibv_qp *qp,
			struct ibv_send_wr *wr, struct ibv_send_wr *stop,
			struct ibv_send_wr **bad_wr)
{
	struct ibv_send_wr *last = wr;
	int err;

	if (wr == stop)
		return 0;
	while (last->next != stop)
		last = last->next;
	last->next = NULL;
	err = device->ops.post_send(qp, wr, bad_wr);
	last->next = stop;
	return err;
}

/* The device's post, as far as neither the plan of faults nor the adapter to be like refuses a WR. */
static int send_post(const struct aw_context_shadow *device, struct ibv_qp *qp,
		     struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	int refused, err;
	struct ibv_send_wr *stop = unlike_find(qp, wr, &refused);
	const int accepted = aw_hook_post("ibv_post_send", sends_count(wr), &err);

	aw_vary_pause(AW_VARY_POST);
	if (accepted >= 0) {
		stop = send_at(wr, accepted);
		refused = err;
	}
	if (!stop)
		return device->ops.post_send(qp, wr, bad_wr);
	err = sends_before(device, qp, wr, stop, bad_wr);
	if (err)
		return err;
	*bad_wr = stop;
	return refused;
}

/* The plan has the QP fail. */
static void qp_fail(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	(void)aw_real()->ibv_modify_qp(qp, &attr, IBV_QP_STATE);
}

int aw_op_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	struct ibv_send_wr *bad = wr;
	struct aw_context_shadow *device;
	struct aw_qp_shadow *shadow;
	int err;

	aw_inside_enter();
	device = aw_ops_get(qp->context);
	shadow = aw_qp_get(qp);
	if (!shadow || !aw_object_enter(&shadow->object, false)) {
		err = send_post(device, qp, wr, &bad);
	} else {
		aw_post_send_begin(shadow, wr);
		err = send_post(device, qp, wr, &bad);
		if (err)
			aw_failure_explain_send(shadow, bad, err);
		aw_post_send_end(shadow, wr, err ? bad : NULL);
		if (!err && aw_fault_planned() && aw_fault_qp_error())
			qp_fail(qp);
	}
	if (err && bad_wr)
		*bad_wr = bad;
	if (shadow)
		aw_object_leave(&shadow->object);
	aw_object_put(shadow ? &shadow->object : NULL);
	aw_object_put(&device->object);
	aw_inside_leave();
	return err;
}

/* A list of receives of which the plan refuses one, or one has no room: the device gets those before it. */
struct recv_cut {
	struct ibv_recv_wr *last; /* before the refused one; NULL: that is the first */
	struct ibv_recv_wr *stop; /* NULL: none is refused */
	int err;
};

static unsigned recvs_count(const struct ibv_recv_wr *wr)
{
	unsigned count = 0;

	for (; wr; wr = wr->next)
		count++;
	return count;
}

/* room: how many receives of the list the queue takes. */
static struct recv_cut recvs_cut(const char *call, struct ibv_recv_wr *wr, unsigned room)
{
	const unsigned count = recvs_count(wr), offered = count < room ? count : room;
	struct recv_cut cut = { NULL, NULL, ENOMEM };
	int accepted = -1;

	if (aw_fault_planned())
		accepted = aw_hook_post(call, offered, &cut.err);
	if (accepted < 0 && offered < count)
		accepted = (int)offered;
	if (accepted < 0)
		return cut;
	for (cut.stop = wr; accepted > 0 && cut.stop; accepted--) {
		cut.last = cut.stop;
		cut.stop = cut.stop->next;
	}
	if (cut.last)
		cut.last->next = NULL;
	return cut;
}

/* The list is whole again. Returns what the post returns, by what the device said of the part that it got. */
static int recvs_join(const struct recv_cut *cut, int err, struct ibv_recv_wr **bad_wr)
{
	if (!cut->stop)
		return err;
	if (cut->last)
		cut->last->next = cut->stop;
	if (err)
		return err;
	*bad_wr = cut->stop;
	return cut->err;
}

/*
 * Of the list, which the model has taken already. With --vary a receive keeps its place in the RQ until its completion is polled, as on
 * adapters that free it there. Those of an SRQ do not: a QP that ends gives some back unseen.
 */
static unsigned recvs_room(const struct aw_qp_shadow *qp, const struct ibv_recv_wr *wr)
{
	const unsigned listed = recvs_count(wr);
	const unsigned before = qp->recvs.count > listed ? qp->recvs.count - listed : 0;

	if (!aw_vary_is_on())
		return UINT_MAX;
	return qp->cap.max_recv_wr > before ? qp->cap.max_recv_wr - before : 0;
}

int aw_op_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	struct ibv_recv_wr *bad = wr;
	struct recv_cut cut;
	struct aw_context_shadow *device;
	struct aw_qp_shadow *shadow;
	int err;

	aw_inside_enter();
	device = aw_ops_get(qp->context);
	shadow = aw_qp_get(qp);
	if (!shadow || !aw_object_enter(&shadow->object, false)) {
		err = device->ops.post_recv(qp, wr, &bad);
	} else {
		aw_post_recv_begin(shadow, wr);
		aw_vary_pause(AW_VARY_POST);
		cut = recvs_cut("ibv_post_recv", wr, recvs_room(shadow, wr));
		err = !cut.stop || cut.last ? device->ops.post_recv(qp, wr, &bad) : 0;
		err = recvs_join(&cut, err, &bad);
		if (err)
			aw_failure_explain_recv(shadow, bad, err);
		aw_post_recv_end(shadow, err ? bad : NULL);
	}
	if (err && bad_wr)
		*bad_wr = bad;
	if (shadow)
		aw_object_leave(&shadow->object);
	aw_object_put(shadow ? &shadow->object : NULL);
	aw_object_put(&device->object);
	aw_inside_leave();
	return err;
}

int aw_op_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	struct ibv_recv_wr *bad = wr;
	struct recv_cut cut;
	struct aw_context_shadow *device;
	struct aw_srq_shadow *shadow;
	int err;

	aw_inside_enter();
	device = aw_ops_get(srq->context);
	shadow = aw_srq_get(srq);
	if (!shadow || !aw_object_enter(&shadow->object, false)) {
		err = device->ops.post_srq_recv(srq, wr, &bad);
	} else {
		aw_post_srq_begin(shadow, wr);
		aw_vary_pause(AW_VARY_POST);
		cut = recvs_cut("ibv_post_srq_recv", wr, UINT_MAX);
		err = !cut.stop || cut.last ? device->ops.post_srq_recv(srq, wr, &bad) : 0;
		err = recvs_join(&cut, err, &bad);
		if (err)
			aw_failure_explain_srq_recv(shadow, bad, err);
		aw_post_srq_end(shadow, err ? bad : NULL);
	}
	if (err && bad_wr)
		*bad_wr = bad;
	if (shadow)
		aw_object_leave(&shadow->object);
	aw_object_put(shadow ? &shadow->object : NULL);
	aw_object_put(&device->object);
	aw_inside_leave();
	return err;
}
