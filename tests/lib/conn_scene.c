// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// One conn and its raw peer.
#include "conn_scene.h"

#include "net/base/bounds.h"
#include "net/conn/conn_machine.h"
#include "net/progress/engine.h"
#include "proc.h"
#include "tcp.h"
#include "until.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

const struct aw_mpa_local scene_enhanced = {
	.revision = 2,
	.crc = true,
	.p2p = true,
	.rtr = MPA_RTR_WRITE | MPA_RTR_READ,
	.ird = 16,
	.ord = 8,
};
const struct aw_mpa_local scene_plain = {
	.revision = 1,
	.ird = MPA_IRD_ORD_NONE,
	.ord = MPA_IRD_ORD_NONE,
};

int scene_setup(void **state)
{
	struct scene *s = calloc(1, sizeof(*s));

	if (aw_engine_get() != 0)
		return -1;
	s->fds = proc_fds();
	s->heard = (struct heard)HEARD_INIT;
	s->peer = -1;
	s->qp.fd = -1;
	s->listener = tcp_listen(4, &s->addr);
	*state = s;
	return 0;
}

int scene_teardown(void **state)
{
	struct scene *s = *state;

	if (s->conn)
		aw_conn_destroy(s->conn);
	if (s->peer >= 0)
		close(s->peer);
	if (s->qp.fd >= 0)
		close(s->qp.fd);
	close(s->listener);
	aw_bounds.startup_ms = AW_CONN_STARTUP_MS;
	/* What lingers sees the peer's FIN and goes. */
	until(proc_fds() == s->fds);
	free(s);
	aw_engine_put();
	return 0;
}

static _Atomic bool busy, hold_busy;

static void keep_busy(struct aw_watch *w, uint32_t events)
{
	(void)events;
	busy = true;
	while (hold_busy)
		sched_yield();
	aw_watch_events(w, 0);
}

void scene_respond(struct scene *s, const struct aw_mpa_local *local)
{
	struct aw_conn_socket socket = { .given = false };
	socklen_t len = sizeof(socket.peer);

	s->peer = tcp_connect(&s->addr);
	socket.fd = tcp_accept(s->listener);
	tcp_unblock(socket.fd);
	assert_int_equal(getpeername(socket.fd, (struct sockaddr *)&socket.peer, &len), 0);
	assert_int_equal(aw_conn_respond(&socket, local, heard_fn, &s->heard, &s->conn), 0);
}

static uint32_t events_of(struct aw_conn *c)
{
	pthread_mutex_lock(&c->lock);
	uint32_t events = c->watch.events;

	pthread_mutex_unlock(&c->lock);
	return events;
}

void scene_await_events(struct scene *s, uint32_t events)
{
	until(events_of(s->conn) == events);
}

void scene_hold_engine(struct scene *s)
{
	busy = false;
	hold_busy = true;
	assert_int_equal(aw_watch_add(&s->busy, eventfd(1, EFD_CLOEXEC), EPOLLIN, keep_busy, NULL),
			 0);
	until(busy);
}

void scene_free_engine(struct scene *s)
{
	hold_busy = false;
	aw_watch_remove_wait(&s->busy);
	close(s->busy.fd);
}

size_t scene_frame(uint8_t *buf, enum mpa_kind kind, uint8_t flags, uint8_t revision)
{
	const struct mpa_enhanced enh = { .p2p = true, .rtr = MPA_RTR_WRITE, .ird = 4, .ord = 4 };
	struct mpa_frame frame = { .kind = kind, .flags = flags, .revision = revision };
	uint8_t data[MPA_ENH_LEN];

	mpa_enhanced_put(&enh, data);
	if (flags & MPA_FLAG_ENHANCED) {
		frame.pd = data;
		frame.pd_len = sizeof(data);
	}
	return mpa_build(&frame, buf);
}

struct aw_conn_info scene_failed(struct scene *s, int err)
{
	s->conn = heard_await(&s->heard, 0, AW_CONN_FAILED);
	assert_int_equal(aw_conn_info(s->conn)->err, err);
	return *aw_conn_info(s->conn);
}
