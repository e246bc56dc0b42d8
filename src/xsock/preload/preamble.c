// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Keeps a deadline in each socket with a partial preamble, and the first of these deadlines for the
// threads that wait.
#include "xsock/preload/preamble.h"

#include <time.h>

#include "base/clock.h"
#include "xsock/base/libc.h"
#include "xsock/base/sockopt.h"
#include "xsock/preload/first_io.h"
#include "xsock/preload/probe.h"

#define REST_MS 200 /* a key comes in one piece, as a rule */
#define OVER_MAX 64 /* sockets that one pass settles */
#define NS INT64_C(1000000000)

/* No partial preamble is over before this time. Written under the table's lock. */
static _Atomic(int64_t) soonest_ns = INT64_MAX;

int aw_preamble_ms(void)
{
	int wait_ms = aw_probe_wait_ms(REST_MS);

	return wait_ms > REST_MS ? wait_ms : REST_MS;
}

static void set_lowat(int fd, int bytes)
{
	(void)aw_libc()->setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &bytes, sizeof(bytes));
}

/* Sets sock's deadline. The caller holds the table's lock. */
static void begin_preamble(struct aw_sock *sock, int fd)
{
	sock->lowat = aw_sockopt_int(fd, SOL_SOCKET, SO_RCVLOWAT, 1);
	sock->preamble_ns = aw_now_ns() + INT64_C(1000000) * aw_preamble_ms();
	if (sock->preamble_ns < soonest_ns)
		soonest_ns = sock->preamble_ns;
}

/*
 * A thread that sleeps in epoll_wait does not know the new deadline: the kernel reports POLLOUT, so
 * that the thread wakes and computes its wait anew; the program does not see that event. A one-shot
 * registration whose event was delivered stays as it is.
 */
void aw_preamble_wake(const struct aw_sock *sock)
{
	for (struct aw_registration *reg = sock->registrations; reg; reg = reg->next) {
		struct epoll_event event = reg->event;

		event.events |= EPOLLOUT | EPOLLET;
		if (!reg->delivered)
			aw_libc()->epoll_ctl(reg->epfd, EPOLL_CTL_MOD, reg->fd, &event);
	}
}

bool aw_preamble_lasts(int fd, size_t bytes)
{
	struct aw_sock *sock;
	bool lasts = false;

	aw_fdtab_lock();
	sock = aw_fdtab_get(fd);
	if (sock && sock->state == AW_FD_PENDING && !aw_first_io_poll(fd, POLLRDHUP, 0)) {
		bool first = !sock->preamble_ns;

		if (first)
			begin_preamble(sock, fd);
		lasts = aw_now_ns() < sock->preamble_ns;
		if (lasts)
			set_lowat(fd, (int)bytes + 1);
		if (first)
			aw_preamble_wake(sock);
	}
	aw_fdtab_unlock();
	return lasts;
}

bool aw_preamble_is_over(const struct aw_sock *sock)
{
	return sock->preamble_ns && aw_now_ns() >= sock->preamble_ns;
}

bool aw_preamble_hides(int fd)
{
	struct aw_sock sock;

	return soonest_ns != INT64_MAX && aw_fdtab_look(fd, &sock) && sock.preamble_ns;
}

void aw_preamble_end(struct aw_sock *sock)
{
	int fd = aw_fdtab_next_fd(sock, -1);

	if (!sock->preamble_ns)
		return;
	sock->preamble_ns = 0;
	if (fd < 0)
		return;
	for (struct aw_registration *reg = sock->registrations; reg; reg = reg->next)
		if (!reg->delivered)
			aw_libc()->epoll_ctl(reg->epfd, EPOLL_CTL_MOD, reg->fd, &reg->event);
	/* if the bytes suffice now, the kernel wakes the threads that wait */
	set_lowat(fd, sock->lowat);
}

const struct timespec *aw_preamble_left(const struct aw_deadline *deadline, struct timespec *left)
{
	struct aw_deadline sooner = { soonest_ns };

	if (sooner.at_ns == INT64_MAX || (deadline->at_ns >= 0 && deadline->at_ns < sooner.at_ns))
		sooner = *deadline;
	return aw_deadline_left(&sooner, left);
}

/* The sockets whose deadline is over at now_ns, and the first deadline of the others. */
struct over {
	int64_t now_ns, next_ns;
	int fds[OVER_MAX];
	int count;
};

static void collect_over(struct aw_sock *sock, int fd, void *arg)
{
	struct over *over = arg;

	if (!sock->preamble_ns)
		return;
	if (sock->preamble_ns <= over->now_ns && over->count < OVER_MAX)
		over->fds[over->count++] = fd;
	else if (sock->preamble_ns < over->next_ns)
		over->next_ns = sock->preamble_ns;
}

void aw_preamble_settle(void)
{
	struct over over = { .now_ns = aw_now_ns(), .next_ns = INT64_MAX };

	if (soonest_ns > over.now_ns)
		return;
	aw_fdtab_lock();
	aw_fdtab_each(collect_over, &over);
	soonest_ns = over.next_ns;
	aw_fdtab_unlock();
	for (int i = 0; i < over.count; i++)
		(void)aw_first_io_make(over.fds[i], AW_FIRST_POLL, true);
}
