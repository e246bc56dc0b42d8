// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Events of rdma_cm that tell a failure, and the parameters of a connection. A status below 0 is an errno; above 0 it is
// InfiniBand's reason of a REJ (12.6.7.2) or the status of a SIDR_REP (12.11.2).
#include "check/explain/words.h"

#include <errno.h>
#include <string.h>

#define IB_PRIVATE_DATA_MAX 56 /* of a REQ; iWARP and a REP take more */

struct cm_status_text {
	int status;
	const char *text;
};

static const struct cm_status_text address[] = {
	{ -ENODEV,
	  "the route to the destination leaves by an interface without an RDMA device (ip route get; rdma link); a container needs that interface in its network namespace" },
	{ -ETIMEDOUT,
	  "nobody answered for the destination's address (ARP, neighbor discovery): wrong network or address, or the host is down" },
	{ -EHOSTUNREACH,
	  "no host answered at the destination's address (ARP, neighbor discovery)" },
	{ -ENETUNREACH, "no route leads to the destination" },
	{ -EADDRNOTAVAIL, "no interface of this host has the source address" },
	{ -EADDRINUSE, "the source port is taken" },
	{ -EINVAL,
	  "source and destination do not go together: other families, or the source's device does not reach the destination" },
	{ -ENODATA, "the destination has no hardware address on this network" },
	{ 0, NULL },
};

static const struct cm_status_text route[] = {
	{ -ETIMEDOUT,
	  "the subnet manager gave no path record in time: does one run (sminfo), and is the port ACTIVE?" },
	{ -EINVAL,
	  "the subnet manager knows no path: the peer's port is down, or in another partition" },
	{ -ENODEV, "the device is gone" },
	{ -EHOSTUNREACH, "no path leads to the destination" },
	{ 0, NULL },
};

static const struct cm_status_text rejected[] = {
	{ 1, "the peer has no QP for it" },
	{ 3, "the peer has no resources left for a connection" },
	{ 4, "the peer's program did not answer in time" },
	{ 5, "the peer does not support the request" },
	{ 6, "the peer does not know the connection: it has gone there" },
	{ 8, "nobody listens on this port there (invalid service ID)" },
	{ 10,
	  "the peer takes the QP for one of an older connection (stale): a QP number or id was used again too early" },
	{ 12, "the peer does not know the GID that the request was sent to" },
	{ 13, "the peer does not know the LID that the request was sent to" },
	{ 24, "the peer wants the request at another port (redirect)" },
	{ 25, "the peer wants the request at another port (redirect)" },
	{ 26, "the peer does not take this path MTU" },
	{ 27, "the peer has fewer responder resources than initiator_depth asks for" },
	{ 28,
	  "the program there called rdma_reject or destroyed the id, its backlog is full, or it listens on this port at another address of that host" },
	{ 29, "the peer does not take this rnr_retry_count" },
	{ -ECONNREFUSED,
	  "nobody listens on this port there, or the program there called rdma_reject (over iWARP the two are told apart by private data alone)" },
	{ -ECONNRESET,
	  "the peer broke the connection off: it is no RDMA service (a plain TCP one, another MPA revision), or its program ended" },
	{ -EPROTO, "the peer's answer is not MPA's: the port is not an RDMA service's" },
	{ 0, NULL },
};

static const struct cm_status_text unreachable[] = {
	{ 1, "nobody listens on this port there (SIDR: service ID not supported)" },
	{ 2, "the program there rejected the request (SIDR)" },
	{ 3, "the service there has no QP (SIDR)" },
	{ -ETIMEDOUT,
	  "the peer did not answer: the host is down, a firewall drops the request (iWARP: the TCP port; RoCE: UDP 4791), or its program does not take it" },
	{ -EHOSTUNREACH, "no host answers at the address" },
	{ -ENETUNREACH, "no route leads to the destination" },
	{ 0, NULL },
};

static const struct cm_status_text connect_error[] = {
	{ -ETIMEDOUT,
	  "the peer did not finish the set-up in time: the responder waits for the initiator's first message, or its acknowledgment was lost" },
	{ -ECONNRESET, "the connection broke while it was set up" },
	{ -EINVAL,
	  "the QP could not be moved to RTR or RTS: usually it was moved or destroyed by the program, or the path's MTU, P_Key or GID is not valid at this end" },
	{ -ENOMEM,
	  "the peer takes fewer inbound Reads than this end wants: lower initiator_depth here or raise responder_resources there" },
	{ -EOPNOTSUPP,
	  "the two ends have no ready-to-receive message in common (rtr in ANYWARP_MPA)" },
	{ -EPROTO, "the peer's answer is not MPA's" },
	{ -ECONNABORTED, "the QP is gone" },
	{ 0, NULL },
};

static const struct cm_status_text disconnected[] = {
	{ 0, "the connection has ended: rdma_disconnect at one end, or the peer's program ended" },
	{ -EREMOTEIO,
	  "the peer ended the stream with a Terminate: an operation of this end was refused there" },
	{ -EPROTO,
	  "this end ended the stream with a Terminate: the peer's operation was refused here" },
	{ -EIO, "this end failed" },
	{ 0, NULL },
};

static const struct cm_status_text multicast[] = {
	{ -EINVAL,
	  "the QP could not join: it is no UD QP, or the subnet manager refused the group" },
	{ -ENODEV, "the device is gone" },
	{ -ETIMEDOUT, "the subnet manager did not answer" },
	{ -EADDRNOTAVAIL, "the id's address is in no GID table any more" },
	{ 0, NULL },
};

/* The texts of an event, and what it means whatever its status. */
static const struct {
	enum rdma_cm_event_type event;
	const struct cm_status_text *texts;
	const char *meaning;
} events[] = {
	{ RDMA_CM_EVENT_ADDR_ERROR, address, "the address was not resolved" },
	{ RDMA_CM_EVENT_ROUTE_ERROR, route, "the route was not resolved" },
	{ RDMA_CM_EVENT_REJECTED, rejected, "the peer rejected the connection" },
	{ RDMA_CM_EVENT_UNREACHABLE, unreachable, "the peer was not reached" },
	{ RDMA_CM_EVENT_CONNECT_ERROR, connect_error, "the connection was not set up" },
	{ RDMA_CM_EVENT_DISCONNECTED, disconnected, "the connection has ended" },
	{ RDMA_CM_EVENT_MULTICAST_ERROR, multicast, "the group was not joined, or was lost" },
	{ RDMA_CM_EVENT_DEVICE_REMOVAL, NULL,
	  "the device was removed: the program has to destroy the id, its QP and all objects of the device" },
	{ RDMA_CM_EVENT_ADDR_CHANGE, NULL,
	  "the interface's hardware address changed (bonding failed over): connections over it may stand still" },
};

static void explain_unknown(const char *meaning, int status, char why[AW_EXPLAIN_MAX])
{
	if (status < 0 && aw_errno_name(-status))
		aw_reason_set(why, "status %d: %s: %s", status, meaning, strerrordesc_np(-status));
	else
		aw_reason_set(why, "status %d: %s", status, meaning);
}

void aw_explain_cm_event(enum rdma_cm_event_type event, int status, char why[AW_EXPLAIN_MAX])
{
	for (size_t i = 0; i < AW_ARRAY_LEN(events); i++) {
		const struct cm_status_text *row = events[i].texts;

		if (events[i].event != event)
			continue;
		/* The first row is taken for its status; a row of 0 and NULL ends the rows. */
		while (row && row->text && row->status != status)
			row++;
		if (row && row->text && status < 0)
			aw_reason_set(why, "status %d (%s): %s", status, aw_errno_name(-status),
				      row->text);
		else if (row && row->text)
			aw_reason_set(why, "status %d: %s", status, row->text);
		else
			explain_unknown(events[i].meaning, status, why);
		return;
	}
	explain_unknown("no event that tells a failure", status, why);
}

void aw_explain_connect(const char *call, const struct rdma_conn_param *param,
			const struct ibv_device_attr *device, int err, char why[AW_EXPLAIN_MAX])
{
	int inbound = device ? device->max_qp_rd_atom : 0;
	int outbound = device ? device->max_qp_init_rd_atom : 0;

	if (param && inbound > 0 && param->responder_resources > inbound)
		aw_reason_set(why, "responder_resources %u, but the device's max_qp_rd_atom is %d",
			      param->responder_resources, inbound);
	else if (param && outbound > 0 && param->initiator_depth > outbound)
		aw_reason_set(why, "initiator_depth %u, but the device's max_qp_init_rd_atom is %d",
			      param->initiator_depth, outbound);
	else if (param && param->private_data_len && !param->private_data)
		aw_reason_set(why, "private_data_len %u, but private_data is NULL",
			      param->private_data_len);
	else if (param && err == EINVAL && param->private_data_len > IB_PRIVATE_DATA_MAX &&
		 strcmp(call, "rdma_connect") == 0)
		aw_reason_guess(
			why, err,
			"most likely private_data_len %u: over InfiniBand and RoCE it is at most 56; or the id's route is not resolved",
			param->private_data_len);
	else
		aw_explain_errno(call, err, why);
}
