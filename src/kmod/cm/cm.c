// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// iw_cm's requests: checked, and handed to a connection or a listener.
#include "kmod/cm/cm.h"

#include "kmod/cm/conn.h"
#include "kmod/cm/listen.h"
#include "kmod/cm/policy.h"
#include "kmod/qp/qp.h"

#include <net/net_namespace.h>

/* Claims the QP's stream for this connection, or returns an error. */
static int claim_qp(struct awk_conn *c, struct awk_device *dev, u32 qpn)
{
	struct awk_qp *qp = awk_qp_find(dev, qpn);
	int err;

	if (!qp)
		return -EINVAL;
	err = awk_stream_claim(qp, &c->user);
	if (err)
		awk_qp_put(qp);
	else
		c->qp = qp;
	return err;
}

static int connect_conn(struct awk_conn *c, struct iw_cm_id *cm_id,
			const struct iw_cm_conn_param *param)
{
	struct awk_device *dev = awk_device_of(cm_id->device);
	u8 *buf = c->out.octets;
	struct net *net;
	int err;

	c->tls = awk_policy_tls();
	awk_policy_tls_name(c->tls_name, sizeof(c->tls_name));
	c->local = awk_policy_local(param->ird, param->ord, c->tls);
	c->local_addr = cm_id->m_local_addr;
	c->remote_addr = cm_id->m_remote_addr;
	if (param->private_data_len >
	    aw_mpa_pd_max(aw_mpa_request(&c->local, NULL, 0, buf) > MPA_HDR_LEN))
		return -EINVAL;
	c->out.len = aw_mpa_request(&c->local, param->private_data, param->private_data_len, buf);
	err = claim_qp(c, dev, param->qpn);
	if (err)
		return err;
	cm_id->add_ref(cm_id);
	c->cm_id = cm_id;
	net = awk_device_net(dev);
	if (!net)
		return -ENODEV;
	/* A program must not reach by a device a network that it cannot reach without. */
	err = -ENETUNREACH;
	if (!c->qp->user || awk_net_is_callers(net))
		err = awk_conn_open(c, net, cm_id->tos_set ? cm_id->tos : -1);
	put_net(net);
	return err;
}

static int cm_connect(struct iw_cm_id *cm_id, struct iw_cm_conn_param *param)
{
	struct awk_conn *c = awk_conn_create(true, awk_conn_work);
	int err;

	if (!c)
		return -ENOMEM;
	awk_conn_get(c);
	err = connect_conn(c, cm_id, param);
	if (err)
		awk_conn_finish(c);
	else
		awk_conn_kick(c);
	awk_conn_put(c);
	return err;
}

/*
 * Finds the connection of this cm_id, which the caller owns then; NULL: the peer, or a time-out,
 * was faster.
 */
static struct awk_conn *claim_request(const struct iw_cm_id *cm_id)
{
	struct awk_conn *c = awk_conn_find((unsigned long)cm_id->provider_data);

	if (c && !awk_conn_claim(c)) {
		awk_conn_put(c);
		return NULL;
	}
	return c;
}

static int cm_accept(struct iw_cm_id *cm_id, struct iw_cm_conn_param *param)
{
	struct awk_conn *c = claim_request(cm_id);
	struct awk_qp *qp;
	int err;

	if (!c)
		return -ECONNRESET;
	qp = awk_qp_find(awk_device_of(cm_id->device), param->qpn);
	if (qp) {
		err = awk_conn_accept(c, cm_id, qp, param);
	} else {
		awk_conn_reject(c, NULL, 0);
		err = -EINVAL;
	}
	awk_conn_put(c);
	return err;
}

static int cm_reject(struct iw_cm_id *cm_id, const void *pd, u8 pd_len)
{
	struct awk_conn *c = claim_request(cm_id);
	int err = c ? awk_conn_reject(c, pd, pd_len) : -ECONNRESET;

	if (c)
		awk_conn_put(c);
	return err;
}

const struct ib_device_ops awk_cm_ops = {
	.iw_connect = cm_connect,
	.iw_accept = cm_accept,
	.iw_reject = cm_reject,
	.iw_create_listen = awk_listen_create,
	.iw_destroy_listen = awk_listen_destroy,
};

void awk_cm_exit_module(void)
{
	awk_conn_flush();
}
