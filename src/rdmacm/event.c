// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Events as callbacks make them.
#include "rdmacm/event.h"

#include "base/log.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

int aw_cm_event_spare(struct aw_cm_id *cm)
{
	cm->spare = malloc(sizeof(struct aw_cm_event));
	return cm->spare ? 0 : ENOMEM;
}

/* A program waits for its events: one that is lost for want of memory would hang it. */
struct aw_cm_event *aw_cm_event_create(struct aw_cm_id *owner, enum rdma_cm_event_type type,
				       int status)
{
	struct aw_cm_event *ev = malloc(sizeof(*ev));

	if (!ev)
		ev = atomic_exchange(&owner->spare, NULL);
	if (!ev) {
		aw_log(AW_LOG_ERROR, "%s lost: out of memory", rdma_event_str(type));
		return NULL;
	}
	memset(ev, 0, sizeof(*ev));
	ev->owner = owner;
	ev->event.id = &owner->id;
	ev->event.event = type;
	ev->event.status = status;
	return ev;
}

void aw_cm_event_destroy(struct aw_cm_event *ev)
{
	struct aw_cm_event *none = NULL;

	if (ev && !atomic_compare_exchange_strong(&ev->owner->spare, &none, ev))
		free(ev);
}

/*
 * The depth that this end allows, and no more than the peer will use; from a peer that rejects, the
 * depth that it needs (RFC 6581 9.1).
 */
static uint8_t depth(const struct aw_mpa_result *result, uint16_t own, uint16_t peer)
{
	bool peer_says = result->enhanced && (result->rejected || peer < own);
	uint16_t n = peer_says ? peer : own;

	return n < AW_RD_MAX ? (uint8_t)n : AW_RD_MAX;
}

void aw_cm_event_describe(struct aw_cm_event *ev, const struct aw_mpa_result *result)
{
	struct rdma_conn_param *conn = &ev->event.param.conn;

	conn->responder_resources = depth(result, result->ird, result->peer_ord);
	conn->initiator_depth = depth(result, result->ord, result->peer_ird);
	conn->private_data_len = result->pd_len < AW_CM_PD_MAX ? (uint8_t)result->pd_len
							       : AW_CM_PD_MAX;
	if (conn->private_data_len == 0)
		return;
	memcpy(ev->private_data, result->pd, conn->private_data_len);
	conn->private_data = ev->private_data;
}

void aw_cm_event_raise(struct aw_cm_event *ev)
{
	if (!ev)
		return;
	aw_held(&ev->owner->lock);
	aw_cm_channel_push(ev->owner->id.channel, ev);
}

void aw_cm_event_tell(struct aw_cm_id *cm, enum rdma_cm_event_type type, int status)
{
	aw_cm_event_raise(aw_cm_event_create(cm, type, status));
}
