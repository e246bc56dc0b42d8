// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Why a call of verbs or rdma_cm failed, in words: "num_sge 3, but QP 0x12 was created with max_send_sge 1". Pure: the
// hooks pass what the program passed and what the shadow objects know.
#ifndef CHECK_EXPLAIN_EXPLAIN_H
#define CHECK_EXPLAIN_EXPLAIN_H

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stddef.h>

#define AW_EXPLAIN_MAX 320 /* bytes of the longest reason, with its 0 */

/*
 * Each writes the reason of the failure err (an errno number) of the call that its name says, without the call's name. Where
 * nothing better is known the reason is strerror's, with what the man page says of that number for this call.
 */
void aw_explain_errno(const char *call, int err, char why[AW_EXPLAIN_MAX]);
void aw_explain_create_qp(const struct ibv_qp_init_attr *attr, const struct ibv_device_attr *device,
			  int err, char why[AW_EXPLAIN_MAX]);
void aw_explain_create_cq(int cqe, int comp_vector, const struct ibv_context *context,
			  const struct ibv_device_attr *device, int err, char why[AW_EXPLAIN_MAX]);
void aw_explain_reg_mr(const void *addr, size_t length, unsigned access,
		       const struct ibv_device_attr *device, int err, char why[AW_EXPLAIN_MAX]);
/* state: the QP's at the call; attr, mask: what was asked for. */
void aw_explain_modify_qp(const struct ibv_qp *qp, enum ibv_qp_state state,
			  const struct ibv_qp_attr *attr, int mask, int err,
			  char why[AW_EXPLAIN_MAX]);

/* What a post knows of its QP or SRQ. */
struct aw_explain_queue {
	const char *object; /* "QP 0x12" */
	enum ibv_qp_type type;
	enum ibv_qp_state state; /* of a QP */
	struct ibv_qp_cap cap; /* as the QP was created; of an SRQ max_recv_wr and max_recv_sge */
	unsigned under_way; /* WRs of this queue without a completion that the program has polled */
	unsigned signaled; /* of those, the ones that make a completion */
};
void aw_explain_post_send(const struct aw_explain_queue *queue, const struct ibv_send_wr *bad,
			  int err, char why[AW_EXPLAIN_MAX]);
void aw_explain_post_recv(const struct aw_explain_queue *queue, const struct ibv_recv_wr *bad,
			  int err, char why[AW_EXPLAIN_MAX]);
/* What a completion's status means, and what usually causes it. */
void aw_explain_status(enum ibv_wc_status status, enum ibv_wc_opcode posted,
		       char why[AW_EXPLAIN_MAX]);
/* An event of rdma_cm that tells a failure: event and its status. */
void aw_explain_cm_event(enum rdma_cm_event_type event, int status, char why[AW_EXPLAIN_MAX]);

/* Logs "CALL: WHY", once for the same text within a second, where --explain or a check is on. Keeps errno. */
void aw_explain_log(const char *call, const char *why);

#endif
