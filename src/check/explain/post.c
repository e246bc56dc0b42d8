// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Why a post failed. Providers say ENOMEM or EINVAL for the same fault, so what can be compared is compared whatever the error.
#include "check/explain/words.h"

#include <errno.h>

#define MESSAGE_MAX 0x80000000u /* bytes, of every transport */
#define ATOMIC_LEN 8
#define QPN_MAX 0xffffffu

#define TYPE(type) (1u << (type))
#define CONNECTED (TYPE(IBV_QPT_RC) | TYPE(IBV_QPT_UC) | TYPE(IBV_QPT_XRC_SEND))
#define RELIABLE (TYPE(IBV_QPT_RC) | TYPE(IBV_QPT_XRC_SEND))

/* ibv_post_send(3): which types of QP have the opcode, an int since later releases of verbs.h have more of them. */
static unsigned types_of(int opcode)
{
	switch (opcode) {
	case IBV_WR_SEND:
		return CONNECTED | TYPE(IBV_QPT_UD) | TYPE(IBV_QPT_RAW_PACKET);
	case IBV_WR_SEND_WITH_IMM:
		return CONNECTED | TYPE(IBV_QPT_UD);
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
	case IBV_WR_LOCAL_INV:
	case IBV_WR_BIND_MW:
	case IBV_WR_SEND_WITH_INV:
		return CONNECTED;
	case IBV_WR_RDMA_READ:
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return RELIABLE;
	case IBV_WR_TSO:
		return TYPE(IBV_QPT_UD) | TYPE(IBV_QPT_RAW_PACKET);
	case IBV_WR_ATOMIC_WRITE:
	case AW_NEWER_WR_FLUSH:
		return RELIABLE;
	}
	return ~0u; /* a driver's own, or of a newer verbs.h */
}

static bool explain_send_bytes(const struct aw_explain_queue *queue, const struct ibv_send_wr *wr,
			       char why[AW_EXPLAIN_MAX])
{
	enum ibv_wr_opcode opcode = wr->opcode;
	bool is_one_way = opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM ||
			  opcode == IBV_WR_SEND_WITH_INV || opcode == IBV_WR_RDMA_WRITE ||
			  opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
	bool is_atomic = opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
			 opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
	bool is_inline = wr->send_flags & IBV_SEND_INLINE;
	unsigned long long bytes = 0;

	for (int i = 0; wr->sg_list && i < wr->num_sge; i++)
		bytes += wr->sg_list[i].length;
	if (is_inline && !is_one_way && opcode != IBV_WR_TSO && opcode != IBV_WR_ATOMIC_WRITE)
		aw_reason_set(
			why,
			"IBV_SEND_INLINE with %s: Sends and Writes alone carry bytes from the work request",
			aw_opcode_name(opcode));
	else if (is_inline && bytes > queue->cap.max_inline_data)
		aw_reason_set(why, "%llu inline bytes, but %s was created with max_inline_data %u",
			      bytes, queue->object, queue->cap.max_inline_data);
	else if (is_atomic && bytes != ATOMIC_LEN)
		aw_reason_set(why, "an atomic operation returns 8 bytes, but its SGEs have %llu",
			      bytes);
	else if (opcode == IBV_WR_ATOMIC_WRITE && bytes != ATOMIC_LEN)
		aw_reason_set(why, "an atomic write has 8 bytes, but its SGEs have %llu", bytes);
	else if (bytes > MESSAGE_MAX)
		aw_reason_set(why, "%llu bytes, but a message has 2147483648 (2 GiB) at most",
			      bytes);
	else
		return false;
	return true;
}

static void guess_send(const struct aw_explain_queue *queue, const struct ibv_send_wr *wr, int err,
		       char why[AW_EXPLAIN_MAX])
{
	const char *opcode = aw_opcode_name(wr->opcode);

	if (err == ENOMEM && queue->is_uncounted)
		aw_reason_guess(
			why, err,
			"most likely the SQ is full, of max_send_wr %u: completions free its room when they are polled, and one that is signaled frees those before it; some devices count a work request with many SGEs or inline bytes as several",
			queue->cap.max_send_wr);
	else if (err == ENOMEM)
		aw_reason_guess(
			why, err,
			"most likely the SQ is full: completions free its room when they are polled (%u of %u work requests are known to be under way); some devices count a work request with many SGEs or inline bytes as several",
			queue->under_way, queue->cap.max_send_wr);
	else if (err == EOPNOTSUPP || err == ENOSYS)
		aw_reason_guess(
			why, err,
			"the device has no %s; over iWARP immediate data and atomics need both ends' agreement",
			opcode);
	else if (err == EINVAL && queue->state == IBV_QPS_ERR)
		aw_reason_guess(
			why, err,
			"%s is in ERR: its first failed completion says why; after it only destroy or RESET help",
			queue->object);
	else if (err == EINVAL)
		aw_reason_guess(
			why, err,
			"most likely the device does not have %s or one of send_flags 0x%x; or the QP is not connected (any more), or a key or address handle is of another PD",
			opcode, wr->send_flags);
	else
		aw_explain_errno("ibv_post_send", err, why);
}

void aw_explain_post_send(const struct aw_explain_queue *queue, const struct ibv_send_wr *bad,
			  int err, char why[AW_EXPLAIN_MAX])
{
	bool is_datagram = queue->type == IBV_QPT_UD;
	enum ibv_qp_state state = queue->state;

	if (state == IBV_QPS_RESET || state == IBV_QPS_INIT || state == IBV_QPS_RTR)
		aw_reason_set(why, "the state is %s; posting a send needs RTS",
			      aw_state_name(state));
	else if (queue->type < 32 && !(types_of((int)bad->opcode) & TYPE(queue->type)))
		aw_reason_set(why, "%s is no operation of a %s QP", aw_opcode_name(bad->opcode),
			      aw_qp_type_name(queue->type));
	else if (bad->num_sge < 0 || (uint32_t)bad->num_sge > queue->cap.max_send_sge)
		aw_reason_set(why, "num_sge %d, but %s was created with max_send_sge %u",
			      bad->num_sge, queue->object, queue->cap.max_send_sge);
	else if (bad->num_sge > 0 && !bad->sg_list)
		aw_reason_set(why, "num_sge %d, but sg_list is NULL", bad->num_sge);
	else if (explain_send_bytes(queue, bad, why))
		return;
	else if (is_datagram && !bad->wr.ud.ah)
		aw_reason_set(why, "wr.ud.ah is NULL: each send of a UD QP names its destination");
	else if (is_datagram && bad->wr.ud.remote_qpn > QPN_MAX)
		aw_reason_set(why, "wr.ud.remote_qpn 0x%x has more than 24 bits",
			      bad->wr.ud.remote_qpn);
	else if (queue->cap.max_send_wr && queue->under_way >= queue->cap.max_send_wr)
		aw_reason_set(
			why,
			"the SQ is full: %u of %u work requests have no completion that was polled, %u of them are signaled",
			queue->under_way, queue->cap.max_send_wr, queue->signaled);
	else
		guess_send(queue, bad, err, why);
}

static bool explain_receive(const struct aw_explain_queue *queue, const struct ibv_recv_wr *wr,
			    char why[AW_EXPLAIN_MAX])
{
	const struct ibv_qp_cap *cap = &queue->cap;

	if (!queue->is_srq && queue->has_srq)
		aw_reason_set(why,
			      "%s takes its receives from an SRQ: post them by ibv_post_srq_recv",
			      queue->object);
	else if (!queue->is_srq && queue->state == IBV_QPS_RESET)
		aw_reason_set(why, "the state is RESET; posting a receive needs INIT or later");
	else if (!queue->is_srq && !cap->max_recv_wr)
		aw_reason_set(why, "%s has no RQ: it was created with max_recv_wr 0",
			      queue->object);
	else if (wr->num_sge < 0 || (uint32_t)wr->num_sge > cap->max_recv_sge)
		aw_reason_set(why, "num_sge %d, but %s was created with %s %u", wr->num_sge,
			      queue->object, queue->is_srq ? "max_sge" : "max_recv_sge",
			      cap->max_recv_sge);
	else if (wr->num_sge > 0 && !wr->sg_list)
		aw_reason_set(why, "num_sge %d, but sg_list is NULL", wr->num_sge);
	else if (cap->max_recv_wr && queue->under_way >= cap->max_recv_wr)
		aw_reason_set(
			why, "the %s is full: %u of %u receives have no completion that was polled",
			queue->is_srq ? "SRQ" : "RQ", queue->under_way, cap->max_recv_wr);
	else
		return false;
	return true;
}

void aw_explain_post_recv(const struct aw_explain_queue *queue, const struct ibv_recv_wr *bad,
			  int err, char why[AW_EXPLAIN_MAX])
{
	if (explain_receive(queue, bad, why))
		return;
	if (err == ENOMEM && queue->is_uncounted)
		aw_reason_guess(
			why, err,
			"most likely the %s is full, of %u receives: a completion that is polled frees the room of its receive",
			queue->is_srq ? "SRQ" : "RQ", queue->cap.max_recv_wr);
	else if (err == ENOMEM)
		aw_reason_guess(
			why, err,
			"most likely the %s is full: a completion that is polled frees the room of its receive (%u of %u are known to be posted)",
			queue->is_srq ? "SRQ" : "RQ", queue->under_way, queue->cap.max_recv_wr);
	else if (err == EINVAL && !queue->is_srq && queue->state == IBV_QPS_ERR)
		aw_reason_guess(why, err, "%s is in ERR, where its receives were flushed",
				queue->object);
	else
		aw_explain_errno(queue->is_srq ? "ibv_post_srq_recv" : "ibv_post_recv", err, why);
}
