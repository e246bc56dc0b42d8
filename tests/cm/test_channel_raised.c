// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The fd of an event channel: while one thread raises it, another one has raised it for an event of its own, and a third takes both
// events; and where a reader sleeps. The libraries' ioctl(2), which raises the fd, their poll(2) and syscall(2) are this program's.
#define _GNU_SOURCE
#include "../lib/proc.h"
#include "../lib/until.h"
#include "cm.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static _Thread_local bool is_held;
static _Atomic bool holds, arrived, waits, done;
static _Atomic int raises;

__attribute__((visibility("default"))) int ioctl(int fd, unsigned long request, ...)
{
	va_list args;
	void *arg;

	va_start(args, request);
	arg = va_arg(args, void *);
	va_end(args);
	raises++;
	if (is_held) {
		arrived = true;
		until(!holds);
	}
	return (int)syscall(SYS_ioctl, fd, request, arg);
}

/* A held thread is held before it wakes the readers. */
__attribute__((visibility("default"))) long syscall(long number, ...)
{
	static long (*real)(long number, ...);
	long args[6];
	va_list list;

	va_start(list, number);
	for (int i = 0; i < 6; i++)
		args[i] = va_arg(list, long);
	va_end(list);
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "syscall");
	if (is_held && number == SYS_futex && (args[1] & FUTEX_CMD_MASK) == FUTEX_WAKE) {
		arrived = true;
		until(!holds);
	}
	return real(number, args[0], args[1], args[2], args[3], args[4], args[5]);
}

/* A poll of nothing only waits. */
__attribute__((visibility("default"))) int poll(struct pollfd *fds, nfds_t count, int ms)
{
	struct timespec time = { ms / 1000, ms % 1000 * 1000000L };

	if (count == 0)
		waits = true;
	return (int)syscall(SYS_ppoll, fds, count, ms < 0 ? NULL : &time, NULL, 0);
}

static struct rdma_cm_id *resolved(struct rdma_event_channel *channel)
{
	struct sockaddr_storage ss = cm_address("127.0.0.1", 1);
	struct rdma_cm_id *id;

	assert_int_equal(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_resolve_addr(id, NULL, (struct sockaddr *)&ss, 1), 0);
	cm_expect_ack(channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	return id;
}

static void *resolve_route_held(void *id)
{
	is_held = true;
	return rdma_resolve_route(id, EVENT_MS) == 0 ? id : NULL;
}

/* Acknowledging waits for the id's lock, which the thread that is held has. */
static void *take_two(void *channel)
{
	struct rdma_cm_event *events[2];

	for (int i = 0; i < 2; i++)
		assert_int_equal(rdma_get_cm_event(channel, &events[i]), 0);
	done = true;
	for (int i = 0; i < 2; i++)
		assert_int_equal(rdma_ack_cm_event(events[i]), 0);
	return channel;
}

static short reported(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1 ? p.revents : 0;
}

static void channel__fd_is_low_once_both_events_are_taken(void **state)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *ids[] = { resolved(channel), resolved(channel) };
	pthread_t raiser, taker;
	void *result;

	(void)state;
	holds = true;
	assert_int_equal(pthread_create(&raiser, NULL, resolve_route_held, ids[0]), 0);
	until(arrived);
	assert_int_equal(rdma_resolve_route(ids[1], EVENT_MS), 0);
	assert_int_equal(reported(channel->fd), POLLIN);
	assert_int_equal(pthread_create(&taker, NULL, take_two, channel), 0);
	until(waits || done);
	holds = false;
	assert_int_equal(pthread_join(raiser, &result), 0);
	assert_ptr_equal(result, ids[0]);
	assert_int_equal(pthread_join(taker, &result), 0);
	assert_ptr_equal(result, channel);
	assert_int_equal(reported(channel->fd), 0);
	for (int i = 0; i < 2; i++)
		rdma_destroy_id(ids[i]);
	rdma_destroy_event_channel(channel);
}

struct reader {
	pthread_t thread;
	struct rdma_event_channel *channel;
	_Atomic long tid;
};

static void *take_one(void *arg)
{
	struct reader *reader = arg;
	struct rdma_cm_event *event;

	reader->tid = syscall(SYS_gettid);
	if (rdma_get_cm_event(reader->channel, &event) != 0)
		return NULL;
	return rdma_ack_cm_event(event) == 0 ? arg : NULL;
}

/* It sleeps nowhere but there. */
static void start_sleeping(struct reader *reader, struct rdma_event_channel *channel)
{
	reader->channel = channel;
	reader->tid = 0;
	assert_int_equal(pthread_create(&reader->thread, NULL, take_one, reader), 0);
	until(reader->tid && proc_sleeps(reader->tid));
}

static void channel__fd_is_not_raised_for_a_reader_that_sleeps(void **state)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id = resolved(channel);
	struct reader reader;
	void *result;

	(void)state;
	start_sleeping(&reader, channel);
	raises = 0;
	assert_int_equal(rdma_resolve_route(id, EVENT_MS), 0);
	assert_int_equal(pthread_join(reader.thread, &result), 0);
	assert_ptr_equal(result, &reader);
	assert_int_equal(raises, 0);
	assert_int_equal(reported(channel->fd), 0);
	rdma_destroy_id(id);
	rdma_destroy_event_channel(channel);
}

/* The reader is cancelled when the event is there, before it is woken for it. */
static void channel__fd_is_raised_for_what_a_cancelled_reader_leaves(void **state)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id = resolved(channel);
	struct reader reader;
	pthread_t raiser;
	void *result;

	(void)state;
	start_sleeping(&reader, channel);
	holds = true;
	arrived = false;
	assert_int_equal(pthread_create(&raiser, NULL, resolve_route_held, id), 0);
	until(arrived);
	assert_int_equal(reported(channel->fd), 0);
	assert_int_equal(pthread_cancel(reader.thread), 0);
	assert_int_equal(pthread_join(reader.thread, &result), 0);
	assert_ptr_equal(result, PTHREAD_CANCELED);
	assert_int_equal(reported(channel->fd), POLLIN);
	holds = false;
	assert_int_equal(pthread_join(raiser, NULL), 0);
	cm_expect_ack(channel, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	assert_int_equal(reported(channel->fd), 0);
	rdma_destroy_id(id);
	rdma_destroy_event_channel(channel);
}

/* The second one is there before the reader takes the first. */
static void channel__fd_is_raised_for_what_a_reader_leaves(void **state)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *ids[] = { resolved(channel), resolved(channel) };
	struct reader reader;
	pthread_t raisers[2];
	void *result;

	(void)state;
	start_sleeping(&reader, channel);
	holds = true;
	for (int i = 0; i < 2; i++) {
		arrived = false;
		assert_int_equal(pthread_create(&raisers[i], NULL, resolve_route_held, ids[i]), 0);
		until(arrived);
	}
	assert_int_equal(reported(channel->fd), 0);
	holds = false;
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_join(raisers[i], NULL), 0);
	assert_int_equal(pthread_join(reader.thread, &result), 0);
	assert_ptr_equal(result, &reader);
	assert_int_equal(reported(channel->fd), POLLIN);
	cm_expect_ack(channel, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	assert_int_equal(reported(channel->fd), 0);
	for (int i = 0; i < 2; i++)
		rdma_destroy_id(ids[i]);
	rdma_destroy_event_channel(channel);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(channel__fd_is_low_once_both_events_are_taken),
		cmocka_unit_test(channel__fd_is_not_raised_for_a_reader_that_sleeps),
		cmocka_unit_test(channel__fd_is_raised_for_what_a_cancelled_reader_leaves),
		cmocka_unit_test(channel__fd_is_raised_for_what_a_reader_leaves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
