// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Accepting and rejecting. RFC 5044 7.1, RFC 6581 9.
#include "kmod/cm/conn.h"
#include "kmod/qp/qp.h"
#include "kmod/tcp/linger.h"

/* The Reply goes out whole or not at all: the socket has taken nothing before it. */
static int send_reply(struct awk_conn *c, bool reject, const void *pd, size_t pd_len)
{
	c->out.done = 0;
	c->out.len = aw_mpa_reply(&c->local, &c->result, reject, pd, pd_len, c->out.octets);
	return awk_frame_send(c->sock, &c->out) ? -ECONNRESET : 0;
}

/* Applies the bounds that the program chose. RFC 6581 9.1: an RTR that is a Read needs an entry. */
static void lower(struct aw_mpa_result *result, u32 ird, u32 ord)
{
	bool rtr_reads = result->p2p && (result->rtr & MPA_RTR_READ);

	result->ird = min_t(u32, ird, result->ird);
	if (result->ird == 0 && rtr_reads)
		result->ird = 1;
	result->ord = min_t(u32, ord, result->ord);
}

static int begin(struct awk_conn *c, const struct iw_cm_conn_param *param)
{
	int err;

	if (param->private_data_len > aw_mpa_pd_max(c->result.enhanced))
		return -EINVAL;
	lower(&c->result, param->ird, param->ord);
	awk_conn_unwatch(c);
	err = send_reply(c, false, param->private_data, param->private_data_len);
	return err ? err : awk_conn_attach(c);
}

int awk_conn_accept(struct awk_conn *c, struct iw_cm_id *cm_id, struct awk_qp *qp,
		    const struct iw_cm_conn_param *param)
{
	int err = awk_stream_claim(qp, &c->user);

	if (err) {
		awk_qp_put(qp);
		awk_conn_reject(c, NULL, 0); /* after a close alone the peer would ask again */
		return err;
	}
	c->qp = qp;
	cm_id->add_ref(cm_id);
	c->cm_id = cm_id;
	err = begin(c, param);
	if (err) {
		/* iw_cm may destroy the id within its own workqueue, where it cannot wait for a reference of the worker's. */
		c->cm_id = NULL;
		cm_id->rem_ref(cm_id);
		awk_conn_fail(c, err);
	}
	awk_conn_kick(c);
	return err;
}

int awk_conn_reject(struct awk_conn *c, const void *pd, size_t pd_len)
{
	struct socket *sock;
	int err = 0;

	if (pd_len > aw_mpa_pd_max(c->result.enhanced)) {
		err = -EINVAL;
		pd_len = 0;
	}
	awk_conn_unwatch(c);
	if (send_reply(c, true, pd, pd_len) == 0) {
		sock = awk_conn_take_sock(c);
		awk_linger_unaccepted(sock);
	}
	awk_conn_fail(c, -ECONNREFUSED);
	awk_conn_kick(c);
	return err;
}
