// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The fixture of the verbs tests.
#include "fixture.h"
#include "../lib/until.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

enum {
	WAIT_MS = 10000,
	YIELDS = 200, /* enough for a destroy that does not wait to be seen on an idle machine */
};

struct destroyer {
	int (*destroy)(void *object);
	void *object;
	_Atomic bool started, acked;
};

int fixture_setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->context = device_open();
	fd_make_nonblocking(f->context->async_fd);
	f->pd = ibv_alloc_pd(f->context);
	assert_non_null(f->pd);
	f->channel = ibv_create_comp_channel(f->context);
	assert_non_null(f->channel);
	fd_make_nonblocking(f->channel->fd);
	f->cq = ibv_create_cq(f->context, CQE_MAX, f, f->channel, 0);
	assert_non_null(f->cq);
	*state = f;
	return 0;
}

int fixture_teardown(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(ibv_destroy_cq(f->cq), 0);
	assert_int_equal(ibv_destroy_comp_channel(f->channel), 0);
	assert_int_equal(ibv_dealloc_pd(f->pd), 0);
	assert_int_equal(ibv_close_device(f->context), 0);
	free(f);
	return 0;
}

struct ibv_context *device_open(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context;

	assert_non_null(list);
	assert_non_null(list[0]);
	context = ibv_open_device(list[0]);
	assert_non_null(context);
	ibv_free_device_list(list);
	return context;
}

void fd_make_nonblocking(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	assert_true(flags >= 0);
	assert_int_equal(fcntl(fd, F_SETFL, flags | O_NONBLOCK), 0);
}

struct ibv_qp_init_attr qp_attr(const struct fixture *f)
{
	return (struct ibv_qp_init_attr){
		.send_cq = f->cq,
		.recv_cq = f->cq,
		.cap = { WR_MAX, WR_MAX, SGE_MAX, SGE_MAX, INLINE_MAX },
		.qp_type = IBV_QPT_RC,
	};
}

struct ibv_qp *qp_make(const struct fixture *f)
{
	struct ibv_qp_init_attr attr = qp_attr(f);
	struct ibv_qp *qp = ibv_create_qp(f->pd, &attr);

	assert_non_null(qp);
	return qp;
}

int qp_move(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE);
}

enum ibv_qp_state qp_state(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	assert_int_equal(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), 0);
	return attr.qp_state;
}

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

struct ibv_wc wc_wait(struct ibv_cq *cq)
{
	int64_t deadline = now_ms() + WAIT_MS;
	struct ibv_wc wc;
	int got;

	do
		got = ibv_poll_cq(cq, 1, &wc);
	while (!got && now_ms() < deadline);
	assert_int_equal(got, 1);
	return wc;
}

struct ibv_async_event async_wait(struct ibv_context *context)
{
	struct pollfd fd = { .fd = context->async_fd, .events = POLLIN };
	struct ibv_async_event event;

	assert_int_equal(poll(&fd, 1, WAIT_MS), 1);
	assert_int_equal(ibv_get_async_event(context, &event), 0);
	return event;
}

/* Returns NULL when all was as it must be. */
static void *run_destroyer(void *arg)
{
	struct destroyer *d = arg;

	d->started = true;
	if (d->destroy(d->object))
		return "destroy failed";
	return d->acked ? NULL : "destroy did not wait";
}

void destroy_waits(int (*destroy)(void *), void *object, void (*ack)(void *), void *arg)
{
	struct destroyer d = { .destroy = destroy, .object = object };
	pthread_t thread;
	void *complaint;

	assert_int_equal(pthread_create(&thread, NULL, run_destroyer, &d), 0);
	until(d.started);
	for (int i = 0; i < YIELDS; i++)
		sched_yield();
	d.acked = true;
	ack(arg);
	assert_int_equal(pthread_join(thread, &complaint), 0);
	assert_null(complaint);
}
