// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Address vectors: those of address handles, and of a QP's move to RTR.
#include "check/explain/words.h"

#include <errno.h>
#include <string.h>

#define SL_MAX 15
#define MULTICAST_LID 0xc000

static bool gid_is_zero(const union ibv_gid *gid)
{
	static const union ibv_gid zero;

	return memcmp(gid, &zero, sizeof(zero)) == 0;
}

bool aw_reason_path(const char *what, const struct ibv_ah_attr *path,
		    const struct ibv_port_attr *port, char why[AW_EXPLAIN_MAX])
{
	bool ethernet = port && port->link_layer == IBV_LINK_LAYER_ETHERNET;
	const struct ibv_global_route *grh = &path->grh;

	if (path->sl > SL_MAX)
		aw_reason_set(why, "%ssl %u, but the highest service level is 15", what, path->sl);
	else if (path->is_global && port && grh->sgid_index >= port->gid_tbl_len)
		aw_reason_set(why, "%sgrh.sgid_index %u, but the port's GID table has %d entries",
			      what, grh->sgid_index, port->gid_tbl_len);
	else if (path->is_global && gid_is_zero(&grh->dgid))
		aw_reason_set(
			why,
			"%sgrh.dgid is zero: it has to be the peer's GID, which the two programs exchange",
			what);
	else if (ethernet && !path->is_global)
		aw_reason_set(
			why,
			"%sis_global is 0, but port %u is Ethernet, where a LID leads nowhere: RoCE needs is_global 1, grh.dgid, grh.sgid_index and grh.hop_limit",
			what, path->port_num);
	else if (port && port->flags & IBV_QPF_GRH_REQUIRED && !path->is_global)
		aw_reason_set(why, "%sis_global is 0, but port %u has IBV_QPF_GRH_REQUIRED", what,
			      path->port_num);
	else if (port && !ethernet && !path->dlid && !path->is_global)
		aw_reason_set(
			why,
			"%sdlid is 0: it has to be the peer's LID, which the two programs exchange",
			what);
	else
		return false;
	return true;
}

void aw_explain_create_ah(const struct ibv_ah_attr *attr, const struct ibv_port_attr *port,
			  unsigned ports, int err, char why[AW_EXPLAIN_MAX])
{
	if (err == EOPNOTSUPP)
		aw_explain_errno("ibv_create_ah", err, why);
	else if (!attr->port_num)
		aw_reason_set(why, "port_num 0, but the first port is 1");
	else if (ports && attr->port_num > ports)
		aw_reason_set(why, "port_num %u, but the device has %u", attr->port_num, ports);
	else if (aw_reason_path("", attr, port, why))
		return;
	else if (err == EINVAL && attr->is_global)
		aw_reason_guess(
			why, err,
			"most likely entry %u of the GID table is empty or of the other IP version than grh.dgid (ibv_devinfo -v); or no route leads from it to grh.dgid",
			attr->grh.sgid_index);
	else if (err == EINVAL && attr->dlid >= MULTICAST_LID)
		aw_reason_guess(why, err, "dlid 0x%x is multicast, which needs is_global 1",
				attr->dlid);
	else
		aw_explain_errno("ibv_create_ah", err, why);
}
