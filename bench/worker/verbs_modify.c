// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Connections by ibv_modify_qp, between QPs that tell their numbers over the control connection: as most
// programs make them, and as a device of iWARP cannot, but for anywarp's in the roce persona.
#include "worker/verbs.h"

#include "worker/fail.h"

#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#define PORT 1
#define PSN 1
#define TIMEOUT 14 /* 67 ms, */
#define RETRIES 7 /* eight times */
#define RNR_TIMER 12 /* 0.64 ms, */
#define RNR_ENDLESS 7 /* for ever */
#define HOPS 64

static void modify(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask, const char *state)
{
	errno = ibv_modify_qp(qp, attr, IBV_QP_STATE | mask);
	if (errno)
		fail_errno(
			"ibv_modify_qp to %s: by=modify_qp needs ANYWARP_PERSONA=roce at both ends",
			state);
}

struct ibv_qp *verbs_modify_create(struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_attr init = {
		.qp_state = IBV_QPS_INIT,
		.port_num = PORT,
		.qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_REMOTE_READ,
	};
	struct ibv_qp *qp = ibv_create_qp(verbs.pd, attr);

	if (qp)
		modify(qp, &init, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, "INIT");
	return qp;
}

static union ibv_gid gid_of(const struct sockaddr_storage *address)
{
	union ibv_gid gid = { .raw = { [10] = 0xff, 0xff } };

	if (address->ss_family == AF_INET6)
		memcpy(gid.raw, &((const struct sockaddr_in6 *)address)->sin6_addr, 16);
	else
		memcpy(gid.raw + 12, &((const struct sockaddr_in *)address)->sin_addr, 4);
	return gid;
}

static uint8_t index_of(const union ibv_gid *gid)
{
	union ibv_gid found;

	for (int i = 0; i <= UINT8_MAX && ibv_query_gid(verbs.context, PORT, i, &found) == 0; i++)
		if (memcmp(&found, gid, sizeof(found)) == 0)
			return (uint8_t)i;
	fail("no GID of the device is the address of the control connection");
}

/* The path is the control connection's. */
static struct ibv_ah_attr path_of(const struct session *session)
{
	struct sockaddr_storage here, there;
	socklen_t here_size = sizeof(here), there_size = sizeof(there);
	union ibv_gid own;

	if (getsockname(session->control.fd, (struct sockaddr *)&here, &here_size) != 0 ||
	    getpeername(session->control.fd, (struct sockaddr *)&there, &there_size) != 0)
		fail_errno("the control connection has no addresses");
	own = gid_of(&here);
	return (struct ibv_ah_attr){
		.grh = { .dgid = gid_of(&there), .sgid_index = index_of(&own), .hop_limit = HOPS },
		.is_global = 1,
		.port_num = PORT,
	};
}

static void to_rtr(struct ibv_qp *qp, const struct ibv_ah_attr *path, uint32_t far_qpn)
{
	struct ibv_port_attr port;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.ah_attr = *path,
		.dest_qp_num = far_qpn,
		.rq_psn = PSN,
		.max_dest_rd_atomic = (uint8_t)verbs.shape.reads,
		.min_rnr_timer = RNR_TIMER,
	};

	if (ibv_query_port(verbs.context, PORT, &port) != 0)
		fail_errno("ibv_query_port");
	attr.path_mtu = port.active_mtu;
	modify(qp, &attr,
	       IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
	       "RTR");
}

static void to_rts(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.timeout = TIMEOUT,
		.retry_cnt = RETRIES,
		.rnr_retry = RNR_ENDLESS,
		.sq_psn = PSN,
		.max_rd_atomic = (uint8_t)verbs.shape.reads,
	};

	modify(qp, &attr,
	       IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
		       IBV_QP_MAX_QP_RD_ATOMIC,
	       "RTS");
}

/* Tells the other end of ours, and hears of theirs; its QP's number. */
static uint32_t exchange(struct session *session, struct verbs_link *link)
{
	char line[CONTROL_LINE_MAX];
	uint32_t qpn;

	control_send(&session->control, "qp %" PRIu32 " %" PRIu32 " %" PRIu64 " %" PRIu64,
		     link->qp->qp_num, link->lane->mr->rkey, (uint64_t)(uintptr_t)link->in,
		     (uint64_t)(uintptr_t)link->out);
	control_expect(&session->control, "qp", line);
	if (sscanf(line, "%" SCNu32 " %" SCNu32 " %" SCNu64 " %" SCNu64, &qpn, &link->far.key,
		   &link->far.in, &link->far.out) != 4)
		fail("'qp %.80s' is not what an end says: are both of one version?", line);
	return qpn;
}

static struct ibv_context *open_device(void)
{
	struct ibv_device **devices = ibv_get_device_list(NULL);
	struct ibv_context *context = devices && devices[0] ? ibv_open_device(devices[0]) : NULL;

	if (!context)
		fail("no RDMA device: use 'anywarp run' or LD_LIBRARY_PATH");
	ibv_free_device_list(devices);
	return context;
}

void verbs_modify(struct session *session, uint64_t count)
{
	struct ibv_ah_attr path;

	if (!verbs.context) {
		verbs_make_room(session);
		verbs_prepare(session, open_device());
	}
	path = path_of(session);
	while (count-- > 0) {
		struct verbs_link *link = &verbs.links[verbs.count++];

		verbs_link_prepare(link, NULL);
		to_rtr(link->qp, &path, exchange(session, link));
		to_rts(link->qp);
	}
}
