// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Why a CQ, an SRQ or a QP was not created.
#include "check/explain/words.h"

#include <errno.h>

/* Programs open the device by themselves, and take an id's for the same. */
#define FOREIGN                                                                            \
	"the %s is of another context than the id: make it of id->verbs, not of one that " \
	"ibv_open_device gave"

/* One number that was asked for, and the device's bound of it. */
struct bound {
	const char *asked;
	uint32_t value;
	const char *limit;
	int max; /* 0: the device gives none */
};

static bool explain_bounds(const struct bound *bounds, size_t count, char why[AW_EXPLAIN_MAX])
{
	for (size_t i = 0; i < count; i++) {
		if (bounds[i].max <= 0 || bounds[i].value <= (uint32_t)bounds[i].max)
			continue;
		aw_reason_set(why, "%s %u, but the device's %s is %d", bounds[i].asked,
			      bounds[i].value, bounds[i].limit, bounds[i].max);
		return true;
	}
	return false;
}

static bool explain_caps(const struct ibv_qp_init_attr *attr, const struct ibv_device_attr *device,
			 char why[AW_EXPLAIN_MAX])
{
	const struct ibv_qp_cap *cap = &attr->cap;

	if (!device)
		return false;
	const struct bound bounds[] = {
		{ "max_send_wr", cap->max_send_wr, "max_qp_wr", device->max_qp_wr },
		{ "max_send_sge", cap->max_send_sge, "max_sge", device->max_sge },
		{ "max_recv_wr", cap->max_recv_wr, "max_qp_wr", device->max_qp_wr },
		{ "max_recv_sge", cap->max_recv_sge, "max_sge", device->max_sge },
	};

	/* With an SRQ the sizes of the receive queue are ignored. */
	return explain_bounds(bounds, attr->srq ? 2 : AW_ARRAY_LEN(bounds), why);
}

static void guess_qp(const char *call, const struct ibv_qp_init_attr *attr, int err,
		     char why[AW_EXPLAIN_MAX])
{
	const struct ibv_qp_cap *cap = &attr->cap;

	if (err == EOPNOTSUPP || err == ENOSYS)
		aw_reason_guess(
			why, err,
			"the device or its provider has no %s QPs (iWARP has RC alone), or not with the attributes asked for",
			aw_qp_type_name(attr->qp_type));
	else if (err == EINVAL && attr->srq && cap->max_recv_wr)
		aw_reason_guess(
			why, err,
			"most likely max_recv_wr %u with an SRQ: it has no meaning there, but some providers check it, so give 0; or the PD or SRQ is of another context than the CQs",
			cap->max_recv_wr);
	else if (err == EINVAL && cap->max_inline_data)
		aw_reason_guess(
			why, err,
			"most likely max_inline_data %u is more than the device takes, which no attribute tells: try less; or %sthe PD is of another context than the CQs",
			cap->max_inline_data,
			attr->qp_type == IBV_QPT_RC ? ""
						    : "the device has no QPs of this type, or ");
	else if (err == EINVAL && !cap->max_send_wr)
		aw_reason_guess(
			why, err,
			"most likely max_send_wr 0: some devices (siw) want 1 at least; or the PD is of another context than the CQs");
	else if (err == ENOMEM)
		aw_reason_guess(
			why, err,
			"most likely the queues are too large as a whole for the device: max_send_wr %u of %u SGEs and %u inline bytes, max_recv_wr %u of %u SGEs; or the device has no more QPs (the kernel log may say which of its limits), or memory is used up",
			cap->max_send_wr, cap->max_send_sge, cap->max_inline_data, cap->max_recv_wr,
			cap->max_recv_sge);
	else if (err == EPERM)
		aw_reason_guess(
			why, err,
			"a raw packet QP needs CAP_NET_RAW; other types are forbidden by the device's owner (rdma system, a cgroup)");
	else
		aw_explain_errno(call, err, why);
}

void aw_explain_create_qp(const struct ibv_qp_init_attr *attr, const struct ibv_device_attr *device,
			  int err, char why[AW_EXPLAIN_MAX])
{
	bool xrc = attr->qp_type == IBV_QPT_XRC_SEND || attr->qp_type == IBV_QPT_XRC_RECV;

	if (!attr->send_cq && !xrc)
		aw_reason_set(why, "send_cq is NULL");
	else if (!attr->recv_cq && !xrc)
		aw_reason_set(
			why,
			"recv_cq is NULL; a QP that receives nothing needs one as well, which may be send_cq");
	else if (attr->send_cq && attr->recv_cq && attr->send_cq->context != attr->recv_cq->context)
		aw_reason_set(why,
			      "send_cq and recv_cq belong to different contexts (ibv_open_device)");
	else if (attr->srq && attr->send_cq && attr->srq->context != attr->send_cq->context)
		aw_reason_set(why,
			      "srq and send_cq belong to different contexts (ibv_open_device)");
	else if (attr->srq && (attr->qp_type == IBV_QPT_UC || attr->qp_type == IBV_QPT_RAW_PACKET))
		aw_reason_set(why, "a %s QP cannot have an SRQ: RC and UD QPs can",
			      aw_qp_type_name(attr->qp_type));
	else if (!explain_caps(attr, device, why))
		guess_qp("ibv_create_qp", attr, err, why);
}

void aw_explain_rdma_create_qp(const struct rdma_cm_id *id, const struct ibv_pd *pd,
			       const struct ibv_qp_init_attr *attr,
			       const struct ibv_device_attr *device, int err,
			       char why[AW_EXPLAIN_MAX])
{
	const struct ibv_cq *cq = attr->send_cq ? attr->send_cq : attr->recv_cq;

	if (!id->verbs)
		aw_reason_set(
			why,
			"the id has no device yet (id->verbs is NULL): bind it to an address, or resolve one and wait for RDMA_CM_EVENT_ADDR_RESOLVED");
	else if (id->qp)
		aw_reason_set(why, "the id has a QP already: QP 0x%x", id->qp->qp_num);
	else if (attr->qp_type != id->qp_type)
		aw_reason_set(why, "qp_type is %s, but the id's port space has %s QPs",
			      aw_qp_type_name(attr->qp_type), aw_qp_type_name(id->qp_type));
	else if (pd && pd->context != id->verbs)
		aw_reason_set(why, FOREIGN, "PD");
	else if (cq && cq->context != id->verbs)
		aw_reason_set(why, FOREIGN, "CQ");
	else if (attr->srq && attr->srq->context != id->verbs)
		aw_reason_set(why, FOREIGN, "SRQ");
	else if (!explain_caps(attr, device, why))
		guess_qp("rdma_create_qp", attr, err, why);
}

void aw_explain_create_cq(int cqe, int comp_vector, const struct ibv_context *context,
			  const struct ibv_device_attr *device, int err, char why[AW_EXPLAIN_MAX])
{
	int vectors = context ? context->num_comp_vectors : 0;

	if (cqe < 1)
		aw_reason_set(why, "cqe %d: a CQ has one CQE at least", cqe);
	else if (device && device->max_cqe > 0 && cqe > device->max_cqe)
		aw_reason_set(why, "cqe %d, but the device's max_cqe is %d", cqe, device->max_cqe);
	else if (comp_vector < 0 || (vectors > 0 && comp_vector >= vectors))
		aw_reason_set(why, "comp_vector %d, but the device has num_comp_vectors %d, from 0",
			      comp_vector, vectors);
	else if (err == ENOMEM)
		aw_reason_guess(
			why, err,
			"most likely %d CQEs are more than the process may lock; or the device has max_cq CQs already, or memory is used up",
			cqe);
	else
		aw_explain_errno("ibv_create_cq", err, why);
}

void aw_explain_create_srq(const struct ibv_srq_attr *attr, const struct ibv_device_attr *device,
			   int err, char why[AW_EXPLAIN_MAX])
{
	if (!attr->max_wr) {
		aw_reason_set(why, "max_wr 0: an SRQ holds one receive at least");
		return;
	}
	if (device && !device->max_srq) {
		aw_reason_set(why, "the device has no SRQs (max_srq 0)");
		return;
	}
	if (device) {
		const struct bound bounds[] = {
			{ "max_wr", attr->max_wr, "max_srq_wr", device->max_srq_wr },
			{ "max_sge", attr->max_sge, "max_srq_sge", device->max_srq_sge },
		};

		if (explain_bounds(bounds, AW_ARRAY_LEN(bounds), why))
			return;
	}
	if (attr->srq_limit > attr->max_wr)
		aw_reason_set(why, "srq_limit %u is above max_wr %u", attr->srq_limit,
			      attr->max_wr);
	else if (err == ENOMEM)
		aw_reason_guess(
			why, err,
			"most likely max_wr %u of %u SGEs is too large for the device or for what the process may lock; or the device has max_srq SRQs already",
			attr->max_wr, attr->max_sge);
	else
		aw_explain_errno("ibv_create_srq", err, why);
}
