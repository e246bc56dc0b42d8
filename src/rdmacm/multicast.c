// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// rdma_join_multicast and rdma_leave_multicast, for ids of the UDP port space. A join asks no other
// host, so the event follows at once. A group is joined on the interface that the id is bound to.
#include "base/log.h"
#include "net/base/persona.h"
#include "rdmacm/address.h"
#include "rdmacm/event.h"
#include "rdmacm/fail.h"
#include "rdmacm/qp_ref.h"
#include "rdmacm/ud.h"
#include "ring/lock.h"
#include "verbs/private.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

static bool is_multicast(const struct sockaddr *addr)
{
	if (addr->sa_family == AF_INET)
		return IN_MULTICAST(ntohl(((const struct sockaddr_in *)addr)->sin_addr.s_addr));
	return addr->sa_family == AF_INET6 &&
	       IN6_IS_ADDR_MULTICAST(&((const struct sockaddr_in6 *)addr)->sin6_addr);
}

static int join(struct aw_cm_id *cm, const struct sockaddr *addr, bool send_only, void *context)
{
	struct ibv_gid_entry source;
	struct aw_cm_group *group;
	struct aw_cm_event *ev;
	int err;

	if (!cm->ud || !cm->id.verbs || !is_multicast(addr))
		return EINVAL;
	err = aw_cm_ud_source(&cm->id, &source);
	if (err)
		return err;
	group = calloc(1, sizeof(*group));
	if (!group)
		return ENOMEM;
	aw_address_gid(addr, &group->gid);
	group->ifindex = source.ndev_ifindex;
	group->send_only = send_only;
	aw_lock(&cm->lock);
	ev = aw_cm_event_create(cm, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	if (ev) {
		aw_cm_ud_describe(ev, &group->gid, AW_CM_QPN_MULTICAST, RDMA_UDP_QKEY);
		ev->event.param.ud.private_data = context;
		group->event_due = true;
		ev->group = group;
		aw_cm_event_raise(ev);
	}
	LIST_INSERT_HEAD(&cm->ud->groups, group, entry);
	aw_unlock(&cm->lock);
	return 0;
}

static int refuse_persona(void)
{
	aw_log(AW_LOG_ERROR,
	       "multicast refused: an iwarp device has none; the roce persona has it (all members: "
	       "anywarp run --persona roce)");
	return aw_cm_fail(EOPNOTSUPP);
}

int rdma_join_multicast(struct rdma_cm_id *id, struct sockaddr *addr, void *context)
{
	if (!aw_persona_is_roce())
		return refuse_persona();
	if (!id || !addr)
		return aw_cm_fail(EINVAL);
	struct aw_cm_id *cm = aw_cm_id_of(id);
	int err = join(cm, addr, false, context);

	return err ? aw_cm_fail(err) : aw_cm_id_complete(cm);
}

int rdma_join_multicast_ex(struct rdma_cm_id *id, struct rdma_cm_join_mc_attr_ex *attr,
			   void *context)
{
	const uint32_t known = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;

	if (!aw_persona_is_roce())
		return refuse_persona();
	if (!id || !attr || attr->comp_mask != known || !attr->addr)
		return aw_cm_fail(EINVAL);
	if (attr->join_flags != RDMA_MC_JOIN_FLAG_FULLMEMBER &&
	    attr->join_flags != RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER)
		return aw_cm_fail(EINVAL);
	struct aw_cm_id *cm = aw_cm_id_of(id);
	int err = join(cm, attr->addr, attr->join_flags == RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER,
		       context);

	return err ? aw_cm_fail(err) : aw_cm_id_complete(cm);
}

static struct aw_cm_group *group_take(struct aw_cm_id *cm, const union ibv_gid *gid)
{
	struct aw_cm_group *group;

	aw_lock(&cm->lock);
	LIST_FOREACH(group, &cm->ud->groups, entry)
	{
		if (memcmp(&group->gid, gid, sizeof(*gid)) == 0)
			break;
	}
	if (group)
		LIST_REMOVE(group, entry);
	aw_unlock(&cm->lock);
	return group;
}

/* The group's event names a context that may go afterwards: it is taken back, or the program that has it acknowledges it first. */
static void end_event(struct aw_cm_id *cm, struct aw_cm_group *group)
{
	struct rdma_cm_event *kept = cm->sync ? cm->id.event : NULL;
	struct aw_cm_event_list unread = TAILQ_HEAD_INITIALIZER(unread);
	struct aw_cm_event *ev;

	if (kept && ((struct aw_cm_event *)kept)->group == group)
		aw_cm_id_release_event(cm);
	aw_lock(&cm->lock);
	aw_cm_channel_remove(cm->id.channel, cm, &unread);
	while ((ev = TAILQ_FIRST(&unread))) {
		TAILQ_REMOVE(&unread, ev, entry);
		if (ev->group == group) {
			group->event_due = false;
			aw_cm_event_destroy(ev);
		} else {
			aw_cm_event_raise(ev);
		}
	}
	while (group->event_due)
		pthread_cond_wait(&cm->changed, &cm->lock);
	aw_unlock(&cm->lock);
}

/* A QP that is gone, or another one, is in no group any more. The id's lock comes behind those of a group. */
static void detach(struct aw_cm_id *cm, struct aw_cm_group *group)
{
	struct ibv_qp *qp = aw_cm_qp_get(cm);

	aw_lock(&cm->lock);
	bool attached = qp && group->member == qp;

	group->member = NULL;
	aw_unlock(&cm->lock);
	if (attached)
		avb_detach_mcast(qp, &group->gid, group->ifindex);
	if (qp)
		aw_cm_qp_put(cm);
}

int rdma_leave_multicast(struct rdma_cm_id *id, struct sockaddr *addr)
{
	union ibv_gid gid;

	if (!aw_persona_is_roce())
		return aw_cm_fail(EOPNOTSUPP);
	if (!id || !addr || !aw_cm_id_of(id)->ud || !aw_address_len(addr->sa_family))
		return aw_cm_fail(EINVAL);
	aw_address_gid(addr, &gid);
	struct aw_cm_group *group = group_take(aw_cm_id_of(id), &gid);

	if (!group)
		return aw_cm_fail(EADDRNOTAVAIL);
	/* Before the acknowledgement is waited for, and again where the thread that has the event attached the QP meanwhile. */
	detach(aw_cm_id_of(id), group);
	end_event(aw_cm_id_of(id), group);
	detach(aw_cm_id_of(id), group);
	free(group);
	return 0;
}
