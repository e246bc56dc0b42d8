// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Why a call of verbs or rdma_cm failed, in words: "num_sge 3, but QP 0x12 was created with max_send_sge 1". Pure: the
// hooks pass what the program passed and what the shadow objects know.
#ifndef CHECK_EXPLAIN_EXPLAIN_H
#define CHECK_EXPLAIN_EXPLAIN_H

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AW_EXPLAIN_MAX 320 /* bytes of the longest reason, with its 0 */

/*
 * Each function writes the reason of the failure err (an errno number) of the call that its name says, in one line without
 * the call's name. A reason that the arguments, compared with the limits, prove comes alone. Otherwise the reason begins with err's
 * name and gives the usual causes, the most likely first. Where nothing better is known it is strerror's.
 *
 * A device or port attribute that is not known is a NULL pointer.
 */
void aw_explain_errno(const char *call, int err, char why[AW_EXPLAIN_MAX]);
void aw_explain_create_qp(const struct ibv_qp_init_attr *attr, const struct ibv_device_attr *device,
			  int err, char why[AW_EXPLAIN_MAX]);
/* pd: the argument; NULL: the id's own. */
void aw_explain_rdma_create_qp(const struct rdma_cm_id *id, const struct ibv_pd *pd,
			       const struct ibv_qp_init_attr *attr,
			       const struct ibv_device_attr *device, int err,
			       char why[AW_EXPLAIN_MAX]);
void aw_explain_create_cq(int cqe, int comp_vector, const struct ibv_context *context,
			  const struct ibv_device_attr *device, int err, char why[AW_EXPLAIN_MAX]);
void aw_explain_create_srq(const struct ibv_srq_attr *attr, const struct ibv_device_attr *device,
			   int err, char why[AW_EXPLAIN_MAX]);
void aw_explain_reg_mr(const void *addr, size_t length, unsigned access,
		       const struct ibv_device_attr *device, int err, char why[AW_EXPLAIN_MAX]);
/*
 * Adds RLIMIT_MEMLOCK to the reason of a failed create or registration, if err is ENOMEM and the limit, in bytes, is not
 * UINT64_MAX (RLIM_INFINITY).
 */
void aw_explain_memlock(uint64_t limit, int err, char why[AW_EXPLAIN_MAX]);

/* A QP at ibv_modify_qp. */
struct aw_explain_qp {
	const char *object; /* "QP 0x12" */
	enum ibv_qp_type type;
	enum ibv_qp_state state;
	bool is_iwarp; /* the device's transport is IBV_TRANSPORT_IWARP */
	uint8_t port_num; /* of the move to INIT; 0: not known */
	const struct ibv_device_attr *device;
	const struct ibv_port_attr *port; /* of that port */
};
void aw_explain_modify_qp(const struct aw_explain_qp *qp, const struct ibv_qp_attr *attr, int mask,
			  int err, char why[AW_EXPLAIN_MAX]);
/* port: that of attr->port_num; ports: how many the device has, 0 where it is not known. */
void aw_explain_create_ah(const struct ibv_ah_attr *attr, const struct ibv_port_attr *port,
			  unsigned ports, int err, char why[AW_EXPLAIN_MAX]);

/* A post's QP or SRQ. */
struct aw_explain_queue {
	const char *object; /* "QP 0x12" */
	enum ibv_qp_type type;
	enum ibv_qp_state state; /* of a QP */
	struct ibv_qp_cap cap; /* as the QP was created; of an SRQ max_recv_wr and max_recv_sge */
	bool is_uncounted; /* nobody has counted those under way: under_way and signaled are 0 */
	unsigned under_way; /* WRs of this queue without a completion that the program has polled */
	unsigned signaled; /* of those, the ones that make a completion */
	bool is_srq; /* the queue is an SRQ: type and state mean nothing */
	bool has_srq; /* the QP takes its receives from an SRQ */
};
void aw_explain_post_send(const struct aw_explain_queue *queue, const struct ibv_send_wr *bad,
			  int err, char why[AW_EXPLAIN_MAX]);
void aw_explain_post_recv(const struct aw_explain_queue *queue, const struct ibv_recv_wr *bad,
			  int err, char why[AW_EXPLAIN_MAX]);
/* mr_access: of bind->bind_info.mr, as it was registered; UINT_MAX where it is not known. */
void aw_explain_bind_mw(const struct aw_explain_queue *queue, const struct ibv_mw *mw,
			const struct ibv_mw_bind *bind, unsigned mr_access, int err,
			char why[AW_EXPLAIN_MAX]);

/* The objects that use the one which a call should destroy, as far as they are known. */
struct aw_explain_users {
	unsigned qps, cqs, srqs, mrs, mws, ahs;
	unsigned groups; /* multicast groups that the QP is in */
	unsigned imports; /* parent domains and other objects */
};
void aw_explain_destroy(const char *call, const struct aw_explain_users *users, int err,
			char why[AW_EXPLAIN_MAX]);

/* The meaning of a completion's status, and its usual cause. posted: the WR's kind; IBV_WC_RECV for a receive. */
void aw_explain_status(enum ibv_wc_status status, enum ibv_wc_opcode posted,
		       char why[AW_EXPLAIN_MAX]);
/* An event of rdma_cm that tells a failure: event and its status. */
void aw_explain_cm_event(enum rdma_cm_event_type event, int status, char why[AW_EXPLAIN_MAX]);
/* rdma_connect and rdma_accept: call is the name. */
void aw_explain_connect(const char *call, const struct rdma_conn_param *param,
			const struct ibv_device_attr *device, int err, char why[AW_EXPLAIN_MAX]);

#define AW_EXPLAIN_LINES 32 /* different lines within a second that are known again */

/* The lines that were written lately. All zeros at first. */
struct aw_explain_lines {
	struct {
		uint64_t hash; /* 0: unused */
		int64_t due_ns; /* before it an equal line is counted only */
		unsigned held;
	} at[AW_EXPLAIN_LINES];
};

/*
 * True if the line is to be written at now_ns: no equal one was within the second before. *held is then how many equal
 * ones were not written since.
 */
bool aw_explain_line_due(struct aw_explain_lines *lines, const char *line, int64_t now_ns,
			 unsigned *held);

/* Writes "anywarp check: CALL: WHY" to standard error, once for the same text within a second. Keeps errno. */
void aw_explain_log(const char *call, const char *why);

#endif
