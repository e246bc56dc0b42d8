// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A peer that never stops sending: who makes progress with its endpoint comes back, and has the others to
// see to. The completions are not the verbs library's, so that there are more of them at any time.
#include "xsock/endpoint/ep_impl.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum {
	RECEIVES = 400,
	ENDLESS = 1000 * RECEIVES,
};

static uint64_t completed;
static uint64_t most; /* then there are none for now */

static int poll_endlessly(struct ibv_cq *cq, int max, struct ibv_wc *wc)
{
	int n = 0;

	(void)cq;
	for (; n < max && completed < most; n++, completed++)
		wc[n] = (struct ibv_wc){ .wr_id = completed % RECEIVES, .byte_len = AW_XS_MSG_LEN };
	return n;
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	(void)qp;
	(void)wr;
	(void)bad;
	return 0;
}

struct scene {
	struct ibv_context verbs;
	struct ibv_cq cq;
	struct ibv_qp qp;
	struct ibv_mr mr;
	struct rdma_cm_id id;
	struct aw_xs_ep *ep;
};

/* An endpoint that is up, over all that; keepalives need no credit. */
static void open_scene(struct scene *s)
{
	struct aw_xs_ep *ep;

	assert_int_equal(aw_xs_ep_create(NULL, &ep), 0);
	memset(s, 0, sizeof(*s));
	s->verbs.ops.poll_cq = poll_endlessly;
	s->verbs.ops.post_recv = post_recv;
	s->cq.context = s->qp.context = &s->verbs;
	s->id.qp = &s->qp;
	s->ep = ep;
	ep->id = &s->id;
	ep->recv_cq.cq = &s->cq;
	ep->own_mr = &s->mr;
	ep->recv_count = RECEIVES;
	ep->phase = AW_XS_PHASE_UP;
	ep->stream.met = true;
	ep->stream.rx_net = true;
	for (uint32_t i = 0; i < RECEIVES; i++)
		aw_xs_msg_put(ep->memory + ep->messages_at + i * AW_XS_MSG_LEN, true, AW_XS_OP_CTRL,
			      AW_XS_CTRL_KEEPALIVE);
	completed = 0;
}

static void close_scene(struct scene *s)
{
	struct aw_xs_ep *ep = s->ep;

	ep->id = NULL;
	ep->recv_cq.cq = NULL;
	ep->own_mr = NULL;
	(void)aw_xs_service_leave(ep, false);
	aw_xs_ep_free(ep);
}

/* How many messages one turn takes where there are so many. */
static uint64_t taken_of(uint64_t there)
{
	struct scene s;

	open_scene(&s);
	most = there;
	aw_xs_ep_progress(s.ep);
	assert_int_equal(s.ep->stream.error, 0);
	close_scene(&s);
	return completed;
}

/* All that the queue can hold is taken: what came before an end is not lost. */
static void flood__comes_to_an_end(void **state)
{
	(void)state;
	assert_int_equal(taken_of(0), 0);
	assert_int_equal(taken_of(RECEIVES), RECEIVES);
	assert_in_range(taken_of(ENDLESS), RECEIVES, 2 * RECEIVES);
}

/* The one who has more to do is told so. */
static void flood__is_no_quiet(void **state)
{
	struct scene s;

	(void)state;
	open_scene(&s);
	s.ep->recv_cq.armed = s.ep->send_cq.armed = true;
	most = ENDLESS;
	for (int i = 0; i < 3; i++) {
		aw_xs_ep_ready(s.ep);
		assert_false(aw_xs_ep_arm(s.ep));
	}
	most = completed;
	aw_xs_ep_ready(s.ep);
	assert_true(aw_xs_ep_arm(s.ep));
	close_scene(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flood__comes_to_an_end),
		cmocka_unit_test(flood__is_no_quiet),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
