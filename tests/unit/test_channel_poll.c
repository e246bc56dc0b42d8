// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A program that waits for a channel's fd by select(2), poll(2) or epoll(7): whatever its QP receives, the fd is readable
// only where ibv_get_cq_event has an event.
#include "net/qp/channel_wait.h"

#include "../lib/polled_channel.h"
#include "net/qp/serving.h"
#include "net/qp/times.h"
#include "ring/lock.h"

#include <errno.h>
#include <fcntl.h>

/* A server of many messages: what the library learns of a program's ways it has learnt by then. */
#define ROUNDS 64

/*
 * A Write, which has no event: the progress thread looks at the socket, where the bytes are, only when the fd has been looked
 * at.
 */
static void write_unseen(struct pair *p, uint8_t octet)
{
	pair_stop_progress();
	p->a.buf[0] = octet;
	end_post(&p->a, AW_OP_WRITE, &p->b, 1);
	assert_not_readable();
	pair_start_progress();
	end_wait_cqe(&p->a);
	while (octet_at(p->b.buf) != octet)
		assert_not_readable();
	assert_not_readable();
}

static void talk_and_write(struct pair *p)
{
	for (int round = 0; round < ROUNDS; round++) {
		talk(p);
		write_unseen(p, (uint8_t)(round + 1));
	}
}

static void channel_poll__readable_for_events_alone(void **state)
{
	talk_and_write(*state);
}

static void channel_poll__readable_for_events_alone_without_blocking(void **state)
{
	void *object;
	int kind;

	assert_int_equal(fcntl(ch.fd, F_SETFL, O_NONBLOCK), 0);
	talk_and_write(*state);
	assert_int_equal(aw_channel_await(&ch, &object, &kind), EAGAIN);
}

static void channel_poll__blocking_is_never_watched(void **state)
{
	struct pair *p = *state;

	for (uint32_t i = 0; i < 2 * AW_EVENTFUL_MIN; i++)
		talk(p);
	assert_int_equal(ch.watched, 0);
}

/*
 * While the program comes the progress thread's tick asks no QP, though no poll looks at sockets, which the program's next sleep does; nor
 * while it comes to other channels, until this one was silent for so long that the tick serves the QP.
 */
static void channel_poll__no_look_while_the_program_comes(void **state)
{
	uint32_t looks = 0;

	until_watched(*state);
	aw_serving_lock();
	aw_activity_count(&ch.waiting.turns, 1);
	(void)aw_serving_count_ticks();
	bool looks_when_silent = aw_serving_count_ticks();
	for (int i = 0; i < 3 * AW_SILENT_TICKS; i++) {
		aw_activity_count(&ch.waiting.turns, i <= 2 * AW_SILENT_TICKS);
		aw_serving_loop_turns();
		looks += aw_serving_count_ticks();
	}
	aw_serving_loop_turns();
	bool looks_to_serve = aw_serving_count_ticks();

	aw_serving_unlock();
	assert_int_equal(looks, 0);
	assert_true(looks_when_silent && looks_to_serve);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(channel_poll__readable_for_events_alone),
		CASE(channel_poll__readable_for_events_alone_without_blocking),
		CASE(channel_poll__blocking_is_never_watched),
		CASE(channel_poll__no_look_while_the_program_comes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
