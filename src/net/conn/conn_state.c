// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The table of a conn's states, and its socket: how it leaves the conn.
#include "core/setup_term.h"
#include "net/base/io_now.h"
#include "net/conn/conn_machine.h"
#include "net/conn/order.h"
#include "net/progress/linger.h"
#include "net/progress/watch.h"

#include <assert.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define BIT(n) (1u << (n))

static const uint32_t arrows[] = {
	[AW_CONN_WAITING] = BIT(AW_CONN_CONNECTING) | BIT(AW_CONN_OVER),
	[AW_CONN_CONNECTING] = BIT(AW_CONN_REFUSED) | BIT(AW_CONN_SECURING) | BIT(AW_CONN_SENDING) |
			       BIT(AW_CONN_OVER),
	[AW_CONN_REFUSED] = BIT(AW_CONN_CONNECTING) | BIT(AW_CONN_OVER),
	[AW_CONN_SECURING] = BIT(AW_CONN_SENDING) | BIT(AW_CONN_OVER),
	[AW_CONN_SENDING] = BIT(AW_CONN_AWAIT_REPLY) | BIT(AW_CONN_OVER),
	[AW_CONN_AWAIT_REPLY] = BIT(AW_CONN_READY) | BIT(AW_CONN_SECURING) | BIT(AW_CONN_OVER),
	[AW_CONN_AWAIT_FIRST] = BIT(AW_CONN_AWAIT_HELLO) | BIT(AW_CONN_AWAIT_REQUEST) |
				BIT(AW_CONN_OVER),
	[AW_CONN_AWAIT_HELLO] = BIT(AW_CONN_AWAIT_REQUEST) | BIT(AW_CONN_OVER),
	[AW_CONN_AWAIT_REQUEST] = BIT(AW_CONN_DECIDING) | BIT(AW_CONN_AWAIT_HELLO) |
				  BIT(AW_CONN_OVER),
	[AW_CONN_DECIDING] = BIT(AW_CONN_OVER),
	[AW_CONN_READY] = BIT(AW_CONN_OVER),
	[AW_CONN_OVER] = 0,
};

const struct aw_conn_wait aw_conn_waits[] = {
	[AW_CONN_WAITING] = { 0, true },
	[AW_CONN_CONNECTING] = { EPOLLOUT, true },
	[AW_CONN_REFUSED] = { 0, true },
	[AW_CONN_SECURING] = { EPOLLIN, true },
	[AW_CONN_SENDING] = { EPOLLOUT, true },
	[AW_CONN_AWAIT_REPLY] = { EPOLLIN, true },
	[AW_CONN_AWAIT_FIRST] = { EPOLLIN | EPOLLRDHUP, true },
	[AW_CONN_AWAIT_HELLO] = { EPOLLIN | EPOLLRDHUP, true },
	[AW_CONN_AWAIT_REQUEST] = { EPOLLIN | EPOLLRDHUP, true },
	[AW_CONN_DECIDING] = { EPOLLIN | EPOLLRDHUP, false },
	[AW_CONN_READY] = { EPOLLIN, false },
	[AW_CONN_OVER] = { 0, false },
};

static bool is_early(enum aw_conn_state state)
{
	return state <= AW_CONN_SECURING;
}

void aw_conn_enter(struct aw_conn *c, enum aw_conn_state next)
{
	assert(arrows[c->state] & BIT(next));
	if (is_early(c->state) && !is_early(next))
		aw_order_pass(c);
	c->state = next;
}

void aw_conn_set_state(struct aw_conn *c, enum aw_conn_state next)
{
	if (c->fd >= 0)
		aw_watch_events(&c->watch, aw_conn_waits[next].events);
	if (!aw_conn_waits[next].deadline)
		aw_watch_deadline(&c->watch, 0);
	aw_conn_enter(c, next);
}

int aw_conn_take_fd(struct aw_conn *c)
{
	int fd = c->fd;

	aw_watch_drop_fd(&c->watch);
	c->fd = -1;
	return fd;
}

int aw_conn_pass_fd(struct aw_conn *c, bool *watched)
{
	int fd = c->fd;

	*watched = aw_watch_pass_fd(&c->watch);
	c->fd = -1;
	return fd;
}

void aw_conn_close_fd(int fd)
{
	if (fd < 0)
		return;
	shutdown(fd, SHUT_RDWR);
	aw_close_now(fd);
}

void aw_conn_terminate_fd(int fd, struct aw_tls *tls, enum aw_error error, bool markers)
{
	uint8_t fpdu[AW_SETUP_TERM_MAX];
	size_t len = aw_setup_term(error, markers, fpdu);
	ssize_t sent = aw_tls_or_plain_send(fd, tls, fpdu, len);

	(void)sent; /* the connection ends either way */
	if (tls)
		(void)aw_tls_finish(tls);
	aw_linger(fd);
}
