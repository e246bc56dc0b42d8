// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// References to the QP of an id.
#include "rdmacm/qp_ref.h"

#include "ring/lock.h"

struct ibv_qp *aw_cm_qp_get(struct aw_cm_id *cm)
{
	aw_lock(&cm->lock);
	struct ibv_qp *qp = cm->id.qp;

	if (qp)
		cm->qp_users++;
	aw_unlock(&cm->lock);
	return qp;
}

void aw_cm_qp_put(struct aw_cm_id *cm)
{
	aw_lock(&cm->lock);
	if (--cm->qp_users == 0)
		pthread_cond_broadcast(&cm->changed);
	aw_unlock(&cm->lock);
}

struct ibv_qp *aw_cm_qp_locked(const struct aw_cm_id *cm)
{
	return cm->id.qp;
}

bool aw_cm_qp_exists(struct aw_cm_id *cm)
{
	aw_lock(&cm->lock);
	bool exists = cm->id.qp != NULL;

	aw_unlock(&cm->lock);
	return exists;
}

void aw_cm_qp_set(struct aw_cm_id *cm, struct ibv_qp *qp)
{
	aw_lock(&cm->lock);
	cm->id.qp = qp;
	aw_unlock(&cm->lock);
}

struct ibv_qp *aw_cm_qp_take(struct aw_cm_id *cm)
{
	aw_lock(&cm->lock);
	struct ibv_qp *qp = cm->id.qp;

	cm->id.qp = NULL;
	while (cm->qp_users > 0)
		pthread_cond_wait(&cm->changed, &cm->lock);
	aw_unlock(&cm->lock);
	return qp;
}

struct ibv_qp *aw_cm_qp_take_inherited(struct aw_cm_id *cm)
{
	struct ibv_qp *qp = cm->id.qp;

	cm->id.qp = NULL;
	return qp;
}
