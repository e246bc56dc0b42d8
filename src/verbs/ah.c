// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Address handles of UD QPs, so of the roce persona alone. A GID is an IP address; a path without GRH
// leads to this host's loopback address.
#include "verbs/ah.h"

#include "base/log.h"
#include "net/base/io_now.h"
#include "net/base/persona.h"
#include "net/roce/pair.h"
#include "verbs/gid.h"
#include "verbs/limits.h"
#include "verbs/pd.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct vb_limit ahs = { .max = VB_AH_MAX };

static int refuse(const char *why)
{
	aw_log(AW_LOG_ERROR, "address handle refused: %s", why);
	return EINVAL;
}

static int global_fill(struct aw_ah *ah, const struct ibv_global_route *grh)
{
	struct ibv_gid_entry own;
	int err = vb_gid_at(grh->sgid_index, &own);

	if (err == EINVAL)
		return refuse("sgid_index is not in the GID table (ibv_devinfo -v shows it)");
	if (err)
		return err;
	memcpy(ah->src, own.gid.raw, GID_LEN);
	ah->ifindex = own.ndev_ifindex;

	ud_addr_of_gid(grh->dgid.raw, ah->dst);
	if (gid_is_zero(ah->dst))
		return refuse("the destination's GID is zero");
	if (gid_is_ipv4(ah->dst) != gid_is_ipv4(ah->src))
		return refuse("the source's GID is of IPv4 and the destination's of IPv6, or the "
			      "other way round: choose another sgid_index");
	ah->traffic_class = grh->traffic_class;
	ah->hop_limit = grh->hop_limit;
	return 0;
}

static int ah_create(struct ibv_pd *pd, const struct ibv_ah_attr *attr, struct vb_ah **created)
{
	static _Atomic uint32_t handles;
	struct aw_ah want = { .sl = attr->sl };
	struct vb_ah *ah;
	int err;

	if (attr->port_num != VB_PORT)
		return refuse("there is port 1 only");
	if (attr->sl > UD_SL_MAX)
		return refuse("a service level is 0 to 15");
	if (attr->is_global) {
		err = global_fill(&want, &attr->grh);
		if (err)
			return err;
	} else {
		if (attr->dlid != VB_LID)
			return refuse(
				"dlid is not 0, the LID of every Ethernet port: to another host leads a GID "
				"(is_global, grh.dgid)");
		aw_pair_loopback_gid(want.dst);
		want.by_lid = true;
	}

	ah = calloc(1, sizeof(*ah));
	if (!ah)
		return ENOMEM;
	ah->aw = aw_ah_create(&want);
	if (!ah->aw) {
		free(ah);
		return ENOMEM;
	}
	ah->ibv.context = pd->context;
	ah->ibv.pd = pd;
	ah->ibv.handle = atomic_fetch_add_explicit(&handles, 1, memory_order_relaxed);
	vb_pd_get(pd);
	*created = ah;
	return 0;
}

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	AW_UNCANCELLED int cancel = aw_cancel_disable();
	struct vb_ah *ah = NULL;
	int err = 0;

	if (!aw_persona_is_roce()) {
		(void)refuse("it is for ud qps, which the roce persona has (both ends: anywarp run "
			     "--persona roce)");
		err = EOPNOTSUPP;
	}
	if (!err && !vb_limit_take(&ahs))
		err = ENOMEM;
	if (err) {
		errno = err;
		return NULL;
	}
	err = ah_create(pd, attr, &ah);
	if (err) {
		vb_limit_give(&ahs);
		errno = err;
		return NULL;
	}
	return &ah->ibv;
}

/* WRs that were posted with the handle hold references of their own. */
int ibv_destroy_ah(struct ibv_ah *ibv)
{
	AW_UNCANCELLED int cancel = aw_cancel_disable();
	struct vb_ah *ah = vb_ah_of(ibv);

	vb_pd_put(ibv->pd);
	aw_ah_put(ah->aw);
	free(ah);
	vb_limit_give(&ahs);
	return 0;
}
