// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// From a QP to its extended form. Every QP of ours begins with a whole struct ibv_qp_ex; one that
// was not made for the ibv_wr_* calls has NULL in all of its functions.
#include <errno.h>
#include <infiniband/verbs.h>

// Returns NULL with EINVAL when the QP was not created with IBV_QP_INIT_ATTR_SEND_OPS_FLAGS.
struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
	struct ibv_qp_ex *qp_ex = (struct ibv_qp_ex *)qp;

	if (qp_ex->wr_start)
		return qp_ex;
	errno = EINVAL;
	return NULL;
}
