// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Two conns to one peer, which listens only after it has refused the first.
#include "core/attempt.h"

#include "../lib/conn_scene.h"
#include "../lib/tcp.h"
#include "net/conn/conn_machine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#define NEVER_MS 3600000

/* The private data. */
enum {
	EARLY = 'e',
	LATE = 'l'
};

static struct {
	struct aw_conn *early, *late;
	int peer[2]; /* as TCP accepts them */
	bool unseen; /* the refusal is not handled yet when the late conn begins */
} two;

static void start_as(struct scene *s, uint8_t name, bool again, struct aw_conn **conn)
{
	const struct aw_conn_ask ask = {
		.peer = (struct sockaddr *)&s->addr,
		.local = &scene_plain,
		.pd = &name,
		.pd_len = 1,
		.again = again,
	};

	assert_int_equal(aw_conn_connect(tcp_socket(AF_INET), &ask, heard_fn, &s->heard, conn), 0);
}

static void start(struct scene *s, uint8_t name, struct aw_conn **conn)
{
	start_as(s, name, false, conn);
}

/* The name in the Request of the connection that TCP accepts next. */
static uint8_t accept_next(struct scene *s)
{
	int *peer = two.peer[0] < 0 ? &two.peer[0] : &two.peer[1];
	uint8_t request[MPA_HDR_LEN + 1];

	*peer = tcp_accept(s->listener);
	tcp_recv(*peer, request, sizeof(request));
	return request[MPA_HDR_LEN];
}

/*
 * The early conn is refused. A listener is there when the late one begins; the progress thread stands still, so that the early
 * one has not been tried again.
 */
static void refuse_then_listen(struct scene *s)
{
	close(s->listener);
	s->listener = tcp_bind(AF_INET, &s->addr); /* refuses, until it listens */
	assert_int_equal(fcntl(s->listener, F_SETFL, 0), 0);
	scene_hold_engine(s);
	start(s, EARLY, &two.early);
	if (!two.unseen)
		aw_conn_on_watch(&two.early->watch, EPOLLOUT | EPOLLERR | EPOLLHUP);
	assert_int_equal(listen(s->listener, 4), 0);
	start(s, LATE, &two.late);
	assert_false(aw_conn_has_asked(two.late));
}

static int setup(void **state)
{
	two.early = two.late = NULL;
	two.peer[0] = two.peer[1] = -1;
	two.unseen = false;
	return scene_setup(state);
}

static int teardown(void **state)
{
	if (two.early)
		aw_conn_destroy(two.early);
	if (two.late)
		aw_conn_destroy(two.late);
	close(two.peer[0]);
	close(two.peer[1]);
	return scene_teardown(state);
}

static void conn_connect__a_refused_one_first(void **state)
{
	struct scene *s = *state;

	refuse_then_listen(s);
	scene_free_engine(s);
	assert_int_equal(accept_next(s), EARLY);
	assert_int_equal(accept_next(s), LATE);
}

static void conn_connect__one_just_refused_first(void **state)
{
	two.unseen = true;
	conn_connect__a_refused_one_first(state);
}

static void conn_connect__no_longer_than_the_tries_last(void **state)
{
	struct scene *s = *state;

	refuse_then_listen(s);
	aw_watch_deadline(&two.early->watch, NEVER_MS);
	scene_free_engine(s);
	assert_int_equal(accept_next(s), LATE);
}

static void conn_destroy__a_refused_one(void **state)
{
	struct scene *s = *state;

	refuse_then_listen(s);
	aw_watch_deadline(&two.early->watch, NEVER_MS);
	aw_watch_deadline(&two.late->watch, NEVER_MS);
	scene_free_engine(s);
	aw_conn_destroy(two.early);
	two.early = NULL;
	assert_int_equal(accept_next(s), LATE);
}

static void conn_destroy__one_that_waits(void **state)
{
	struct scene *s = *state;

	refuse_then_listen(s);
	aw_watch_deadline(&two.late->watch, NEVER_MS);
	scene_free_engine(s);
	aw_conn_destroy(two.late);
	two.late = NULL;
	assert_int_equal(accept_next(s), EARLY);
}

/* The late one fails as it would have alone. */
static void conn_connect__both_are_refused(void **state)
{
	struct scene *s = *state;

	scene_hold_engine(s);
	close(s->listener);
	s->listener = tcp_bind(AF_INET, &s->addr);
	start(s, EARLY, &two.early);
	start(s, LATE, &two.late);
	scene_free_engine(s);
	heard_await(&s->heard, 0, AW_CONN_FAILED);
	heard_await(&s->heard, 1, AW_CONN_FAILED);
	assert_int_equal(aw_conn_info(two.early)->err, ECONNREFUSED);
	assert_int_equal(aw_conn_info(two.late)->err, ECONNREFUSED);
	assert_int_equal(two.late->refusals, AW_ATTEMPT_REFUSALS_MAX);
}

/* In place of a conn that failed, such as the tries behind a close without a Reply. */
static void conn_connect__again(void **state)
{
	struct scene *s = *state;
	struct aw_conn *conn;

	refuse_then_listen(s);
	start_as(s, LATE, true, &conn);
	assert_true(aw_conn_has_asked(conn));
	scene_free_engine(s);
	aw_conn_destroy(conn);
}

static void conn_connect__elsewhere(void **state)
{
	struct scene *s = *state;
	struct sockaddr_storage here;
	struct aw_conn *conn;
	int listener;

	refuse_then_listen(s);
	here = s->addr;
	listener = tcp_listen(1, &s->addr);
	start(s, EARLY, &conn);
	s->addr = here;
	assert_true(aw_conn_has_asked(conn));
	scene_free_engine(s);
	aw_conn_destroy(conn);
	close(listener);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(conn_connect__a_refused_one_first),
		TEST(conn_connect__one_just_refused_first),
		TEST(conn_connect__no_longer_than_the_tries_last),
		TEST(conn_destroy__a_refused_one),
		TEST(conn_destroy__one_that_waits),
		TEST(conn_connect__both_are_refused),
		TEST(conn_connect__again),
		TEST(conn_connect__elsewhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
