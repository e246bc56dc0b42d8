// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The CQs of UD QPs: their channels, and what an overrun does.
#include "net/ud/ud.h"
#include "net/ud/udsock_io.h"
#include "ud_scene.h"
#include "verbs/private.h"

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>

static void channel__wakes_for_a_solicited_datagram(void **state)
{
	struct ud_scene *s = *state;
	struct pollfd fd = { .fd = s->f->channel->fd, .events = POLLIN };
	struct ibv_send_wr wr = ud_wr(s, &s->b), *bad;
	struct ibv_cq *cq;
	void *context;

	ud_recv(&s->b, 1, 200);
	ud_recv(&s->b, 2, 200);
	assert_int_equal(ibv_req_notify_cq(s->f->cq, 1), 0);
	wr.send_flags = 0;
	assert_int_equal(ibv_post_send(s->a.qp, &wr, &bad), 0);
	wr.send_flags = IBV_SEND_SOLICITED;
	assert_int_equal(ibv_post_send(s->a.qp, &wr, &bad), 0);
	assert_int_equal(poll(&fd, 1, 10000), 1);
	assert_int_equal(ibv_get_cq_event(s->f->channel, &cq, &context), 0);
	ibv_ack_cq_events(cq, 1);
	assert_int_equal(wc_wait(s->f->cq).wr_id, 1);
	assert_int_equal(wc_wait(s->f->cq).wr_id, 2);
}

static void poll_in_vain(struct ud_scene *s)
{
	for (int i = 0; i < 64; i++)
		ud_none(s);
}

static bool is_lent(const struct ud_end *end)
{
	struct aw_udsock *sock = avb_qp_uqp(end->qp)->ud->sock;

	pthread_mutex_lock(&sock->listen_lock);
	bool lent = sock->lent;

	pthread_mutex_unlock(&sock->listen_lock);
	return lent;
}

/* A program that has polled, and now sleeps: its socket is not left to pollers until the progress thread's next look. */
static void channel__arming_takes_the_socket_back(void **state)
{
	struct ud_scene *s = *state;
	struct pollfd fd = { .fd = s->f->channel->fd, .events = POLLIN };
	struct ibv_cq *cq;
	void *context;

	do {
		poll_in_vain(s);
		ud_check_way(s, &s->a, &s->b);
	} while (!is_lent(&s->b));
	ud_recv(&s->b, 1, 200);
	assert_int_equal(ibv_req_notify_cq(s->f->cq, 0), 0);
	assert_false(is_lent(&s->b));
	ud_send(s, &s->a, &s->b, "x", 1);
	assert_int_equal(poll(&fd, 1, 10000), 1);
	assert_int_equal(ibv_get_cq_event(s->f->channel, &cq, &context), 0);
	ibv_ack_cq_events(cq, 1);
	assert_int_equal(wc_wait(s->f->cq).wr_id, 1);
}

static void expect_event(struct ud_scene *s, enum ibv_event_type type)
{
	struct ibv_async_event event = async_wait(s->f->context);

	assert_int_equal(event.event_type, type);
	ibv_ack_async_event(&event);
}

/* As with RC: a CQ that has lost a completion ends the QP. */
static void overrun(struct ud_scene *s, bool sends)
{
	struct ibv_cq *cq = ibv_create_cq(s->f->context, 1, NULL, NULL, 0);
	struct ibv_qp_init_attr attr = qp_attr(s->f);
	struct ud_end end = { .mr = s->b.mr, .buf = s->b.buf };
	struct ibv_send_wr wr = ud_wr(s, &s->a), *bad;
	struct ibv_wc wc;

	attr.qp_type = IBV_QPT_UD;
	attr.send_cq = sends ? cq : s->sends;
	attr.recv_cq = sends ? s->f->cq : cq;
	end.qp = ibv_create_qp(s->f->pd, &attr);
	assert_non_null(end.qp);
	ud_walk(end.qp, UD_QKEY);
	for (int i = 0; i <= cq->cqe; i++) {
		if (sends) {
			assert_int_equal(ibv_post_send(end.qp, &wr, &bad), 0);
		} else {
			ud_recv(&end, 1, 200);
			ud_send(s, &s->a, &end, "x", 1);
		}
	}
	expect_event(s, IBV_EVENT_CQ_ERR);
	expect_event(s, IBV_EVENT_QP_FATAL);
	assert_int_equal(qp_state(end.qp), IBV_QPS_ERR);
	for (int i = 0; i < cq->cqe; i++)
		assert_int_equal(wc_wait(cq).status, IBV_WC_SUCCESS);
	assert_true(ibv_poll_cq(cq, 1, &wc) < 0);
	if (sends) { /* what is posted is flushed */
		ud_recv(&end, 1, 200);
		assert_int_equal(wc_wait(s->f->cq).status, IBV_WC_WR_FLUSH_ERR);
	}
	assert_int_equal(ibv_destroy_qp(end.qp), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
}

static void cq_overrun__by_sends_ends_the_qp(void **state)
{
	overrun(*state, true);
}

static void cq_overrun__by_receives_ends_the_qp(void **state)
{
	overrun(*state, false);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, ud_setup, ud_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(channel__wakes_for_a_solicited_datagram),
		WITH(channel__arming_takes_the_socket_back),
		WITH(cq_overrun__by_sends_ends_the_qp),
		WITH(cq_overrun__by_receives_ends_the_qp),
	};

	setenv("ANYWARP_PERSONA", "roce", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
