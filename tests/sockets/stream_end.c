// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What an end does next, and how it waits.
#include "stream.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

void end_open_helpers(struct end *e)
{
	e->file = memfd_create("stream", MFD_CLOEXEC);
	CHECK(e->file >= 0 && !pipe2(e->in_pipe, O_CLOEXEC) && !pipe2(e->out_pipe, O_CLOEXEC));
	e->staged = 0;
	e->set = -1;
	e->can_in = e->can_out = true;
	waiter_set(e, (enum waiter)rng_below(&e->rng, WAITERS));
}

void end_close_helpers(struct end *e)
{
	waiter_set(e, WAIT_POLL);
	const int fds[] = { e->in_pipe[0], e->in_pipe[1], e->out_pipe[0], e->out_pipe[1], e->file };
	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		CHECK(!close(fds[i]));
}

static bool wants_in(const struct end *e)
{
	return e->does_in && !e->in_ended && !(e->stops_at_total && e->in.offset == e->in.total);
}

static bool wants_out(const struct end *e)
{
	return e->does_out && (e->out.offset < e->out.total || e->staged);
}

bool end_is_done(const struct end *e)
{
	return !wants_in(e) && !wants_out(e);
}

static void arm(struct end *e, int op)
{
	struct epoll_event event = { .data.ptr = e };
	if (e->waiter == WAIT_EDGE)
		event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
	else
		event.events = (wants_in(e) ? EPOLLIN : 0) | (wants_out(e) ? EPOLLOUT : 0) |
			       (e->waiter == WAIT_ONESHOT ? EPOLLONESHOT : 0);
	CHECK(!epoll_ctl(e->set, op, e->fd, &event));
}

void waiter_set(struct end *e, enum waiter waiter)
{
	if (e->set >= 0) {
		CHECK(!epoll_ctl(e->set, EPOLL_CTL_DEL, e->fd, NULL));
		CHECK(!close(e->set));
		e->set = -1;
	}
	e->waiter = waiter;
	if (waiter >= WAIT_LEVEL) {
		e->set = epoll_create1(EPOLL_CLOEXEC);
		CHECK(e->set >= 0);
		arm(e, EPOLL_CTL_ADD);
	}
}

static void wait_polling(struct end *e)
{
	short events = (short)((wants_in(e) ? POLLIN : 0) | (wants_out(e) ? POLLOUT : 0));
	struct pollfd p[2] = { { e->in_pipe[0], POLLIN, 0 }, { e->fd, events, 0 } };
	int n = e->waiter == WAIT_POLL ? poll(p, 2, -1) : ppoll(p, 2, NULL, NULL);
	if (n < 0) {
		CHECK(errno == EINTR);
		return;
	}
	CHECK(n == 1 && p[1].revents);
	e->can_in = (p[1].revents & (POLLIN | POLLERR | POLLHUP)) != 0;
	e->can_out = (p[1].revents & (POLLOUT | POLLERR | POLLHUP)) != 0;
}

static void wait_selecting(struct end *e)
{
	fd_set in, out;
	FD_ZERO(&in);
	FD_ZERO(&out);
	FD_SET(e->in_pipe[0], &in);
	if (wants_in(e))
		FD_SET(e->fd, &in);
	if (wants_out(e))
		FD_SET(e->fd, &out);
	int n = e->waiter == WAIT_SELECT ? select(FD_SETSIZE, &in, &out, NULL, NULL)
					 : pselect(FD_SETSIZE, &in, &out, NULL, NULL, NULL);
	if (n < 0) {
		CHECK(errno == EINTR);
		return;
	}
	CHECK(n > 0 && !FD_ISSET(e->in_pipe[0], &in));
	e->can_in = FD_ISSET(e->fd, &in);
	e->can_out = FD_ISSET(e->fd, &out);
}

static void wait_in_set(struct end *e)
{
	struct epoll_event event;
	if (e->waiter != WAIT_EDGE)
		arm(e, EPOLL_CTL_MOD);
	int n = epoll_wait(e->set, &event, 1, -1);
	if (n < 0) {
		CHECK(errno == EINTR);
		return;
	}
	CHECK(n == 1 && event.data.ptr == e && event.events);
	/* An edge is told once: what was possible before it still is. */
	if (event.events & (EPOLLIN | EPOLLERR | EPOLLHUP))
		e->can_in = true;
	if (event.events & (EPOLLOUT | EPOLLERR | EPOLLHUP))
		e->can_out = true;
}

void waiter_wait(struct end *e)
{
	if (e->waiter <= WAIT_PPOLL)
		wait_polling(e);
	else if (e->waiter <= WAIT_PSELECT)
		wait_selecting(e);
	else
		wait_in_set(e);
}

void end_renumber(struct end *e)
{
	enum waiter waiter = e->waiter;
	waiter_set(e, WAIT_POLL);
	int fd;
	switch (e->fd > 500 ? 0 : rng_below(&e->rng, 4)) {
	case 0:
		fd = dup(e->fd);
		break;
	case 1:
		fd = fcntl(e->fd, F_DUPFD, 60);
		break;
	case 2:
		fd = dup2(e->fd, e->fd + 40);
		break;
	default:
		fd = dup3(e->fd, e->fd + 50, O_CLOEXEC);
	}
	CHECK(fd >= 0 && !close(e->fd));
	e->fd = fd;
	e->can_in = e->can_out = true;
	waiter_set(e, waiter);
}

static void step_direction(struct end *e, bool in)
{
	long n = in ? step_in(e) : step_out(e);
	if (n == STEP_AGAIN && in)
		e->can_in = false;
	else if (n == STEP_AGAIN)
		e->can_out = false;
	else if (n == STEP_END)
		e->in_ended = true;
}

void end_step(struct end *e)
{
	bool in = wants_in(e) && e->can_in, out = wants_out(e) && e->can_out;
	if (in || out)
		step_direction(e, in && (!out || rng_chance(&e->rng, 2)));
	else
		waiter_wait(e);
}

static void set_an_option(struct end *e)
{
	int value = (int)rng_below(&e->rng, 2);
	CHECK(!setsockopt(e->fd, IPPROTO_TCP, TCP_NODELAY, &value, sizeof(value)));
}

/* The whole fd is this thread's alone. */
static void change(struct end *e)
{
	if (rng_chance(&e->rng, 40))
		end_renumber(e);
	if (rng_chance(&e->rng, 40))
		waiter_set(e, (enum waiter)rng_below(&e->rng, WAITERS));
	if (rng_chance(&e->rng, 40))
		e->can_in = e->can_out = true;
}

void end_run(struct end *e)
{
	bool alone = e->does_in && e->does_out;
	while (!end_is_done(e)) {
		end_step(e);
		if (alone && !e->blocking)
			change(e);
		if (rng_chance(&e->rng, 60))
			set_an_option(e);
	}
}
