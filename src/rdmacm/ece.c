// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Options between adapters of one vendor (ECE). MPA start-up has no field for them, so the peer's
// options are always none, and ours are not sent.
#include "rdmacm/fail.h"
#include "rdmacm/qp_ref.h"

#include <string.h>

#include <rdma/rdma_cma.h>

int rdma_set_local_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
	return aw_cm_fail(!id || aw_cm_qp_exists(aw_cm_id_of(id)) || !ece ? EINVAL : 0);
}

int rdma_get_remote_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
	if (!id || aw_cm_qp_exists(aw_cm_id_of(id)) || !ece)
		return aw_cm_fail(EINVAL);
	memset(ece, 0, sizeof(*ece));
	return 0;
}

int rdma_reject_ece(struct rdma_cm_id *id, const void *private_data, uint8_t private_data_len)
{
	return rdma_reject(id, private_data, private_data_len);
}
