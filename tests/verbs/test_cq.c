// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// CQs and completion channels. Completions come from QPs in error, which flush what is posted.
#include "flusher.h"

#include "../lib/proc.h"
#include "../lib/until.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <unistd.h>

/* What poll reports of an fd that it is asked everything about. */
static short reported(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN | POLLOUT | POLLPRI };

	return poll(&p, 1, 0) == 1 ? p.revents : 0;
}

static bool readable(int fd)
{
	return reported(fd) & POLLIN;
}

static void create_cq__limits(void **state)
{
	struct fixture *f = *state;
	struct ibv_device_attr attr;
	struct ibv_cq *cq;

	assert_int_equal(ibv_query_device(f->context, &attr), 0);
	cq = ibv_create_cq(f->context, attr.max_cqe, NULL, NULL, 0);
	assert_non_null(cq);
	assert_true(cq->cqe >= attr.max_cqe);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	cq = ibv_create_cq(f->context, 1, NULL, NULL, f->context->num_comp_vectors - 1);
	assert_non_null(cq);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	FAILS_WITH(EINVAL, ibv_create_cq(f->context, attr.max_cqe + 1, NULL, NULL, 0));
	FAILS_WITH(EINVAL, ibv_create_cq(f->context, 0, NULL, NULL, 0));
	FAILS_WITH(EINVAL, ibv_create_cq(f->context, -1, NULL, NULL, 0));
	FAILS_WITH(EINVAL, ibv_create_cq(f->context, 1, NULL, NULL, -1));
	FAILS_WITH(EINVAL, ibv_create_cq(f->context, 1, NULL, NULL, f->context->num_comp_vectors));
}

static void destroy_cq__busy_while_a_qp_uses_it(void **state)
{
	struct fixture *f = *state;
	struct ibv_qp *qp = qp_make(f);

	assert_int_equal(ibv_destroy_cq(f->cq), EBUSY);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

static void destroy_comp_channel__busy_while_a_cq_uses_it(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(ibv_destroy_comp_channel(f->channel), EBUSY);
}

static void *await_event(void *channel)
{
	struct ibv_cq *cq;
	void *context;

	ibv_get_cq_event(channel, &cq, &context);
	return NULL;
}

/* As with an adapter: the thread is there until it is cancelled. */
static void destroy_comp_channel__while_a_thread_waits(void **state)
{
	struct fixture *f = *state;
	struct ibv_comp_channel *channel = ibv_create_comp_channel(f->context);
	pthread_t thread;
	void *result;

#ifdef __SANITIZE_THREAD__
	ibv_destroy_comp_channel(channel);
	skip(); /* the program's two threads do race */
#endif
	assert_non_null(channel);
	assert_int_equal(pthread_create(&thread, NULL, await_event, channel), 0);
	until(proc_others_sleep());
	assert_int_equal(ibv_destroy_comp_channel(channel), 0);
	assert_int_equal(pthread_cancel(thread), 0);
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_ptr_equal(result, PTHREAD_CANCELED);
}

static void poll_cq__empty_and_none_asked(void **state)
{
	struct fixture *f = *state;
	struct ibv_wc wc;

	assert_int_equal(ibv_poll_cq(f->cq, 1, &wc), 0);
	assert_int_equal(ibv_poll_cq(f->cq, 0, &wc), 0);
	assert_true(ibv_poll_cq(f->cq, -1, &wc) < 0);
}

static void poll_cq__flushed_receives_in_order(void **state)
{
	struct fixture *f = *state;
	struct ibv_qp *qp = flusher_make(f);
	struct ibv_wc wc[CQE_MAX];

	for (uint64_t i = 0; i < 40; i++)
		complete(qp, i);
	assert_int_equal(ibv_poll_cq(f->cq, CQE_MAX, wc), 40);
	for (uint64_t i = 0; i < 40; i++) {
		assert_int_equal(wc[i].wr_id, i);
		assert_int_equal(wc[i].status, IBV_WC_WR_FLUSH_ERR);
		assert_int_equal(wc[i].qp_num, qp->qp_num);
	}
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

static void destroy_qp__takes_its_completions_along(void **state)
{
	struct fixture *f = *state;
	struct ibv_qp *a = flusher_make(f), *b = flusher_make(f);
	struct ibv_wc wc[4];

	complete(a, 1);
	complete(b, 2);
	complete(a, 3);
	assert_int_equal(ibv_destroy_qp(a), 0);
	assert_int_equal(ibv_poll_cq(f->cq, 4, wc), 1);
	assert_int_equal(wc[0].wr_id, 2);
	assert_int_equal(ibv_destroy_qp(b), 0);
}

static void resize_cq__keeps_what_waits(void **state)
{
	struct fixture *f = *state;
	struct ibv_qp *qp = flusher_make(f);
	struct ibv_wc wc[4];

	complete(qp, 1);
	complete(qp, 2);
	assert_int_equal(ibv_resize_cq(f->cq, 1), EINVAL);
	assert_int_equal(ibv_resize_cq(f->cq, 0), EINVAL);
	assert_int_equal(f->cq->cqe, CQE_MAX);
	assert_int_equal(ibv_resize_cq(f->cq, 2), 0);
	assert_true(f->cq->cqe >= 2);
	assert_int_equal(ibv_poll_cq(f->cq, 4, wc), 2);
	assert_int_equal(wc[1].wr_id, 2);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

static void poll_cq__overrun_raises_cq_err(void **state)
{
	struct fixture *f = *state;
	struct ibv_qp *qp = flusher_make(f);
	struct ibv_async_event event;
	struct ibv_wc wc[2];

	assert_int_equal(ibv_resize_cq(f->cq, 1), 0);
	complete(qp, 1);
	complete(qp, 2);
	event = async_wait(f->context);
	assert_int_equal(event.event_type, IBV_EVENT_CQ_ERR);
	assert_ptr_equal(event.element.cq, f->cq);
	ibv_ack_async_event(&event);
	assert_int_equal(ibv_poll_cq(f->cq, 2, wc), 1);
	assert_true(ibv_poll_cq(f->cq, 2, wc) < 0);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

static void get_cq_event__nonblocking_has_none(void **state)
{
	struct fixture *f = *state;
	struct ibv_cq *cq;
	void *cq_context;

	assert_true(fcntl(f->channel->fd, F_GETFD) & FD_CLOEXEC);
	assert_false(readable(f->channel->fd));
	assert_int_equal(ibv_get_cq_event(f->channel, &cq, &cq_context), -1);
	assert_int_equal(errno, EAGAIN);
}

static void get_cq_event__once_an_arming(void **state)
{
	struct fixture *f = *state;
	struct ibv_qp *qp = flusher_make(f);
	struct ibv_cq *cq;
	void *cq_context;

	complete(qp, 1);
	assert_false(readable(f->channel->fd));
	assert_int_equal(ibv_req_notify_cq(f->cq, 0), 0);
	assert_false(readable(f->channel->fd));
	complete(qp, 2);
	complete(qp, 3);
	assert_true(readable(f->channel->fd));
	assert_int_equal(ibv_get_cq_event(f->channel, &cq, &cq_context), 0);
	assert_ptr_equal(cq, f->cq);
	assert_ptr_equal(cq_context, f);
	assert_false(readable(f->channel->fd));
	ibv_ack_cq_events(cq, 1);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

/* As of the kernel's: libuv spins where an fd that it watches for writing says that it is ready. */
static void channel_fd__never_writable(void **state)
{
	struct fixture *f = *state;
	struct ibv_qp *qp = flusher_make(f);
	struct ibv_cq *cq;
	void *cq_context;

	assert_int_equal(reported(f->channel->fd), 0);
	assert_int_equal(ibv_req_notify_cq(f->cq, 0), 0);
	complete(qp, 1);
	assert_int_equal(reported(f->channel->fd), POLLIN);
	assert_int_equal(write(f->channel->fd, &(uint64_t){ 1 }, sizeof(uint64_t)), -1);
	assert_int_equal(ibv_get_cq_event(f->channel, &cq, &cq_context), 0);
	assert_int_equal(reported(f->channel->fd), 0);
	ibv_ack_cq_events(cq, 1);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

/* An edge-triggered set learns of each event, though the program has not read the one before. */
static void channel_fd__an_edge_an_event(void **state)
{
	struct fixture *f = *state;
	struct ibv_qp *qp = flusher_make(f);
	struct epoll_event want = { .events = EPOLLIN | EPOLLOUT | EPOLLET }, got;
	int epfd = epoll_create1(EPOLL_CLOEXEC);
	struct ibv_cq *cq;
	void *cq_context;

	assert_int_equal(epoll_ctl(epfd, EPOLL_CTL_ADD, f->channel->fd, &want), 0);
	for (uint64_t i = 0; i < 2; i++) {
		assert_int_equal(epoll_wait(epfd, &got, 1, 0), 0);
		assert_int_equal(ibv_req_notify_cq(f->cq, 0), 0);
		complete(qp, i);
		assert_int_equal(epoll_wait(epfd, &got, 1, 0), 1);
		assert_int_equal(got.events, EPOLLIN);
	}
	for (int i = 0; i < 2; i++)
		assert_int_equal(ibv_get_cq_event(f->channel, &cq, &cq_context), 0);
	assert_false(readable(f->channel->fd));
	ibv_ack_cq_events(cq, 2);
	close(epfd);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

static void async_fd__never_writable(void **state)
{
	struct fixture *f = *state;
	struct ibv_qp *qp = flusher_make(f);
	struct ibv_async_event event;

	assert_int_equal(reported(f->context->async_fd), 0);
	assert_int_equal(ibv_resize_cq(f->cq, 1), 0);
	complete(qp, 1);
	complete(qp, 2);
	assert_int_equal(reported(f->context->async_fd), POLLIN);
	assert_int_equal(ibv_get_async_event(f->context, &event), 0);
	assert_int_equal(reported(f->context->async_fd), 0);
	ibv_ack_async_event(&event);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

/* A flush is an error, and an error is an event for who waits for solicited ones. */
static void req_notify_cq__solicited_only_hears_errors(void **state)
{
	struct fixture *f = *state;
	struct ibv_qp *qp = flusher_make(f);
	struct ibv_cq *cq;
	void *cq_context;

	assert_int_equal(ibv_req_notify_cq(f->cq, 1), 0);
	complete(qp, 1);
	assert_int_equal(ibv_get_cq_event(f->channel, &cq, &cq_context), 0);
	ibv_ack_cq_events(cq, 1);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

/* A CQ whose event can be read; its QP is no more. */
static struct ibv_cq *cq_with_event(struct fixture *f)
{
	struct ibv_qp_init_attr attr = qp_attr(f);
	struct ibv_qp *qp;

	attr.send_cq = attr.recv_cq = ibv_create_cq(f->context, 4, NULL, f->channel, 0);
	qp = ibv_create_qp(f->pd, &attr);
	assert_int_equal(qp_move(qp, IBV_QPS_ERR), 0);
	assert_int_equal(ibv_req_notify_cq(attr.recv_cq, 0), 0);
	complete(qp, 1);
	assert_true(readable(f->channel->fd));
	assert_int_equal(ibv_destroy_qp(qp), 0);
	return attr.recv_cq;
}

static void destroy_cq__forgets_unread_events(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(ibv_destroy_cq(cq_with_event(f)), 0);
	assert_false(readable(f->channel->fd));
}

static int cq_destroy(void *cq)
{
	return ibv_destroy_cq(cq);
}

static void cq_ack(void *cq)
{
	ibv_ack_cq_events(cq, 1);
}

static void destroy_cq__waits_for_acknowledgements(void **state)
{
	struct fixture *f = *state;
	struct ibv_cq *made = cq_with_event(f), *cq;
	void *cq_context;

	assert_int_equal(ibv_get_cq_event(f->channel, &cq, &cq_context), 0);
	assert_ptr_equal(cq, made);
	destroy_waits(cq_destroy, cq, cq_ack, cq);
}

static uint64_t clock_now(clockid_t clock)
{
	struct timespec now;

	assert_int_equal(clock_gettime(clock, &now), 0);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void moderate(struct ibv_cq *cq, uint16_t count, uint16_t period_us)
{
	struct ibv_modify_cq_attr attr = { .attr_mask = IBV_CQ_ATTR_MODERATE,
					   .moderate = { count, period_us } };

	assert_int_equal(ibv_modify_cq(cq, &attr), 0);
}

static void event_take(struct fixture *f)
{
	struct ibv_cq *cq;
	void *cq_context;

	assert_int_equal(ibv_get_cq_event(f->channel, &cq, &cq_context), 0);
	assert_ptr_equal(cq, f->cq);
	ibv_ack_cq_events(cq, 1);
}

static void modify_cq__attributes(void **state)
{
	struct fixture *f = *state;
	struct ibv_modify_cq_attr attr = { 0 };

	assert_int_equal(ibv_modify_cq(f->cq, &attr), EINVAL);
	attr.attr_mask = IBV_CQ_ATTR_MODERATE | 1 << 1;
	assert_int_equal(ibv_modify_cq(f->cq, &attr), EOPNOTSUPP);
	moderate(f->cq, 0, 0);
	moderate(f->cq, UINT16_MAX, UINT16_MAX);
}

/* Neither the count's event nor the one behind it, which the period raises, is lost. */
static void modify_cq__an_event_for_several(void **state)
{
	struct fixture *f = *state;
	struct ibv_qp *qp = flusher_make(f);
	uint64_t begun;

	moderate(f->cq, 3, 20000);
	assert_int_equal(ibv_req_notify_cq(f->cq, 0), 0);
	for (uint64_t i = 0; i < 3; i++)
		complete(qp, i);
	assert_true(readable(f->channel->fd));
	event_take(f);
	assert_false(readable(f->channel->fd));
	assert_int_equal(ibv_req_notify_cq(f->cq, 0), 0);
	begun = clock_now(CLOCK_MONOTONIC);
	complete(qp, 3);
	until(readable(f->channel->fd));
	assert_true(clock_now(CLOCK_MONOTONIC) - begun >= 20000 * 1000);
	event_take(f);
	moderate(f->cq, 0, 0);
	assert_int_equal(ibv_req_notify_cq(f->cq, 0), 0);
	complete(qp, 4);
	assert_true(readable(f->channel->fd));
	event_take(f);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

/* A thread that sleeps in ibv_get_cq_event is woken by the period, too. */
static void modify_cq__wakes_a_sleeper(void **state)
{
	struct fixture *f = *state;
	struct ibv_qp *qp = flusher_make(f);

	moderate(f->cq, 1000, 2000);
	fcntl(f->channel->fd, F_SETFL, fcntl(f->channel->fd, F_GETFL) & ~O_NONBLOCK);
	for (uint64_t i = 0; i < 20; i++) {
		assert_int_equal(ibv_req_notify_cq(f->cq, 0), 0);
		complete(qp, i);
		event_take(f);
	}
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

/* With an event that waits for its period. */
static void destroy_cq__while_an_event_waits(void **state)
{
	struct fixture *f = *state;
	struct ibv_cq *cq = ibv_create_cq(f->context, 4, NULL, f->channel, 0);
	struct ibv_qp *qp = flusher_on(f, cq);

	moderate(cq, 10, UINT16_MAX);
	assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
	complete(qp, 1);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_false(readable(f->channel->fd));
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(create_cq__limits),
		WITH(destroy_cq__busy_while_a_qp_uses_it),
		WITH(destroy_comp_channel__busy_while_a_cq_uses_it),
		WITH(destroy_comp_channel__while_a_thread_waits),
		WITH(poll_cq__empty_and_none_asked),
		WITH(poll_cq__flushed_receives_in_order),
		WITH(destroy_qp__takes_its_completions_along),
		WITH(resize_cq__keeps_what_waits),
		WITH(poll_cq__overrun_raises_cq_err),
		WITH(get_cq_event__nonblocking_has_none),
		WITH(get_cq_event__once_an_arming),
		WITH(channel_fd__never_writable),
		WITH(channel_fd__an_edge_an_event),
		WITH(async_fd__never_writable),
		WITH(req_notify_cq__solicited_only_hears_errors),
		WITH(destroy_cq__forgets_unread_events),
		WITH(destroy_cq__waits_for_acknowledgements),
		WITH(modify_cq__attributes),
		WITH(modify_cq__an_event_for_several),
		WITH(modify_cq__wakes_a_sleeper),
		WITH(destroy_cq__while_an_event_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
