// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Threads of the kernel module that met once: each test lets the second one come just where it did harm.
#include "core/startup.h"

#include "kmod/base/device.h"
#include "kmod/cm/cm.h"
#include "kmod/cm/conn.h"
#include "kmod/tcp/linger.h"

#include "fibers.h"
#include "kclock.h"
#include "tcp.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define SEEDS 1000 /* orders in which two threads run */

static struct awk_device dev;
static struct net_device netdev;
static struct iw_cm_id listener;
static struct iw_cm_event request;
static unsigned int requests, refs;

static int on_event(struct iw_cm_id *cm_id, struct iw_cm_event *event)
{
	(void)cm_id;
	assert_int_equal(event->event, IW_CM_EVENT_CONNECT_REQUEST);
	request = *event;
	requests++;
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

static void run_until_quiet(void)
{
	while (kshim_work_run(0) || kshim_timer_run())
		;
}

static struct kshim_tcp *listen_begin(void)
{
	const struct sockaddr_in near = { .sin_family = AF_INET, .sin_port = htons(5) };

	dev.netdev = &netdev;
	requests = 0;
	listener = (struct iw_cm_id){
		.device = &dev.base,
		.event_handler = on_event,
		.add_ref = on_add_ref,
		.rem_ref = on_rem_ref,
	};
	memcpy(&listener.m_local_addr, &near, sizeof(near));
	assert_int_equal(awk_stream_init_module(), 0);
	assert_int_equal(awk_cm_ops.iw_create_listen(&listener, 4), 0);
	return kshim_tcps[0];
}

static void listen_end(void)
{
	run_until_quiet();
	awk_cm_ops.iw_destroy_listen(&listener);
	run_until_quiet();
	jiffies += 200 * HZ;
	run_until_quiet();
	awk_cm_exit_module();
	awk_stream_exit_module();
	kshim_tcp_end();
	assert_int_equal(refs, 0);
	assert_int_equal(kshim_allocated, 0);
}

static struct kshim_tcp *request_come(void)
{
	const struct aw_mpa_local local = { .revision = 1, .crc = true };
	u8 frame[MPA_FRAME_MAX];
	size_t len = aw_mpa_request(&local, NULL, 0, frame);
	struct kshim_tcp *l = listen_begin();

	assert_true(kshim_tcp_arrive(l));
	run_until_quiet();
	kshim_tcp_send(kshim_tcps[1], frame, len);
	run_until_quiet();
	assert_int_equal(requests, 1);
	return kshim_tcps[1];
}

static void answer_reject(void *arg)
{
	struct iw_cm_id child = { .device = &dev.base, .provider_data = request.provider_data };

	(void)arg;
	awk_cm_ops.iw_reject(&child, NULL, 0);
}

/* The program answers while the worker gives the connection up: the one that came first has it alone. */
static void reject_beside_worker(void (*cause)(struct kshim_tcp *tcp))
{
	for (u64 seed = 0; seed < SEEDS; seed++) {
		cause(request_come());
		fibers_begin(seed, 3);
		fiber_start(answer_reject, NULL);
		fibers_settle();
		fibers_end();
		listen_end();
	}
}

static void cause_time_out(struct kshim_tcp *tcp)
{
	(void)tcp;
	jiffies += msecs_to_jiffies(AWK_DECIDE_MS);
}

static void cause_leaving(struct kshim_tcp *tcp)
{
	kshim_tcp_reset(tcp);
}

static void cause_abandon(struct kshim_tcp *tcp)
{
	struct awk_conn *c = awk_conn_find((unsigned long)request.provider_data);

	(void)tcp;
	awk_conn_abandon(c);
	awk_conn_put(c);
}

static void test_answer_as_time_runs_out(void **unused)
{
	(void)unused;
	reject_beside_worker(cause_time_out);
}

static void test_answer_as_peer_leaves(void **unused)
{
	(void)unused;
	reject_beside_worker(cause_leaving);
}

static void test_answer_as_all_ends(void **unused)
{
	(void)unused;
	reject_beside_worker(cause_abandon);
}

/* What comes in between, once, where so many places were passed. */
static void (*second)(void);
static unsigned int places;

static void let_second_run(bool must)
{
	void (*run)(void) = second;

	assert_false(must);
	if (!run || places-- > 0)
		return;
	second = NULL;
	run();
}

static void accept_now(void)
{
	void (*const keep)(bool must) = kshim_on_yield;

	kshim_on_yield = NULL;
	kshim_work_run(0);
	kshim_on_yield = keep;
}

/* TCP has called the listener's callback of a child that is accepted just then: the child's user is no listener. */
static void test_callback_of_user_before(void **unused)
{
	bool reached = true;

	(void)unused;
	for (unsigned int at = 0; reached; at++) {
		struct kshim_tcp *l = listen_begin();

		assert_true(kshim_tcp_arrive(l));
		second = accept_now;
		places = at;
		kshim_on_yield = let_second_run;
		kshim_tcps[1]->sk.sk_data_ready(&kshim_tcps[1]->sk);
		kshim_on_yield = NULL;
		reached = !second;
		second = NULL;
		listen_end();
	}
}

static void reset_now(void)
{
	void (*const keep)(bool must) = kshim_on_yield;

	kshim_on_yield = NULL;
	kshim_tcp_reset(kshim_tcps[1]);
	while (kshim_work_run(0))
		;
	kshim_on_yield = keep;
}

/* The peer resets while a worker accepts: the connection's own worker ends it, and its socket keeps no callback. */
static void test_reset_as_accepted(void **unused)
{
	bool reached = true;

	(void)unused;
	for (unsigned int at = 0; reached; at++) {
		assert_true(kshim_tcp_arrive(listen_begin()));
		second = reset_now;
		places = at;
		kshim_on_yield = let_second_run;
		kshim_work_run(0);
		kshim_on_yield = NULL;
		reached = !second;
		second = NULL;
		listen_end();
	}
}

static void run_linger(void *arg)
{
	awk_linger(((struct kshim_tcp *)arg)->sock);
}

static void run_fin(void *arg)
{
	kshim_tcp_fin(arg);
}

/* The peer's FIN comes while a socket begins to linger, and the work that ends it runs at once. */
static void test_fin_as_linger_begins(void **unused)
{
	(void)unused;
	for (u64 seed = 0; seed < SEEDS; seed++) {
		struct socket *sock;

		assert_int_equal(awk_stream_init_module(), 0);
		assert_int_equal(awk_sock_create(kshim_net, AF_INET, &sock), 0);
		kernel_connect(sock, NULL, 0, O_NONBLOCK);
		kshim_tcp_established(sock->sk->tcp);
		fibers_begin(seed, 2);
		fiber_start(run_linger, sock->sk->tcp);
		fiber_start(run_fin, sock->sk->tcp);
		fibers_settle();
		fibers_end();
		awk_stream_exit_module();
		kshim_tcp_end();
		assert_int_equal(kshim_allocated, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answer_as_time_runs_out),
		cmocka_unit_test(test_answer_as_peer_leaves),
		cmocka_unit_test(test_answer_as_all_ends),
		cmocka_unit_test(test_callback_of_user_before),
		cmocka_unit_test(test_reset_as_accepted),
		cmocka_unit_test(test_fin_as_linger_begins),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
