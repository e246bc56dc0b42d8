// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A program that polls the fd of its channel, which does not block: once it has taken enough events it is woken by the QPs' sockets and
// receives by itself, and still gets an event whenever the fd is readable.
#include "net/qp/channel_wait.h"

#include "../lib/polled_channel.h"
#include "../lib/proc.h"
#include "../lib/tls_ends.h"
#include "../lib/until.h"
#include "base/clock.h"
#include "net/qp/serving.h"
#include "net/qp/uqp_sock.h"
#include "ring/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS 64

void __real_aw_event_fd_raise(int fd);
void __wrap_aw_event_fd_raise(int fd);

static struct aw_cq
	*_Atomic quick; /* its program arms it before the thread that raises its event goes on */

void __wrap_aw_event_fd_raise(int fd)
{
	struct aw_cq *cq = quick;

	__real_aw_event_fd_raise(fd);
	if (cq)
		aw_cq_set_arm(cq, AW_ARM_NEXT);
}

/* A program in a thread of its own, and what comes as a QP's socket joins the fd, before the progress thread goes on. */
static struct {
	_Atomic int sender; /* a socket whose peer joins, or 0 */
	_Atomic long thread;
	_Atomic bool asks, joined, over;
	_Atomic uint32_t answers, refusals;
} program;

/* A tick that takes a QP from the fd's set, and does not go on before the program has its answer, or waits for the QP's lock. */
static struct {
	_Atomic uint32_t handle; /* of the QP that the tick takes */
	_Atomic bool begins_at_look; /* once the program looks at the set */
	_Atomic bool taken, answered;
	_Atomic long program; /* its thread; 0: there is no such tick */
} tick;

int __real_epoll_wait(int epfd, struct epoll_event *events, int max, int timeout_ms);
int __wrap_epoll_wait(int epfd, struct epoll_event *events, int max, int timeout_ms);

int __wrap_epoll_wait(int epfd, struct epoll_event *events, int max, int timeout_ms)
{
	if (tick.begins_at_look && syscall(SYS_gettid) == tick.program && epfd == ch.fd) {
		pair_start_progress();
		until(tick.taken);
	}
	return __real_epoll_wait(epfd, events, max, timeout_ms);
}

int __real_aw_channel_watch(int set, int fd, uint32_t handle, uint32_t events);
int __wrap_aw_channel_watch(int set, int fd, uint32_t handle, uint32_t events);

/* Until the program has its answer for a part of an FPDU, or waits for this thread. */
int __wrap_aw_channel_watch(int set, int fd, uint32_t handle, uint32_t events)
{
	uint32_t answers = program.answers;
	bool joins = set == ch.fd && events != 0 && program.sender && !program.joined;

	if (joins)
		(void)send(program.sender, "", 1, 0);
	int err = __real_aw_channel_watch(set, fd, handle, events);

	/* Two answers: for the message before, and for the part. */
	while (joins && program.answers + program.refusals < answers + 2 &&
	       !(program.asks && !aw_channel_is_filled(&ch) && proc_sleeps(program.thread)))
		sched_yield();
	program.joined |= joins;
	if (tick.program && handle == tick.handle && set == ch.fd && events == 0) {
		tick.taken = true;
		while (!tick.answered && !proc_sleeps(tick.program))
			sched_yield();
	}
	return err;
}

static void channel_watch__the_program_receives(void **state)
{
	struct pair *p = *state;

	until_watched(p);
	for (int i = 0; i < ROUNDS; i++)
		talk(p);
}

/* Every message has its event, though the CQ is as it was before when the progress thread looks. */
static void channel_watch__a_quick_program(void **state)
{
	struct pair *p = *state;

	quick = &p->b.cq;
	until_watched(p);
	quick = NULL;
	talk(p);
}

static void *run_program(void *pair)
{
	struct pair *p = pair;
	struct aw_cq_entry entry;
	void *object;
	int kind;

	program.thread = syscall(SYS_gettid);
	while (!program.over) {
		if (!is_readable(1))
			continue;
		program.asks = true;
		bool refused = aw_channel_await(&ch, &object, &kind) != 0;

		program.asks = false;
		program.refusals += refused;
		aw_cq_arm(&p->b.cq, AW_ARM_NEXT);
		while (aw_cq_poll(&p->b.cq, &entry, 1) > 0)
			;
		program.answers += !refused;
	}
	return NULL;
}

/* Bytes have come when the QP is left to the program, which is woken before the QP is. */
static void channel_watch__woken_by_a_socket_that_joins(void **state)
{
	struct pair *p = *state;
	pthread_t thread;

	memset(&program, 0, sizeof(program));
	program.sender = p->a.qp->fd;
	assert_int_equal(fcntl(ch.fd, F_SETFL, O_NONBLOCK), 0);
	aw_cq_arm(&p->b.cq, AW_ARM_NEXT);
	assert_int_equal(pthread_create(&thread, NULL, run_program, p), 0);
	for (uint32_t answers = 1; !program.joined; answers++) {
		post_receive(p);
		end_post(&p->a, AW_OP_SEND, &p->b, 4);
		end_wait_cqe(&p->a);
		while (program.answers + program.refusals < answers)
			sched_yield();
	}
	program.over = true;
	pthread_join(thread, NULL);
	assert_int_equal(program.refusals, 0);
}

static void write_octet(struct pair *p, uint8_t octet)
{
	p->a.buf[0] = octet;
	end_post(&p->a, AW_OP_WRITE, &p->b, 1);
	assert_true(is_readable((int)(UQP_PAIR_WAIT_NS / 1000000)));
}

/* As after a completion that was polled before its event. Then the progress thread is back. */
static void channel_watch__an_event_of_an_empty_cq(void **state)
{
	struct pair *p = *state;
	struct aw_cq_entry entry;
	void *object;
	int kind;

	until_watched(p);
	aw_cq_arm(&p->b.cq, AW_ARM_NEXT);
	write_octet(p, 'w');
	assert_int_equal(aw_channel_await(&ch, &object, &kind), 0);
	assert_ptr_equal(object, p->b.cq.event.object);
	assert_int_equal(octet_at(p->b.buf), 'w');
	assert_int_equal(p->b.cq.armed, AW_ARM_NONE);
	assert_int_equal(aw_cq_poll(&p->b.cq, &entry, 1), 0);
	assert_not_readable();
	assert_int_equal(aw_channel_await(&ch, &object, &kind), EAGAIN);
	pair_start_progress();
	end_wait_cqe(&p->a);
	uqp_wait_taken_back(p->b.qp, &ch);
	for (uint32_t i = 1; i < 2 * AW_EVENTFUL_MIN; i++) {
		talk(p);
		assert_false(uqp_is_eventful(p->b.qp));
		assert_int_equal(ch.watched, 0);
	}
	until_watched(p);
}

/*
 * A part of an FPDU, by which the socket is readable; the stream is no good any more. Through memory it is a bell, such as comes
 * behind another thread that has taken the bytes.
 */
static void channel_watch__an_event_for_a_part(void **state)
{
	struct pair *p = *state;
	void *object;
	int kind;

	until_watched(p);
	aw_cq_arm(&p->b.cq, AW_ARM_NEXT);
	assert_int_equal(send(p->a.qp->fd, "", 1, 0), 1);
	assert_true(is_readable((int)(UQP_PAIR_WAIT_NS / 1000000)));
	assert_int_equal(aw_channel_await(&ch, &object, &kind), 0);
	assert_int_equal(aw_channel_await(&ch, &object, &kind), EAGAIN);
	assert_not_readable();
}

/* Through memory, likewise. It says nothing of the messages, so the QP stays with the program. */
static void channel_watch__a_bell_takes_nothing_back(void **state)
{
	struct pair *p = *state;

	if (!end_is_in_memory(&p->b, true))
		return;
	until_watched(p);
	for (int i = 0; i < ROUNDS; i++) {
		aw_cq_arm(&p->b.cq, AW_ARM_NEXT);
		assert_int_equal(aw_tls_or_plain_send(p->a.qp->fd, p->a.qp->tls, "", 1), 1);
		take();
		assert_true(uqp_is_eventful(p->b.qp));
		talk(p);
	}
	assert_int_equal(ch.watched, 1);
}

/* What a poll has taken leaves its bell, for which there is an event. */
static void channel_watch__an_event_for_what_a_poll_took(void **state)
{
	struct pair *p = *state;
	struct aw_cq_entry entry;

	if (!end_is_in_memory(&p->b, true))
		return;
	until_watched(p);
	for (int i = 0; i < ROUNDS; i++) {
		post_receive(p);
		end_post(&p->a, AW_OP_SEND, &p->b, 4);
		while (aw_cq_poll(&p->b.cq, &entry, 1) == 0)
			;
		end_wait_cqe(&p->a);
		aw_cq_arm(&p->b.cq, AW_ARM_NEXT);
		take();
		assert_int_equal(aw_cq_poll(&p->b.cq, &entry, 1), 0);
		talk(p);
	}
	assert_int_equal(ch.watched, 1);
}

/* Likewise, but it came without a bell as the QP fell asleep, so that its socket's room has woken the program. */
static void channel_watch__an_event_for_room_behind_which_a_poll_took(void **state)
{
	struct pair *p = *state;
	struct aw_uqp *qp = p->b.qp;
	struct aw_cq_entry entry;
	void *object;
	int kind;

	if (!end_is_in_memory(&p->b, true))
		return;
	until_watched(p);
	post_receive(p);
	aw_lock(&qp->lock);
	aw_duplex_wake(&qp->ring->duplex);
	aw_unlock(&qp->lock);
	end_post(&p->a, AW_OP_SEND, &p->b, 4);
	end_wait_cqe(&p->a);
	aw_lock(&qp->lock);
	qp->ring->drained = true;
	aw_uqp_push(qp);
	aw_uqp_unlock(qp);
	assert_true(is_readable(0));
	while (aw_cq_poll(&p->b.cq, &entry, 1) == 0)
		;
	aw_cq_arm(&p->b.cq, AW_ARM_NEXT);
	assert_int_equal(aw_channel_await(&ch, &object, &kind), 0);
	assert_int_equal(aw_channel_await(&ch, &object, &kind), EAGAIN);
}

/* A part of an FPDU has made the fd readable, but the progress thread's tick takes it before the program comes. */
static void channel_watch__an_event_for_what_a_tick_took(void **state)
{
	struct pair *p = *state;
	void *object;
	int kind;

	until_watched(p);
	aw_cq_arm(&p->b.cq, AW_ARM_NEXT);
	assert_int_equal(send(p->a.qp->fd, "", 1, 0), 1);
	assert_true(is_readable((int)(UQP_PAIR_WAIT_NS / 1000000)));
	pair_start_progress();
	uqp_wait_received(p->b.qp);
	uqp_wait_taken_back(p->b.qp, &ch);
	assert_int_equal(aw_channel_await(&ch, &object, &kind), 0);
	assert_ptr_equal(object, p->b.cq.event.object);
	assert_int_equal(aw_channel_await(&ch, &object, &kind), EAGAIN);
	assert_not_readable();
}

/* Likewise, but the tick takes the QP back, and the progress thread finds its socket readable. */
static void channel_watch__an_event_for_what_was_taken_back(void **state)
{
	struct pair *p = *state;
	void *object;
	int kind;

	until_watched(p);
	aw_cq_arm(&p->b.cq, AW_ARM_NEXT);
	assert_int_equal(send(p->a.qp->fd, "", 1, 0), 1);
	assert_true(is_readable((int)(UQP_PAIR_WAIT_NS / 1000000)));
	aw_lock(&p->b.qp->lock);
	aw_eventful_end(&p->b.qp->serving.eventful);
	aw_unlock(&p->b.qp->lock);
	aw_serving_look_again();
	pair_start_progress();
	uqp_wait_taken_back(p->b.qp, &ch);
	uqp_wait_received(p->b.qp);
	assert_int_equal(aw_channel_await(&ch, &object, &kind), 0);
	assert_int_equal(aw_channel_await(&ch, &object, &kind), EAGAIN);
	assert_not_readable();
}

/*
 * Likewise, but the program comes when the tick has taken the QP from the set and has not received yet, or has already looked for
 * QPs that move. Another QP stays, so that the set is looked at. One of two that move before and behind the look is enough.
 */
static void while_a_tick_takes(struct pair *p, bool begins_at_look)
{
	struct pair other;
	struct pair *const pairs[] = { p, &other };
	void *object;
	int kind;

	end_make(&other.a, &p->pd, NULL);
	end_make_on(&other.b, &p->pd, &p->b.cq);
	pair_attach(&other);
	until_all_watched(pairs, 2);
	aw_cq_arm(&p->b.cq, AW_ARM_NEXT);
	assert_int_equal(send(p->a.qp->fd, "", 1, 0), 1);
	assert_true(is_readable((int)(UQP_PAIR_WAIT_NS / 1000000)));
	aw_lock(&p->b.qp->lock);
	aw_eventful_end(&p->b.qp->serving.eventful);
	aw_unlock(&p->b.qp->lock);
	tick.taken = tick.answered = false;
	tick.handle = p->b.qp->handle;
	tick.begins_at_look = begins_at_look;
	tick.program = syscall(SYS_gettid);
	aw_serving_look_again();
	if (!begins_at_look) {
		pair_start_progress();
		until(tick.taken);
	}
	int err = aw_channel_await(&ch, &object, &kind);

	tick.answered = true;
	int again = aw_channel_await(&ch, &object, &kind);

	tick.program = 0;
	pair_start_progress();
	end_destroy(&other.a);
	end_destroy(&other.b);
	assert_int_equal(err, 0);
	assert_int_equal(again, EAGAIN);
}

static void channel_watch__an_event_for_what_a_tick_is_taking(void **state)
{
	while_a_tick_takes(*state, false);
}

static void channel_watch__an_event_for_what_a_tick_takes_at_the_look(void **state)
{
	while_a_tick_takes(*state, true);
}

/* Room has made the fd readable, but a post fills it before the program comes. */
static void channel_watch__an_event_for_room_that_a_post_took(void **state)
{
	struct pair *p = *state;
	struct aw_cq_entry entry;
	void *object;
	int kind;

	until_watched(p);
	while (!end_is_full(&p->b))
		end_write_unsignalled(&p->b, &p->a, BUF_OCTETS);
	aw_cq_arm(&p->b.cq, AW_ARM_NEXT);
	assert_false(aw_channel_is_filled(&ch));
	repeat_until(is_readable(0)) aw_cq_poll(&p->a.cq, &entry, 1);
	assert_int_equal(p->b.cq.armed, AW_ARM_NEXT);
	end_write_unsignalled(&p->b, &p->a, 1);
	assert_true(aw_channel_is_filled(&ch));
	assert_int_equal(aw_channel_await(&ch, &object, &kind), 0);
	assert_ptr_equal(object, p->b.cq.event.object);
}

/* The end of the stream: the event is that of the receive that is flushed, and the program is woken no more. */
static void channel_watch__an_event_for_the_end(void **state)
{
	struct pair *p = *state;
	void *object;
	int kind;

	until_watched(p);
	aw_cq_arm(&p->b.cq, AW_ARM_NEXT);
	aw_uqp_close(p->a.qp);
	assert_true(is_readable((int)(UQP_PAIR_WAIT_NS / 1000000)));
	assert_int_equal(aw_channel_await(&ch, &object, &kind), 0);
	assert_int_equal(aw_channel_await(&ch, &object, &kind), EAGAIN);
	assert_not_readable();
	assert_int_equal(ch.watched, 0);
}

/* No event of a CQ that the program has not armed: another thread may be at work with it. */
static void channel_watch__no_event_of_a_cq_that_is_not_armed(void **state)
{
	struct pair *p = *state;
	void *object;
	int kind;

	until_watched(p);
	assert_int_equal(p->b.cq.armed, AW_ARM_NONE);
	write_octet(p, 'u');
	assert_int_equal(aw_channel_await(&ch, &object, &kind), EAGAIN);
	assert_int_equal(octet_at(p->b.buf), 'u');
	assert_not_readable();
	pair_start_progress();
	end_wait_cqe(&p->a);
	uqp_wait_taken_back(p->b.qp, &ch);
	assert_int_equal(ch.watched, 0);
}

/* The program may come late, or never: a tick serves the QP, and the event is there. */
static void channel_watch__watched_by_nobody_any_more(void **state)
{
	struct pair *p = *state;

	until_watched(p);
	pair_start_progress();
	p->a.buf[0] = 'l';
	end_post(&p->a, AW_OP_WRITE, &p->b, 1);
	end_wait_cqe(&p->a);
	while (octet_at(p->b.buf) != 'l')
		sched_yield();
	uqp_wait_taken_back(p->b.qp, &ch);
	talk(p);
}

static void *send_to_a_sleeper(void *pair)
{
	struct pair *p = pair;

	while (ch.waiters == 0)
		sched_yield();
	end_post(&p->a, AW_OP_SEND, &p->b, 4);
	return NULL;
}

/* The program has made the fd block again: the sleep ends by the sockets of both sets. */
static void channel_watch__a_sleeper_is_woken(void **state)
{
	struct pair *p = *state;
	pthread_t thread;
	void *object;
	int kind;

	until_watched(p);
	assert_int_equal(fcntl(ch.fd, F_SETFL, 0), 0);
	post_receive(p);
	aw_cq_arm(&p->b.cq, AW_ARM_NEXT);
	assert_int_equal(pthread_create(&thread, NULL, send_to_a_sleeper, p), 0);
	assert_int_equal(aw_channel_await(&ch, &object, &kind), 0);
	pthread_join(thread, NULL);
	assert_int_equal(end_wait_cqe(&p->b).queue, AW_RQ);
}

/* Two QPs of one CQ: one event for what both have received. */
static void channel_watch__several_qps(void **state)
{
	struct pair *p = *state, other;
	struct pair *const pairs[] = { p, &other };
	struct aw_cq_entry entries[2];

	end_make(&other.a, &p->pd, NULL);
	end_make_on(&other.b, &p->pd, &p->b.cq);
	pair_attach(&other);
	until_all_watched(pairs, 2);
	assert_int_equal(ch.only_qp, AW_CHANNEL_MANY);
	for (int i = 0; i < ROUNDS; i++) {
		post_receive(p);
		post_receive(&other);
		aw_cq_arm(&p->b.cq, AW_ARM_NEXT);
		end_post(&p->a, AW_OP_SEND, &p->b, 4);
		end_post(&other.a, AW_OP_SEND, &other.b, 4);
		take();
		assert_int_equal(aw_cq_poll(&p->b.cq, entries, 2), 2);
		end_wait_cqe(&p->a);
		end_wait_cqe(&other.a);
	}
	pair_start_progress();
	end_destroy(&other.a);
	end_destroy(&other.b);
}

static int use_channel_of_the_child(void)
{
	static struct aw_source source;
	void *object;
	int kind;

	if (is_readable(0) || aw_channel_await(&ch, &object, &kind) != EAGAIN)
		return 1;
	aw_source_init(&source, &source, 7);
	aw_channel_raise(&ch, &source);
	if (!is_readable(0) || aw_channel_await(&ch, &object, &kind) != 0 || kind != 7)
		return 2;
	return is_readable(0) ? 3 : 0;
}

/* Bytes have come for the parent's QP: the child's fd, of the same number, is not readable, and the parent's is. */
static void channel_watch__a_child_has_its_own(void **state)
{
	struct pair *p = *state;
	void *object;
	int kind, status;

	until_watched(p);
	aw_cq_arm(&p->b.cq, AW_ARM_NEXT);
	write_octet(p, 'f');
	pair_start_progress();
	pid_t pid = fork();

	if (pid == 0)
		_exit(use_channel_of_the_child());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	/* Whoever has received it has left an event. */
	while (aw_channel_await(&ch, &object, &kind) != 0)
		sched_yield();
	assert_int_equal(octet_at(p->b.buf), 'f');
	talk(p);
}

int main(void)
{
	if (tls_is_asked())
		pair_secure = tls_shake_hands;
	const struct CMUnitTest tests[] = {
		CASE(channel_watch__the_program_receives),
		CASE(channel_watch__a_quick_program),
		CASE(channel_watch__woken_by_a_socket_that_joins),
		CASE(channel_watch__an_event_of_an_empty_cq),
		CASE(channel_watch__an_event_for_a_part),
		CASE(channel_watch__a_bell_takes_nothing_back),
		CASE(channel_watch__an_event_for_what_a_poll_took),
		CASE(channel_watch__an_event_for_room_behind_which_a_poll_took),
		CASE(channel_watch__an_event_for_what_a_tick_took),
		CASE(channel_watch__an_event_for_what_was_taken_back),
		CASE(channel_watch__an_event_for_what_a_tick_is_taking),
		CASE(channel_watch__an_event_for_what_a_tick_takes_at_the_look),
		CASE(channel_watch__an_event_for_room_that_a_post_took),
		CASE(channel_watch__an_event_for_the_end),
		CASE(channel_watch__no_event_of_a_cq_that_is_not_armed),
		CASE(channel_watch__watched_by_nobody_any_more),
		CASE(channel_watch__a_sleeper_is_woken),
		CASE(channel_watch__several_qps),
		CASE(channel_watch__a_child_has_its_own),
	};

	return cmocka_run_group_tests(tests, tls_group_setup, tls_group_teardown);
}
