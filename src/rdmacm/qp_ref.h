// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The QP that an id shows the program as id->qp. The program may destroy it in one thread while another is in a call on the same id,
// or takes one of its events. Of this library only these functions read or write the pointer (tools/check-owners).
#ifndef RDMACM_QP_REF_H
#define RDMACM_QP_REF_H

#include "rdmacm/id.h"

/*
 * The id's QP, which rdma_destroy_qp leaves alone until aw_cm_qp_put. NULL: the id has none, and nothing is to be put. Between the two
 * the caller runs no code of the program and waits for no other thread.
 */
struct ibv_qp *aw_cm_qp_get(struct aw_cm_id *cm) AW_EXCLUDES(cm->lock);
void aw_cm_qp_put(struct aw_cm_id *cm) AW_EXCLUDES(cm->lock);

/* As aw_cm_qp_get, for as long as the caller holds the lock. */
struct ibv_qp *aw_cm_qp_locked(const struct aw_cm_id *cm) AW_REQUIRES(cm->lock);

bool aw_cm_qp_exists(struct aw_cm_id *cm) AW_EXCLUDES(cm->lock);
void aw_cm_qp_set(struct aw_cm_id *cm, struct ibv_qp *qp) AW_EXCLUDES(cm->lock);

/* Takes the QP from the id: for the caller alone, once it has waited for the threads that use it. NULL: the id has none. */
struct ibv_qp *aw_cm_qp_take(struct aw_cm_id *cm) AW_EXCLUDES(cm->lock);

/* The same for an id that belongs to the parent process, whose lock must not be taken. */
struct ibv_qp *aw_cm_qp_take_inherited(struct aw_cm_id *cm);

#endif
