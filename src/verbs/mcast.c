// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Multicast groups of UD QPs. LIDs mean nothing here.
#include "net/base/io_now.h"
#include "net/base/persona.h"
#include "net/ud/ud.h"
#include "net/ud/ud_group.h"
#include "verbs/fail.h"
#include "verbs/private.h"
#include "verbs/qp.h"

#include <errno.h>

typedef int group_fn(struct aw_uqp *qp, const uint8_t *addr, uint32_t ifindex);

/* EOPNOTSUPP for a QP that is not UD. */
static int with_group(group_fn *act, struct ibv_qp *qp, const union ibv_gid *gid, uint32_t ifindex)
{
	AW_UNCANCELLED int cancel = aw_cancel_disable();
	uint8_t addr[GID_LEN];

	if (!aw_persona_is_roce() || qp->qp_type != IBV_QPT_UD)
		return vb_fail(EOPNOTSUPP);
	ud_addr_of_gid(gid->raw, addr);
	return vb_fail(act(vb_qp_of(qp)->uqp, addr, ifindex));
}

int avb_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint32_t ifindex)
{
	return with_group(aw_ud_group_join, qp, gid, ifindex);
}

int avb_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint32_t ifindex)
{
	return with_group(aw_ud_group_leave, qp, gid, ifindex);
}

void avb_leave_mcast(struct ibv_qp *qp)
{
	aw_ud_group_leave_all(vb_qp_of(qp)->uqp);
}

int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	(void)lid;
	return avb_attach_mcast(qp, gid, 0);
}

int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	(void)lid;
	return avb_detach_mcast(qp, gid, 0);
}
