// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The one port: an Ethernet link, one P_Key. Its state is that of the interfaces' links (verbs/gid.h), its active MTU that of the
// interface of GID 0; the segment size of a connection is TCP's own.
#include "net/base/persona.h"
#include "net/ud/ud.h"
#include "verbs/context.h"
#include "verbs/fail.h"
#include "verbs/gid.h"
#include "verbs/port_watch.h"
#include "verbs/sized.h"

#include <errno.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

/*
 * The function below is the exported one, whose attributes are those of old programs, not the
 * inline one.
 */
#undef ibv_query_port

enum {
	ATTR_OLD_SIZE = offsetof(struct ibv_port_attr, port_cap_flags2),
	PHYS_STATE_DISABLED = 3,
	PHYS_STATE_LINK_UP = 5,
	PKEY_DEFAULT = 0xffff,
};

_Static_assert(ATTR_OLD_SIZE == 48, "what ibv_query_port wrote before rdma-core 25");

int vb_query_port(struct ibv_context *context, uint8_t port_num, struct ibv_port_attr *attr,
		  size_t attr_size)
{
	struct ibv_port_attr now = {
		.state = IBV_PORT_DOWN,
		.max_mtu = IBV_MTU_4096,
		.port_cap_flags = IBV_PORT_CM_SUP,
		.max_msg_sz = AW_MSG_MAX,
		.pkey_tbl_len = 1,
		.max_vl_num = 1,
		.active_width = VB_PORT_WIDTH,
		.active_speed = VB_PORT_SPEED,
		.phys_state = PHYS_STATE_DISABLED,
		.link_layer = IBV_LINK_LAYER_ETHERNET,
	};
	const struct vb_gids *gids;
	int err;

	if (port_num != VB_PORT)
		return vb_fail(EINVAL);
	vb_port_watch_look(context);
	err = vb_gids_get(&gids);
	if (err)
		return vb_fail(err);
	now.gid_tbl_len = gids->count ? (int)gids->count : 1;
	now.active_mtu = gids->mtu;
	if (gids->active) {
		now.state = IBV_PORT_ACTIVE;
		now.phys_state = PHYS_STATE_LINK_UP;
	}
	vb_gids_put();
	if (aw_persona_is_roce()) {
		uint32_t violations = aw_ud_qkey_violations();

		now.port_cap_flags |= IBV_PORT_IP_BASED_GIDS;
		now.flags = IBV_QPF_GRH_REQUIRED;
		now.qkey_viol_cntr = violations < UINT16_MAX ? violations : UINT16_MAX;
	}
	vb_sized_write(attr, attr_size, &now, sizeof(now));
	return 0;
}

int ibv_query_port(struct ibv_context *context, uint8_t port_num,
		   struct _compat_ibv_port_attr *port_attr)
{
	return vb_query_port(context, port_num, (struct ibv_port_attr *)port_attr, ATTR_OLD_SIZE);
}

int ibv_query_pkey(struct ibv_context *context, uint8_t port_num, int index, __be16 *pkey)
{
	(void)context;
	if (port_num != VB_PORT || index != 0) {
		errno = EINVAL;
		return -1;
	}
	*pkey = PKEY_DEFAULT;
	return 0;
}

uint32_t vb_port_mtu(void)
{
	const struct vb_gids *gids;
	uint32_t mtu;

	if (vb_gids_get(&gids))
		return 0;
	mtu = 128u << gids->mtu;
	vb_gids_put();
	return mtu;
}

enum ibv_mtu vb_port_mtu_of(uint32_t ifindex)
{
	struct ifreq request = { 0 };
	enum ibv_mtu mtu = IBV_MTU_4096;
	int fd, bytes = 0;

	if (!if_indextoname(ifindex, request.ifr_name))
		return 0;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return 0;
	if (!ioctl(fd, SIOCGIFMTU, &request))
		bytes = request.ifr_mtu;
	close(fd);
	if (!bytes)
		return 0;
	while (mtu > IBV_MTU_256 && bytes < 128 << mtu)
		mtu--;
	return mtu;
}
