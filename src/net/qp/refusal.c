// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "net/qp/refusal.h"

#include "base/log.h"
#include "net/mr/mrtab.h"

#include <inttypes.h>
#include <stdio.h>

#define WHY_MAX 160

struct words {
	const char *request, *right;
};

static struct words words_of(uint32_t access)
{
	if (access == AW_ACCESS_REMOTE_WRITE)
		return (struct words){ "write", "IBV_ACCESS_REMOTE_WRITE" };
	if (access == AW_ACCESS_REMOTE_READ)
		return (struct words){ "read", "IBV_ACCESS_REMOTE_READ" };
	if (access == AW_ACCESS_FLUSH)
		return (struct words){ "flush",
				       "IBV_ACCESS_FLUSH_GLOBAL or IBV_ACCESS_FLUSH_PERSISTENT" };
	if (access == AW_ACCESS_FLUSH_GLOBAL)
		return (struct words){ "flush", "IBV_ACCESS_FLUSH_GLOBAL" };
	if (access == AW_ACCESS_FLUSH_PERSISTENT)
		return (struct words){ "flush", "IBV_ACCESS_FLUSH_PERSISTENT" };
	return (struct words){ "atomic", "IBV_ACCESS_REMOTE_ATOMIC" };
}

/* A program that exchanges keys in network byte order may forget to turn one back. */
static void unknown_stag_explain(uint32_t stag, char why[WHY_MAX])
{
	const struct aw_mr *mr = aw_mr_get(__builtin_bswap32(stag));

	if (mr) {
		snprintf(why, WHY_MAX,
			 "no mr has this stag, but one has 0x%x: its bytes are in the other order",
			 mr->stag);
		aw_mr_put(mr);
	} else {
		snprintf(why, WHY_MAX, "no mr has this stag, or not any more");
	}
}

static void explain(const struct aw_uqp *qp, char why[WHY_MAX])
{
	const struct aw_access_refusal *refusal = &qp->core.refusal;
	const char *right = words_of(refusal->access).right;

	switch (refusal->cause) {
	case AW_REFUSAL_NONE:
		break;
	case AW_REFUSAL_STAG:
		unknown_stag_explain(refusal->stag, why);
		break;
	case AW_REFUSAL_PD:
		snprintf(why, WHY_MAX, "the mr is of another pd than %s",
			 qp->attr.xrcd ? "the srqs of the qp's xrc domain" : "the qp");
		break;
	case AW_REFUSAL_WINDOW:
		snprintf(why, WHY_MAX, "the memory window is bound to another qp");
		break;
	case AW_REFUSAL_MR_RIGHTS:
		snprintf(why, WHY_MAX, "the mr or window is without %s", right);
		break;
	case AW_REFUSAL_QP_RIGHTS:
		snprintf(why, WHY_MAX, "the qp's qp_access_flags are without %s", right);
		break;
	case AW_REFUSAL_BOUNDS:
		snprintf(why, WHY_MAX,
			 "the mr or window begins at 0x%" PRIx64 " and ends at 0x%" PRIx64,
			 refusal->start, refusal->start + refusal->size);
		break;
	case AW_REFUSAL_UNMAPPED:
		snprintf(why, WHY_MAX, "the memory of the mr is not mapped, or not writable");
		break;
	case AW_REFUSAL_UNALIGNED:
		snprintf(why, WHY_MAX, "the address of an atomic must be a multiple of 8");
		break;
	}
}

void aw_drop_log(struct aw_uqp *qp)
{
	const struct aw_rx_drop *drop = &qp->core.rx_drop;
	char why[WHY_MAX] = "it is longer than its receive";

	if (drop->count == 0 || drop->count / 2 < qp->drops_told)
		return;
	qp->drops_told = drop->count;
	if (drop->last == AW_E_DDP_NO_BUFFER)
		snprintf(why, WHY_MAX, "no receive is posted");
	else if (drop->last != AW_E_DDP_TOO_LONG)
		explain(qp, why);
	aw_log(AW_LOG_INFO, "qp 0x%x dropped a message of its peer, as uc qps do count %u cause %s",
	       qp->qpn, drop->count, why);
}

void aw_access_refusal_log(const struct aw_uqp *qp, uint32_t events)
{
	const struct aw_access_refusal *refusal = &qp->core.refusal;
	char why[WHY_MAX];

	if (!(events & (AW_UQP_ACCESS_ERR | AW_UQP_REQ_ERR)) || refusal->cause == AW_REFUSAL_NONE)
		return;
	explain(qp, why);
	aw_log(aw_log_has_room() ? AW_LOG_ERROR : AW_LOG_INFO,
	       "qp 0x%x refused the peer's %s stag 0x%x to 0x%" PRIx64 " length %" PRIu64
	       " cause %s",
	       qp->qpn, words_of(refusal->access).request, refusal->stag, refusal->to, refusal->len,
	       why);
}

void aw_srq_refusal_log(const struct aw_uqp *qp, uint32_t srqn)
{
	aw_log(aw_log_has_room() ? AW_LOG_ERROR : AW_LOG_INFO,
	       "qp 0x%x refused the peer's message for srq 0x%x: no srq of the qp's xrc domain has this number in this "
	       "process (a domain is not shared with other processes here)",
	       qp->qpn, srqn);
}
