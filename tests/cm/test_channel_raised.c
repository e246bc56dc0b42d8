// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The fd of an event channel while one thread raises it, another one has raised it for an event of its own, and a third takes both
// events. The libraries' ioctl(2), which raises the fd, and their poll(2) are this program's.
#define _GNU_SOURCE
#include "../lib/until.h"
#include "cm.h"

#include <fcntl.h>
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

__attribute__((visibility("default"))) int ioctl(int fd, unsigned long request, ...)
{
	va_list args;
	void *arg;

	va_start(args, request);
	arg = va_arg(args, void *);
	va_end(args);
	if (is_held) {
		arrived = true;
		until(!holds);
	}
	return (int)syscall(SYS_ioctl, fd, request, arg);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(channel__fd_is_low_once_both_events_are_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
