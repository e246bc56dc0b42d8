// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The events of conns, and a QP that takes sockets.
#include "heard.h"

#include "net/progress/watch.h"
#include "net/qp/replied.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <errno.h>
#include <time.h>

#define WAIT_S 20

void heard_fn(void *arg, struct aw_conn *conn, enum aw_conn_event event)
{
	struct heard *h = arg;

	pthread_mutex_lock(&h->lock);
	if (h->count < HEARD_MAX) {
		h->conn[h->count] = conn;
		h->event[h->count] = event;
	}
	h->count++;
	pthread_cond_broadcast(&h->more);
	bool destroy = h->destroy;

	pthread_mutex_unlock(&h->lock);
	if (destroy)
		aw_conn_destroy(conn);
}

void heard_await_count(struct heard *h, unsigned int count)
{
	struct timespec until;
	int err = 0;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += WAIT_S;
	pthread_mutex_lock(&h->lock);
	while (h->count < count && err != ETIMEDOUT)
		err = pthread_cond_timedwait(&h->more, &h->lock, &until);
	pthread_mutex_unlock(&h->lock);
	assert_int_equal(err, 0);
}

struct aw_conn *heard_await(struct heard *h, unsigned int index, enum aw_conn_event event)
{
	heard_await_count(h, index + 1);
	assert_int_equal(h->event[index], event);
	return h->conn[index];
}

unsigned int heard_count(struct heard *h)
{
	unsigned int count;

	pthread_mutex_lock(&h->lock);
	count = h->count;
	pthread_mutex_unlock(&h->lock);
	return count;
}

/* In place of net/qp/uqp_progress.c's, which the linker then leaves out, as aw_replied_serve. */
int aw_uqp_attach_to(struct aw_uqp *qp, const struct aw_uqp_socket *to, struct aw_stream *stream)
{
	struct fake_qp *fake = (struct fake_qp *)qp;
	int err = fake->err;

	if (!err && to->start)
		err = to->start(to->arg, to->fd);
	if (err)
		return err;
	if (to->watched)
		aw_watch_drop_passed(to->fd);
	fake->fd = to->fd;
	fake->stream = *stream;
	fake->segment_size = to->segment_size;
	return 0;
}

/* No QP waits for its peer. */
void aw_replied_serve(void)
{
}
