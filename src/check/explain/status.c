// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The statuses of completions: what each means, and what usually causes it.
#include "check/explain/words.h"

/* of_receive: NULL where a receive has no other causes. */
struct status_text {
	const char *of_send, *of_receive;
};

static const struct status_text texts[] = {
	[IBV_WC_SUCCESS] = { "success", NULL },
	[IBV_WC_LOC_LEN_ERR] = {
		"the message is longer than the port's max_msg_sz or, from a UD QP, than its MTU",
		"the message is longer than the SGEs of the receive that it came to: the peer sends more than this end expects, or receives of several sizes were posted in another order",
	},
	[IBV_WC_LOC_QP_OP_ERR] = {
		"the QP cannot do this work request: usually an opcode, a flag or an SGE count that its device does not have, a window or key that is not to be invalidated, or more Reads than max_rd_atomic",
		"the QP cannot take this receive: usually its SGEs are damaged",
	},
	[IBV_WC_LOC_EEC_OP_ERR] = { "an EE context, which no device has any more, is at fault", NULL },
	[IBV_WC_LOC_PROT_ERR] = {
		"an SGE is not in an MR of the QP's PD: usually a wrong lkey, a range beyond the MR, an MR that was deregistered before the completion, or a Read's sink without IBV_ACCESS_LOCAL_WRITE",
		"an SGE of the receive is not in an MR of the QP's PD: usually a wrong lkey, a range beyond the MR, an MR that was deregistered, or one without IBV_ACCESS_LOCAL_WRITE",
	},
	[IBV_WC_WR_FLUSH_ERR] = {
		"the QP went to ERR before this work request was done: the first completion of the QP with another status has the cause, at this end or at the peer; where there is none, a disconnect or ibv_modify_qp to ERR was first",
		"the QP went to ERR before a message came to this receive: a completion of the QP with another status has the cause; where there is none, the peer disconnected, or this end did",
	},
	[IBV_WC_MW_BIND_ERR] = {
		"the window was not bound: usually the MR lacks IBV_ACCESS_MW_BIND, or IBV_ACCESS_LOCAL_WRITE for a window that is written, the range is not in the MR, or the PDs differ",
		NULL,
	},
	[IBV_WC_BAD_RESP_ERR] = {
		"the responder's answer has an opcode that was not due: usually the two ends' QPs are not connected to each other (dest_qp_num, PSN), or the device is at fault",
		NULL,
	},
	[IBV_WC_LOC_ACCESS_ERR] = {
		"the peer's operation was refused by this end's memory: usually a receive or sink without IBV_ACCESS_LOCAL_WRITE",
		NULL,
	},
	[IBV_WC_REM_INV_REQ_ERR] = {
		"the responder found the request invalid: usually its receive is too small for the Send, its qp_access_flags lack the operation (IBV_ACCESS_REMOTE_WRITE, ..._READ, ..._ATOMIC), or max_rd_atomic is above its max_dest_rd_atomic",
		NULL,
	},
	[IBV_WC_REM_ACCESS_ERR] = {
		"the responder's memory refused it: usually a wrong or old rkey, a range beyond the MR, an MR that was deregistered or is of another PD or device than the QP, or one without the IBV_ACCESS_REMOTE_ flag; or the rkey or address came in the wrong byte order",
		NULL,
	},
	[IBV_WC_REM_OP_ERR] = {
		"the responder could not complete the operation: usually its receive's SGEs are at fault (its own completion has LOC_PROT_ERR or LOC_LEN_ERR), or its QP went to ERR meanwhile",
		NULL,
	},
	[IBV_WC_RETRY_EXC_ERR] = {
		"the peer did not acknowledge in retry_cnt + 1 tries of timeout each: usually its program has ended or destroyed the QP, its QP is not in RTR, dest_qp_num, PSN or GID are wrong, the network loses everything (cable, firewall, VLAN, MTU, PFC), or timeout is too short for its congestion",
		NULL,
	},
	[IBV_WC_RNR_RETRY_EXC_ERR] = {
		"the peer had no receive posted for this message, rnr_retry times: post receives before the peer sends, and again behind each completion; rnr_retry 7 waits without end",
		NULL,
	},
	[IBV_WC_LOC_RDD_VIOL_ERR] = { "reliable datagrams: the RDDs differ", NULL },
	[IBV_WC_REM_INV_RD_REQ_ERR] = { "reliable datagrams: the responder found the request invalid", NULL },
	[IBV_WC_REM_ABORT_ERR] = {
		"the responder aborted the operation: it was reset, or its program or device ended the message in its middle",
		NULL,
	},
	[IBV_WC_INV_EECN_ERR] = { "reliable datagrams: an invalid EE context number", NULL },
	[IBV_WC_INV_EEC_STATE_ERR] = { "reliable datagrams: an EE context in the wrong state", NULL },
	[IBV_WC_FATAL_ERR] = {
		"the device failed (IBV_EVENT_DEVICE_FATAL): the kernel log has more, and the context has to be opened again",
		NULL,
	},
	[IBV_WC_RESP_TIMEOUT_ERR] = {
		"the responder gave no answer within its time: its device or host is overloaded or gone",
		NULL,
	},
	[IBV_WC_GENERAL_ERR] = {
		"an error that no other status fits: usually the transport broke (over iWARP the TCP connection was reset, or the peer sent a Terminate), or the device failed; vendor_err and the kernel log may have more",
		NULL,
	},
	[IBV_WC_TM_ERR] = { "tag matching failed: usually the tag's entry is gone already", NULL },
	[IBV_WC_TM_RNDV_INCOMPLETE] = {
		"tag matching: the program has to finish the rendezvous itself",
		NULL,
	},
};

void aw_explain_status(enum ibv_wc_status status, enum ibv_wc_opcode posted,
		       char why[AW_EXPLAIN_MAX])
{
	const struct status_text *text = status < AW_ARRAY_LEN(texts) ? &texts[status] : NULL;

	if (!text || !text->of_send)
		aw_reason_set(why, "status %u, which verbs.h does not have", (unsigned)status);
	else
		aw_reason_set(why, "%s",
			      posted & IBV_WC_RECV && text->of_receive ? text->of_receive
								       : text->of_send);
}
