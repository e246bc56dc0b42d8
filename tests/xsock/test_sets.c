// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// epoll registrations survive the swap of the file behind an fd.
#include "xsock/process/registration.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <fcntl.h>
#include <unistd.h>

struct scene {
	int epfd, fd, pair[2];
	struct aw_sock *sock;
};

/* fd, one end of a pair, is to be swapped for pair[0]. */
static void open_scene_in(enum aw_fd_state state, struct scene *s, uint32_t events)
{
	struct aw_sock like = { .state = state };
	struct epoll_event event = { .events = events, .data.u64 = 77 };
	int old[2];

	s->epfd = epoll_create1(0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, old), 0);
	close(old[1]);
	s->fd = old[0];
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, s->pair), 0);
	assert_true(aw_fdtab_add(s->fd, &like));
	assert_int_equal(epoll_ctl(s->epfd, EPOLL_CTL_ADD, s->fd, &event), 0);
	aw_fdtab_lock();
	s->sock = aw_fdtab_get(s->fd);
	aw_registration_note(s->sock, s->epfd, EPOLL_CTL_ADD, s->fd, &event, false);
}

static void open_scene(struct scene *s, uint32_t events)
{
	open_scene_in(AW_FD_PENDING, s, events);
}

static void close_scene(struct scene *s)
{
	aw_fdtab_unlock();
	aw_fdtab_forget(s->fd);
	close(s->fd);
	close(s->pair[0]);
	close(s->pair[1]);
	close(s->epfd);
}

/* What the set tells within no time. */
static uint32_t told(const struct scene *s)
{
	struct epoll_event event;

	if (epoll_wait(s->epfd, &event, 1, 0) == 0)
		return 0;
	assert_int_equal(event.data.u64, 77);
	return event.events;
}

static void watch__a_registration_moves(void **state)
{
	struct scene s;

	(void)state;
	open_scene(&s, EPOLLIN);
	assert_int_equal(aw_registration_swap(s.sock, s.fd, s.pair[0]), 0);
	assert_int_equal(told(&s), 0);
	assert_int_equal(write(s.pair[1], "x", 1), 1);
	assert_int_equal(told(&s), EPOLLIN);
	close_scene(&s);
}

static void watch__an_edge_is_told_once(void **state)
{
	struct scene s;

	(void)state;
	open_scene(&s, EPOLLOUT | EPOLLET);
	assert_int_equal(aw_registration_swap(s.sock, s.fd, s.pair[0]), 0);
	assert_int_equal(told(&s), EPOLLOUT);
	assert_int_equal(told(&s), 0);
	close_scene(&s);
}

/* What fired and was kept from the program has not. */
static void watch__one_shot_that_was_told_stays_silent(void **state)
{
	struct scene s;

	(void)state;
	for (int was_delivered = 0; was_delivered < 2; was_delivered++) {
		open_scene(&s, EPOLLOUT | EPOLLONESHOT);
		assert_true(told(&s) & EPOLLHUP);
		s.sock->registrations->delivered = was_delivered;
		assert_int_equal(aw_registration_swap(s.sock, s.fd, s.pair[0]), 0);
		assert_int_equal(told(&s), was_delivered ? 0 : EPOLLOUT);
		close_scene(&s);
	}
}

static void watch__what_was_taken_out_stays_out(void **state)
{
	struct scene s;

	(void)state;
	open_scene(&s, EPOLLOUT);
	assert_int_equal(epoll_ctl(s.epfd, EPOLL_CTL_DEL, s.fd, NULL), 0);
	aw_registration_note(s.sock, s.epfd, EPOLL_CTL_DEL, s.fd, NULL, false);
	assert_null(s.sock->registrations);
	assert_int_equal(aw_registration_swap(s.sock, s.fd, s.pair[0]), 0);
	assert_int_equal(told(&s), 0);
	close_scene(&s);
}

/* The set is gone, or knows nothing of fd any more: nobody has told us. */
static void watch__an_unknown_set_is_forgotten(void **state)
{
	struct scene s;

	(void)state;
	open_scene(&s, EPOLLOUT);
	assert_int_equal(epoll_ctl(s.epfd, EPOLL_CTL_DEL, s.fd, NULL), 0);
	assert_int_equal(aw_registration_swap(s.sock, s.fd, s.pair[0]), 0);
	assert_int_equal(told(&s), 0);
	assert_null(s.sock->registrations);
	close_scene(&s);
}

static void watch__close_on_exec_is_kept(void **state)
{
	struct scene s;

	(void)state;
	open_scene(&s, EPOLLIN);
	assert_int_equal(fcntl(s.fd, F_SETFD, FD_CLOEXEC), 0);
	assert_int_equal(aw_registration_swap(s.sock, s.fd, s.pair[0]), 0);
	assert_int_equal(fcntl(s.fd, F_GETFD), FD_CLOEXEC);
	close_scene(&s);
}

static void watch__finds_who_is_registered(void **state)
{
	epoll_data_t data = { .u64 = 77 };
	struct aw_sock *sock = NULL;
	struct scene s;

	(void)state;
	open_scene(&s, EPOLLIN);
	assert_non_null(aw_registration_find(s.epfd, data, &sock));
	assert_ptr_equal(sock, s.sock);
	assert_null(aw_registration_find(s.epfd + 1, data, &sock));
	data.u64 = 78;
	assert_null(aw_registration_find(s.epfd, data, &sock));
	close_scene(&s);
}

/* While it connects, POLLOUT is asked for, too; then no more. */
static void watch__widens_and_narrows(void **state)
{
	struct scene s;

	(void)state;
	open_scene_in(AW_FD_CONNECTING, &s, EPOLLIN);
	assert_int_equal(aw_registration_swap(s.sock, s.fd, s.pair[0]), 0);
	aw_registration_widen(s.sock);
	assert_int_equal(told(&s), EPOLLOUT);
	aw_registration_narrow(s.sock);
	assert_int_equal(told(&s), 0);
	close_scene(&s);
}

/* What was accepted was never widened, and a one-shot registration would be armed once more. */
static void watch__an_accepted_one_is_left_alone(void **state)
{
	struct scene s;

	(void)state;
	open_scene(&s, EPOLLIN | EPOLLONESHOT);
	assert_true(told(&s) & EPOLLIN);
	aw_registration_narrow(s.sock);
	assert_int_equal(told(&s), 0);
	close_scene(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(watch__a_registration_moves),
		cmocka_unit_test(watch__an_edge_is_told_once),
		cmocka_unit_test(watch__one_shot_that_was_told_stays_silent),
		cmocka_unit_test(watch__what_was_taken_out_stays_out),
		cmocka_unit_test(watch__an_unknown_set_is_forgotten),
		cmocka_unit_test(watch__close_on_exec_is_kept),
		cmocka_unit_test(watch__finds_who_is_registered),
		cmocka_unit_test(watch__widens_and_narrows),
		cmocka_unit_test(watch__an_accepted_one_is_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
