// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The functions that librdmacm.so.1 uses of libibverbs.so.1 beyond the public verbs. They are
// exported at node ANYWARP_PRIVATE_1, for the library of the same build only. None of them connects
// a QP: rdma_cm gives the QP's aw_uqp a socket, and ibv_query_qp shows the result.
#ifndef VERBS_PRIVATE_H
#define VERBS_PRIVATE_H

#include "net/qp/uqp.h"

#include <infiniband/verbs.h>

/*
 * The one context that every rdma_cm_id of this process shares, opened on the first call. 0, or an
 * errno. It stays open while a reference is held or an object made in it lives, and keeps its
 * address so long. rdma_get_devices must never give its reference back: programs go on using
 * contexts after rdma_free_devices. In the child of a fork the first call opens a new one.
 */
int avb_context_shared_get(struct ibv_context **context);

/* Called once for each get that succeeded; context is the one that the get returned. */
void avb_context_shared_put(struct ibv_context *context);

/* The QP under a verbs QP, for the verbs QP's life. Its AW_UQP_CM listener is rdma_cm's. */
struct aw_uqp *avb_qp_uqp(struct ibv_qp *qp);

/*
 * Writes the QP's current state to qp->state, which programs may read. Called by rdma_cm when it
 * has attached, disconnected or reset the QP; ibv_modify_qp does so by itself.
 */
void avb_qp_state_sync(struct ibv_qp *qp);

/* Sets the timeout that ibv_query_qp shows until a reset; TCP has its own. */
void avb_qp_timeout_show(struct ibv_qp *qp, uint8_t timeout);

/*
 * As ibv_attach_mcast and ibv_detach_mcast, but on one interface; 0: on all that have an address.
 */
int avb_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint32_t ifindex);
int avb_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint32_t ifindex);

/* Takes the QP, of an id of the UDP port space, out of every group, so that it can be destroyed. */
void avb_leave_mcast(struct ibv_qp *qp);

#endif
