// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The kernel module's connections under TLS, up to the daemon that makes the handshake: nothing of MPA goes before it, nothing
// goes on without it, and it ends where the connection does.
#include "core/startup.h"

#include "kmod/cm/cm.h"
#include "kmod/cm/conn.h"
#include "kmod/cm/secure.h"
#include "kmod/qp/qp.h"
#include "kmod/stream/stream.h"
#include "kmod/verbs/verbs.h"

#include "kclock.h"
#include "tcp.h"
#include "tlshd.h"

#include <linux/module.h>
#include <rdma/iw_cm.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define PEER_PORT 8 /* tcp.c's */

extern const struct kernel_param_ops *const kshim_param_tls;
extern const struct kernel_param_ops *const kshim_param_crc;

static struct awk_device dev;
static struct net_device netdev;
static struct ib_pd pd;
static struct awk_cq cq;
static struct awk_qp qp;
static struct iw_cm_id id, listener;
static struct iw_cm_event event; /* the last one */
static unsigned int events;

static int on_event(struct iw_cm_id *cm_id, struct iw_cm_event *what)
{
	(void)cm_id;
	event = *what;
	events++;
	return 0;
}

static void on_ref(struct iw_cm_id *cm_id)
{
	(void)cm_id;
}

static struct iw_cm_id id_of_port(u16 near, u16 far)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_port = htons(near) };
	struct iw_cm_id made = {
		.device = &dev.base,
		.event_handler = on_event,
		.add_ref = on_ref,
		.rem_ref = on_ref,
	};

	memcpy(&made.m_local_addr, &addr, sizeof(addr));
	addr.sin_port = htons(far);
	memcpy(&made.m_remote_addr, &addr, sizeof(addr));
	return made;
}

static void run_until_quiet(void)
{
	while (kshim_work_run(0) || kshim_timer_run())
		;
}

static void pass(u32 ms)
{
	jiffies += msecs_to_jiffies(ms);
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
	events = 0;
	kshim_tls_begins = 0;
	assert_int_equal(kshim_param_tls->set("Y", NULL), 0);
	assert_int_equal(awk_stream_init_module(), 0);
	assert_int_equal(awk_cq_create(&cq.base, &cq_attr, NULL), 0);
	qp = (struct awk_qp){ .base.device = &dev.base, .base.pd = &pd };
	assert_int_equal(awk_qp_create(&qp.base, &attr, NULL), 0);
	return 0;
}

static int end(void **state)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };

	(void)state;
	awk_qp_modify(&qp.base, &attr, IB_QP_STATE, NULL);
	run_until_quiet();
	awk_qp_destroy(&qp.base, NULL);
	awk_cq_destroy(&cq.base, NULL);
	pass(200 * 1000);
	awk_cm_exit_module();
	awk_stream_exit_module();
	kshim_tcp_end();
	assert_int_equal(kshim_allocated, 0);
	return 0;
}

/* The initiator's, with TCP connected. */
static struct kshim_tcp *connected(void)
{
	struct iw_cm_conn_param param = { .ird = 1, .ord = 1, .qpn = qp.base.qp_num };

	id = id_of_port(0, PEER_PORT);
	assert_int_equal(awk_cm_ops.iw_connect(&id, &param), 0);
	run_until_quiet();
	kshim_tcp_established(kshim_tcps[0]);
	run_until_quiet();
	return kshim_tcps[0];
}

/* The responder's, which was accepted. */
static struct kshim_tcp *accepted(void)
{
	listener = id_of_port(5, 0);
	assert_int_equal(awk_cm_ops.iw_create_listen(&listener, 4), 0);
	assert_true(kshim_tcp_arrive(kshim_tcps[0]));
	run_until_quiet();
	return kshim_tcps[1];
}

static void send_request(struct kshim_tcp *tcp)
{
	const struct aw_mpa_local local = { .revision = 1 };
	u8 request[MPA_FRAME_MAX];

	kshim_tcp_send(tcp, request, aw_mpa_request(&local, NULL, 0, request));
	run_until_quiet();
}

static struct mpa_frame sent_frame(const struct kshim_tcp *tcp)
{
	struct mpa_frame frame = { 0 };
	size_t used;

	assert_int_equal(mpa_parse(tcp->out, tcp->out_len, &frame, &used), MPA_PARSE_OK);
	return frame;
}

static void connect__request_goes_after_the_handshake(void **state)
{
	struct kshim_tcp *tcp = connected();

	(void)state;
	assert_int_equal(kshim_tls_waiting(), 1);
	assert_true(tcp->ask->client);
	assert_int_equal(tcp->out_len, 0);
	assert_true(kshim_tls_done(0));
	run_until_quiet();
	assert_int_equal(sent_frame(tcp).kind, MPA_REQUEST);
	assert_false(sent_frame(tcp).flags & MPA_FLAG_CRC);
	assert_int_equal(events, 0);
}

static void connect__crc_by_hand_stays(void **state)
{
	struct kshim_tcp *tcp;

	(void)state;
	assert_int_equal(kshim_param_crc->set("Y", NULL), 0);
	tcp = connected();
	assert_true(kshim_tls_done(0));
	run_until_quiet();
	assert_true(sent_frame(tcp).flags & MPA_FLAG_CRC);
}

static void connect__failure_is_reported_and_nothing_goes_out(void **state)
{
	struct kshim_tcp *tcp = connected();

	(void)state;
	assert_true(kshim_tls_done(-EACCES));
	run_until_quiet();
	assert_int_equal(event.event, IW_CM_EVENT_CONNECT_REPLY);
	assert_int_equal(event.status, -EACCES);
	assert_true(tcp->closed);
	assert_int_equal(tcp->out_len, 0);
}

static void connect__without_a_daemon_fails(void **state)
{
	struct kshim_tcp *tcp;

	(void)state;
	kshim_tls_begins = -ESRCH;
	tcp = connected();
	assert_int_equal(event.event, IW_CM_EVENT_CONNECT_REPLY);
	assert_int_equal(event.status, -ESRCH);
	assert_true(tcp->closed);
	assert_int_equal(tcp->out_len, 0);
}

static void connect__waits_for_a_busy_daemon(void **state)
{
	struct kshim_tcp *tcp;

	(void)state;
	kshim_tls_begins = -EAGAIN;
	tcp = connected();
	pass(1000);
	assert_int_equal(events, 0);
	kshim_tls_begins = 0;
	pass(1000);
	assert_int_equal(kshim_tls_waiting(), 1);
	assert_true(kshim_tls_done(0));
	run_until_quiet();
	assert_int_equal(sent_frame(tcp).kind, MPA_REQUEST);
}

static void connect__silent_daemon_is_given_up(void **state)
{
	struct kshim_tcp *tcp = connected();

	(void)state;
	pass(AWK_STARTUP_MS - 100);
	assert_int_equal(events, 0);
	pass(200);
	assert_int_equal(event.event, IW_CM_EVENT_CONNECT_REPLY);
	assert_int_equal(event.status, -ETIMEDOUT);
	assert_true(tcp->closed);
	assert_int_equal(kshim_tls_waiting(), 0);
}

static void connect__qp_that_ends_stops_the_handshake(void **state)
{
	struct kshim_tcp *tcp = connected();
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };

	(void)state;
	assert_int_equal(awk_qp_modify(&qp.base, &attr, IB_QP_STATE, NULL), 0);
	run_until_quiet();
	assert_true(tcp->closed);
	assert_int_equal(kshim_tls_waiting(), 0);
}

static void listen__request_before_the_handshake_is_not_read(void **state)
{
	struct kshim_tcp *tcp = accepted();

	(void)state;
	assert_int_equal(kshim_tls_waiting(), 1);
	assert_false(tcp->ask->client);
	send_request(tcp);
	assert_int_equal(events, 0);
	assert_int_equal(tcp->in_at, 0);
	assert_true(kshim_tls_done(-EACCES));
	run_until_quiet();
	assert_int_equal(events, 0);
	assert_true(tcp->closed);
	assert_int_equal(tcp->out_len, 0);
	awk_cm_ops.iw_destroy_listen(&listener);
}

static void listen__request_is_reported_after_the_handshake(void **state)
{
	struct kshim_tcp *tcp = accepted();

	(void)state;
	assert_true(kshim_tls_done(0));
	run_until_quiet();
	assert_int_equal(events, 0);
	send_request(tcp);
	assert_int_equal(events, 1);
	assert_int_equal(event.event, IW_CM_EVENT_CONNECT_REQUEST);
	awk_cm_ops.iw_destroy_listen(&listener);
	pass(2 * AWK_DECIDE_MS);
}

/* The connection goes with its listener, and the handshake with the connection. */
static void listen__end_stops_the_handshakes(void **state)
{
	struct kshim_tcp *tcp = accepted();

	(void)state;
	awk_cm_ops.iw_destroy_listen(&listener);
	run_until_quiet();
	assert_true(tcp->closed);
	assert_int_equal(kshim_tls_waiting(), 0);
}

/* The daemon's thread is on its way into the connection, which has to be there. */
static void at_the_same_time(bool must)
{
	(void)must;
	kshim_on_yield = NULL;
	awk_cm_ops.iw_destroy_listen(&listener);
	run_until_quiet();
	assert_false(kshim_tcps[1]->closed);
}

static void listen__end_while_the_daemon_is_done(void **state)
{
	struct kshim_tcp *tcp = accepted();

	(void)state;
	kshim_on_yield = at_the_same_time;
	assert_true(kshim_tls_done(0));
	run_until_quiet();
	assert_true(tcp->closed);
	assert_int_equal(events, 0);
}

static jmp_buf waits;
static bool is_known_too_early;

static void leave_if_it_waits(bool must)
{
	if (must)
		longjmp(waits, 1);
}

/* A worker that learns of the end, where the lock lets it, may have nothing to do any more but to see the module go. */
static void look_meanwhile(bool must)
{
	static struct awk_conn *c;

	(void)must;
	if (kshim_tcps[1]->ask)
		c = container_of(kshim_tcps[1]->ask, struct awk_conn, ask);
	kshim_on_yield = leave_if_it_waits;
	if (setjmp(waits) == 0 && awk_secure_try(c) != -EINPROGRESS)
		is_known_too_early |= kshim_work_count() == 0;
	kshim_on_yield = look_meanwhile;
}

static void done__is_known_when_the_worker_was_kicked(void **state)
{
	(void)state;
	(void)accepted();
	kshim_on_yield = look_meanwhile;
	look_meanwhile(false);
	assert_true(kshim_tls_done(0));
	kshim_on_yield = NULL;
	awk_cm_ops.iw_destroy_listen(&listener);
	run_until_quiet();
	assert_false(is_known_too_early);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(connect__request_goes_after_the_handshake, begin,
						end),
		cmocka_unit_test_setup_teardown(done__is_known_when_the_worker_was_kicked, begin,
						end),
		cmocka_unit_test_setup_teardown(connect__failure_is_reported_and_nothing_goes_out,
						begin, end),
		cmocka_unit_test_setup_teardown(connect__without_a_daemon_fails, begin, end),
		cmocka_unit_test_setup_teardown(connect__waits_for_a_busy_daemon, begin, end),
		cmocka_unit_test_setup_teardown(connect__silent_daemon_is_given_up, begin, end),
		cmocka_unit_test_setup_teardown(connect__qp_that_ends_stops_the_handshake, begin,
						end),
		cmocka_unit_test_setup_teardown(listen__request_before_the_handshake_is_not_read,
						begin, end),
		cmocka_unit_test_setup_teardown(listen__request_is_reported_after_the_handshake,
						begin, end),
		cmocka_unit_test_setup_teardown(listen__end_stops_the_handshakes, begin, end),
		cmocka_unit_test_setup_teardown(listen__end_while_the_daemon_is_done, begin, end),
		cmocka_unit_test_setup_teardown(connect__crc_by_hand_stays, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
