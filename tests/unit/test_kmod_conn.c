// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What a peer sees of the kernel module's connections where one does not begin as it was asked for.
#include "core/startup.h"

#include "kmod/cm/cm.h"
#include "kmod/qp/qp.h"
#include "kmod/stream/stream.h"
#include "kmod/verbs/verbs.h"

#include "kclock.h"
#include "tcp.h"

#include <fcntl.h>
#include <rdma/iw_cm.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define PEER_PORT 8 /* tcp.c's */

static struct awk_device dev;
static struct net_device netdev;
static struct ib_pd pd;
static struct awk_cq cq;
static struct awk_qp qps[2];
static struct iw_cm_id first, second, listener, child;
static struct iw_cm_event event; /* the last one */
static unsigned int refs;

static int on_event(struct iw_cm_id *cm_id, struct iw_cm_event *what)
{
	(void)cm_id;
	event = *what;
	return 0;
}

static void on_add_ref(struct iw_cm_id *cm_id)
{
	(void)cm_id;
	refs++;
}

static void on_rem_ref(struct iw_cm_id *cm_id)
{
	(void)cm_id;
	refs--;
}

static struct iw_cm_id id_of_port(u16 near, u16 far)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_port = htons(near) };
	struct iw_cm_id id = {
		.device = &dev.base,
		.event_handler = on_event,
		.add_ref = on_add_ref,
		.rem_ref = on_rem_ref,
	};

	memcpy(&id.m_local_addr, &addr, sizeof(addr));
	addr.sin_port = htons(far);
	memcpy(&id.m_remote_addr, &addr, sizeof(addr));
	return id;
}

static void run_until_quiet(void)
{
	while (kshim_work_run(0) || kshim_timer_run())
		;
}

static void modify(struct awk_qp *qp, enum ib_qp_state to)
{
	struct ib_qp_attr attr = { .qp_state = to };

	assert_int_equal(awk_qp_modify(&qp->base, &attr, IB_QP_STATE, NULL), 0);
	run_until_quiet();
}

static int begin(void **state)
{
	struct ib_cq_init_attr cq_attr = { .cqe = 64 };
	struct ib_qp_init_attr attr = {
		.send_cq = &cq.base,
		.recv_cq = &cq.base,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4 },
	};

	(void)state;
	dev.netdev = &netdev;
	pd.device = cq.base.device = &dev.base;
	assert_int_equal(awk_stream_init_module(), 0);
	assert_int_equal(awk_cq_create(&cq.base, &cq_attr, NULL), 0);
	for (size_t i = 0; i < ARRAY_SIZE(qps); i++) {
		qps[i] = (struct awk_qp){ .base.device = &dev.base, .base.pd = &pd };
		assert_int_equal(awk_qp_create(&qps[i].base, &attr, NULL), 0);
	}
	return 0;
}

static int end(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(qps); i++) {
		modify(&qps[i], IB_QPS_ERR);
		awk_qp_destroy(&qps[i].base, NULL);
	}
	awk_cq_destroy(&cq.base, NULL);
	jiffies += 200 * HZ;
	run_until_quiet();
	awk_cm_exit_module();
	awk_stream_exit_module();
	kshim_tcp_end();
	assert_int_equal(refs, 0);
	assert_int_equal(kshim_allocated, 0);
	return 0;
}

static void connect_begin(struct iw_cm_id *id, const struct awk_qp *qp)
{
	struct iw_cm_conn_param param = { .ird = 1, .ord = 1, .qpn = qp->base.qp_num };

	assert_int_equal(awk_cm_ops.iw_connect(id, &param), 0);
	run_until_quiet();
}

/* The first connection has had its turn: its second try does not wait for the one that connects meanwhile. */
static void iw_connect__second_try_beside_another(void **state)
{
	(void)state;
	first = second = id_of_port(0, PEER_PORT);
	connect_begin(&first, &qps[0]);
	kshim_tcp_established(kshim_tcps[0]);
	run_until_quiet();
	connect_begin(&second, &qps[1]);
	assert_int_equal(kshim_tcps[1]->stage, TCP_CONNECTING);
	kshim_tcp_fin(kshim_tcps[0]);
	run_until_quiet();
	assert_int_equal(kshim_tcp_count, 3);
	assert_int_equal(kshim_tcps[2]->stage, TCP_CONNECTING);
}

/* After a close without a Reply an initiator would ask again, of a program that has said no. */
static void iw_accept__with_a_qp_that_takes_none(void **state)
{
	const struct aw_mpa_local local = { .revision = 1, .crc = true };
	struct iw_cm_conn_param param = { .qpn = qps[0].base.qp_num };
	struct mpa_frame reply;
	u8 request[MPA_FRAME_MAX];
	size_t used;
	int err;

	(void)state;
	listener = child = id_of_port(5, 0);
	assert_int_equal(awk_cm_ops.iw_create_listen(&listener, 4), 0);
	assert_true(kshim_tcp_arrive(kshim_tcps[0]));
	run_until_quiet();
	kshim_tcp_send(kshim_tcps[1], request, aw_mpa_request(&local, NULL, 0, request));
	run_until_quiet();
	assert_int_equal(event.event, IW_CM_EVENT_CONNECT_REQUEST);
	modify(&qps[0], IB_QPS_ERR);
	child.provider_data = event.provider_data;
	err = awk_cm_ops.iw_accept(&child, &param);
	run_until_quiet();
	awk_cm_ops.iw_destroy_listen(&listener);
	assert_int_equal(err, -EINVAL);
	assert_int_equal(mpa_parse(kshim_tcps[1]->out, kshim_tcps[1]->out_len, &reply, &used),
			 MPA_PARSE_OK);
	assert_true(reply.kind == MPA_REPLY && (reply.flags & MPA_FLAG_REJECT));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(iw_connect__second_try_beside_another, begin, end),
		cmocka_unit_test_setup_teardown(iw_accept__with_a_qp_that_takes_none, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
