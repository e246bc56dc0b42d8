// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Event channels: a pollable fd, blocking or not, and ids that move between them.
#define _GNU_SOURCE /* pthread_timedjoin_np */
#include "../lib/stopped.h"
#include "../lib/until.h"
#include "cm.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SIGNALS 10000 /* enough to meet the thread while it waits */
#define CANCELS 500 /* likewise */
#define ROUTES 400 /* enough to take an event while its fd is being raised */

static struct rdma_cm_id *resolving(struct rdma_event_channel *channel)
{
	struct sockaddr_storage ss = cm_address("127.0.0.1", 1);
	struct rdma_cm_id *id;

	assert_int_equal(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_resolve_addr(id, NULL, (struct sockaddr *)&ss, 1), 0);
	return id;
}

static void channel__non_blocking(void **state)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_event *event;

	(void)state;
	assert_true(fcntl(channel->fd, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(fcntl(channel->fd, F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(rdma_get_cm_event(channel, &event), -1);
	assert_int_equal(errno, EAGAIN);
	struct rdma_cm_id *id = resolving(channel);

	cm_expect_ack(channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	assert_int_equal(rdma_get_cm_event(channel, &event), -1);
	assert_int_equal(errno, EAGAIN);
	rdma_destroy_id(id);
	rdma_destroy_event_channel(channel);
}

/* As the kernel's rdma_cm reports it, whatever poll is asked for. */
static short reported(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN | POLLOUT | POLLPRI };

	return poll(&p, 1, 0) == 1 ? p.revents : 0;
}

static void channel__fd_is_never_writable(void **state)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id;

	(void)state;
	assert_int_equal(reported(channel->fd), 0);
	id = resolving(channel);
	cm_expect_ack(channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	assert_int_equal(reported(channel->fd), 0);
	assert_int_equal(rdma_resolve_route(id, EVENT_MS), 0);
	assert_int_equal(poll(&(struct pollfd){ .fd = channel->fd, .events = POLLIN }, 1, EVENT_MS),
			 1);
	assert_int_equal(reported(channel->fd), POLLIN);
	rdma_destroy_id(id);
	assert_int_equal(reported(channel->fd), 0);
	rdma_destroy_event_channel(channel);
}

/* As with the kernel's rdma_cm, for a program that takes one event for each time it is woken. */
static void channel__every_event_is_an_edge(void **state)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct epoll_event event = { .events = EPOLLIN | EPOLLET };
	int epfd = epoll_create1(EPOLL_CLOEXEC);
	struct rdma_cm_id *ids[3];

	(void)state;
	assert_int_equal(epoll_ctl(epfd, EPOLL_CTL_ADD, channel->fd, &event), 0);
	for (int i = 0; i < 3; i++) {
		ids[i] = resolving(channel);
		assert_int_equal(epoll_wait(epfd, &event, 1, EVENT_MS), 1);
		assert_int_equal(epoll_wait(epfd, &event, 1, 0), 0);
	}
	for (int i = 0; i < 3; i++)
		cm_expect_ack(channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	assert_int_equal(reported(channel->fd), 0);
	for (int i = 0; i < 3; i++)
		rdma_destroy_id(ids[i]);
	close(epfd);
	rdma_destroy_event_channel(channel);
}

/* Resolves the route of one id after the other, each when it is told so. */
struct pusher {
	struct rdma_cm_id *ids[ROUTES];
	_Atomic int told;
};

static void *push_events(void *arg)
{
	struct pusher *pusher = arg;

	for (int i = 0; i < ROUTES; i++) {
		while (pusher->told <= i)
			sched_yield();
		if (rdma_resolve_route(pusher->ids[i], EVENT_MS) != 0)
			return NULL;
	}
	return arg;
}

/* A thread that polls the fd would wait for an event in vain. The event may be taken before the fd is raised for it. */
static void channel__fd_is_low_once_the_event_is_taken(void **state)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	static struct pusher pusher;
	struct rdma_cm_event *event;
	pthread_t thread;
	void *done;

	(void)state;
	assert_int_equal(fcntl(channel->fd, F_SETFL, O_NONBLOCK), 0);
	for (int i = 0; i < ROUTES; i++) {
		pusher.ids[i] = resolving(channel);
		cm_expect_ack(channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	}
	assert_int_equal(pthread_create(&thread, NULL, push_events, &pusher), 0);
	for (int i = 0; i < ROUTES; i++) {
		pusher.told = i + 1;
		until(rdma_get_cm_event(channel, &event) == 0);
		assert_int_equal(reported(channel->fd), 0);
		rdma_ack_cm_event(event);
	}
	assert_int_equal(pthread_join(thread, &done), 0);
	assert_ptr_equal(done, &pusher);
	assert_int_equal(reported(channel->fd), 0);
	for (int i = 0; i < ROUTES; i++)
		rdma_destroy_id(pusher.ids[i]);
	rdma_destroy_event_channel(channel);
}

static void *get_and_ack(void *arg)
{
	struct rdma_cm_event *event;

	if (rdma_get_cm_event(arg, &event) < 0)
		return NULL;
	rdma_ack_cm_event(event);
	return arg;
}

static void channel__blocks_readers(void **state)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	pthread_t readers[2];
	struct rdma_cm_id *ids[2];
	void *ret;

	(void)state;
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&readers[i], NULL, get_and_ack, channel), 0);
	for (int i = 0; i < 2; i++)
		ids[i] = resolving(channel);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(pthread_join(readers[i], &ret), 0);
		assert_ptr_equal(ret, channel);
	}
	cm_expect_none(channel);
	for (int i = 0; i < 2; i++)
		rdma_destroy_id(ids[i]);
	rdma_destroy_event_channel(channel);
}

static void *get(void *arg)
{
	struct rdma_cm_event *event;

	rdma_get_cm_event(arg, &event);
	return arg;
}

static void *leave_result(void *arg)
{
	return arg;
}

/* As a system call that waits: libiscsi ends its thread so. It is met asleep, and on its way there. */
static void channel__cancels_readers(void **state)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct timespec deadline;

	(void)state;
	for (int i = 0; i < CANCELS; i++) {
		pthread_t reader;
		void *ret;

		/* The C library may give the reader what this thread leaves: its stack, and a result. */
		assert_int_equal(pthread_create(&reader, NULL, leave_result, channel), 0);
		assert_int_equal(pthread_join(reader, NULL), 0);
		assert_int_equal(pthread_create(&reader, NULL, get, channel), 0);
		for (int yields = i % 8; yields > 0; yields--)
			sched_yield();
		assert_int_equal(pthread_cancel(reader), 0);
		clock_gettime(CLOCK_REALTIME, &deadline);
		deadline.tv_sec += EVENT_MS / 1000;
		assert_int_equal(pthread_timedjoin_np(reader, &ret, &deadline), 0);
		assert_ptr_equal(ret, PTHREAD_CANCELED);
	}
	struct rdma_cm_id *id = resolving(channel);

	cm_expect_ack(channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	rdma_destroy_id(id);
	rdma_destroy_event_channel(channel);
}

struct interrupted {
	struct rdma_event_channel *channel;
	struct rdma_cm_event *event;
	int err; /* of rdma_get_cm_event, or 0 */
	_Atomic bool over;
};

static void on_signal(int signal)
{
	(void)signal;
}

static void *get_interrupted(void *arg)
{
	struct interrupted *reader = arg;

	reader->err = rdma_get_cm_event(reader->channel, &reader->event) ? errno : 0;
	reader->over = true;
	return NULL;
}

/* Starts a thread that waits for an event and signals it up to count times, until it gives up. */
static void interrupt(struct interrupted *reader, pthread_t *thread, int flags, int count)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = flags };

	assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
	assert_int_equal(pthread_create(thread, NULL, get_interrupted, reader), 0);
	for (int sent = 0; sent < count && !reader->over; sent++) {
		assert_int_equal(pthread_kill(*thread, SIGUSR1), 0);
		sched_yield();
	}
}

/* The reader has waited on: it gets the next event. Its channel goes. */
static void expect_event(struct interrupted *reader, pthread_t thread)
{
	struct rdma_cm_id *id = resolving(reader->channel);

	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(reader->err, 0);
	assert_int_equal(rdma_ack_cm_event(reader->event), 0);
	rdma_destroy_id(id);
	rdma_destroy_event_channel(reader->channel);
}

/* As a system call that waits: the program decides with SA_RESTART. */
static void channel__restarts_after_a_signal(void **state)
{
	struct interrupted reader = { .channel = rdma_create_event_channel() };
	pthread_t thread;

	(void)state;
	interrupt(&reader, &thread, SA_RESTART, SIGNALS);
	expect_event(&reader, thread);
}

static void channel__interrupted_by_a_signal(void **state)
{
	struct interrupted reader = { .channel = rdma_create_event_channel() };
	pthread_t thread;

	(void)state;
	interrupt(&reader, &thread, 0, INT_MAX);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(reader.err, EINTR);
	rdma_destroy_event_channel(reader.channel);
}

/* A handler that does not run ends no wait, whatever its flags. */
static void channel__goes_on_when_stopped_and_continued(void **state)
{
	struct interrupted reader = { .channel = rdma_create_event_channel() };
	pthread_t thread;

	(void)state;
	interrupt(&reader, &thread, 0, 0);
	for (int i = 0; i < 5; i++)
		assert_true(stopped_and_continued());
	expect_event(&reader, thread);
}

static void channel__many_events_in_order(void **state)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *ids[50];

	(void)state;
	for (int i = 0; i < 50; i++)
		ids[i] = resolving(channel);
	for (int i = 0; i < 50; i++) {
		struct rdma_cm_event *event = cm_expect(channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);

		assert_ptr_equal(event->id, ids[i]);
		rdma_ack_cm_event(event);
	}
	cm_expect_none(channel);
	for (int i = 0; i < 50; i++)
		rdma_destroy_id(ids[i]);
	rdma_destroy_event_channel(channel);
}

static void migrate__takes_events_along(void **state)
{
	struct rdma_event_channel *a = rdma_create_event_channel();
	struct rdma_event_channel *b = rdma_create_event_channel();
	struct rdma_cm_id *id = resolving(a), *stays = resolving(a);

	(void)state;
	assert_int_equal(rdma_migrate_id(id, b), 0);
	assert_ptr_equal(id->channel, b);
	cm_expect_ack(b, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	cm_expect_none(b);
	cm_expect_ack(a, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	cm_expect_none(a);
	assert_int_equal(rdma_resolve_route(id, 1), 0);
	cm_expect_none(a);
	cm_expect_ack(b, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	rdma_destroy_id(stays);
	rdma_destroy_event_channel(a);
	rdma_destroy_id(id);
	rdma_destroy_event_channel(b);
}

static void migrate__to_sync_and_back(void **state)
{
	struct rdma_event_channel *a = rdma_create_event_channel();
	struct rdma_cm_id *id = resolving(a);

	(void)state;
	cm_expect_ack(a, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	assert_int_equal(rdma_migrate_id(id, NULL), 0);
	assert_ptr_not_equal(id->channel, a);
	assert_int_equal(rdma_resolve_route(id, 1), 0);
	assert_non_null(id->event);
	assert_int_equal(id->event->event, RDMA_CM_EVENT_ROUTE_RESOLVED);
	assert_int_equal(rdma_migrate_id(id, a), 0);
	assert_ptr_equal(id->channel, a);
	assert_null(id->event);
	cm_make_qp(id);
	assert_int_equal(rdma_connect(id, NULL), 0);
	cm_expect_ack(a, RDMA_CM_EVENT_REJECTED, -ECONNREFUSED);
	cm_destroy(id);
	rdma_destroy_event_channel(a);
}

static void migrate__listener_with_request(void **state)
{
	struct rdma_event_channel *other = rdma_create_event_channel();
	struct cm_ends ends;

	(void)state;
	cm_ends_open(&ends, "127.0.0.1");
	assert_int_equal(rdma_connect(ends.client, NULL), 0);
	struct pollfd pfd = { .fd = ends.passive->fd, .events = POLLIN };

	assert_int_equal(poll(&pfd, 1, EVENT_MS), 1);
	assert_int_equal(rdma_migrate_id(ends.listener, other), 0);
	struct rdma_cm_event *event = cm_expect(other, RDMA_CM_EVENT_CONNECT_REQUEST, 0);

	ends.server = event->id;
	assert_ptr_equal(ends.server->channel, other);
	rdma_ack_cm_event(event);
	cm_make_qp(ends.server);
	assert_int_equal(rdma_migrate_id(ends.server, ends.passive), 0);
	cm_ends_accept(&ends);
	cm_ends_disconnect(&ends);
	cm_ends_close(&ends);
	rdma_destroy_event_channel(other);
}

struct taker {
	struct rdma_event_channel *channel;
	struct rdma_cm_event *before; /* taken from the old channel */
	_Atomic bool migrated;
};

/* Takes what has moved to the new channel, and keeps it until rdma_migrate_id has returned. */
static void *take_then_wait(void *arg)
{
	struct taker *taker = arg;
	struct rdma_cm_event *event;

	if (rdma_get_cm_event(taker->channel, &event) != 0)
		return NULL;
	rdma_ack_cm_event(taker->before);
	while (!taker->migrated)
		sched_yield();
	rdma_ack_cm_event(event);
	return arg;
}

/* rdma_migrate_id waits for what was taken from the old channel alone. */
static void migrate__beside_a_reader(void **state)
{
	struct rdma_event_channel *a = rdma_create_event_channel();
	struct rdma_cm_id *id = resolving(a);
	struct taker taker = {
		.channel = rdma_create_event_channel(),
		.before = cm_expect(a, RDMA_CM_EVENT_ADDR_RESOLVED, 0),
	};
	pthread_t thread;
	void *ret;

	(void)state;
	assert_int_equal(rdma_resolve_route(id, 1), 0);
	struct pollfd pfd = { .fd = a->fd, .events = POLLIN };

	assert_int_equal(poll(&pfd, 1, EVENT_MS), 1);
	assert_int_equal(pthread_create(&thread, NULL, take_then_wait, &taker), 0);
	assert_int_equal(rdma_migrate_id(id, taker.channel), 0);
	taker.migrated = true;
	assert_int_equal(pthread_join(thread, &ret), 0);
	assert_non_null(ret);
	rdma_destroy_id(id);
	rdma_destroy_event_channel(taker.channel);
	rdma_destroy_event_channel(a);
}

struct late {
	struct rdma_event_channel *channel;
	_Atomic pid_t tid;
	_Atomic bool returned;
};

static void *get_late(void *arg)
{
	struct late *late = arg;
	struct rdma_cm_event *event;

	late->tid = (pid_t)syscall(SYS_gettid);
	(void)!rdma_get_cm_event(late->channel, &event);
	late->returned = true;
	return NULL;
}

/* Whether the thread sleeps, which it does nowhere but in the channel's wait. */
static bool waits(pid_t tid)
{
	char path[64], state = 0;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	FILE *file = fopen(path, "r");

	if (!file)
		return false;
	if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
		state = 0;
	fclose(file);
	return state == 'S';
}

/* As with the kernel's rdma_cm: rping's second thread would end the process with an error. */
static void channel__late_reader_of_a_destroyed_one_waits(void **state)
{
	static struct late late; /* the thread outlives the test */
	pthread_t thread;

	(void)state;
	late.channel = rdma_create_event_channel();
	rdma_destroy_event_channel(late.channel);
	assert_int_equal(pthread_create(&thread, NULL, get_late, &late), 0);
	pthread_detach(thread);
	until(late.returned || (late.tid && waits(late.tid)));
	assert_false(late.returned);
}

#define LATER \
	160 /* channels, of which so many have been freed that the next ones take their memory */

static void open_and_close_channels(const struct rdma_event_channel *other)
{
	struct rdma_event_channel *channels[LATER];

	for (int i = 0; i < LATER; i++) {
		channels[i] = rdma_create_event_channel();
		assert_non_null(channels[i]);
		assert_ptr_not_equal(channels[i], other);
	}
	for (int i = 0; i < LATER; i++)
		rdma_destroy_event_channel(channels[i]);
}

/* No other channel takes the memory on which a thread sleeps: the thread would take that one's events. */
static void channel__destroyed_under_a_reader_keeps_its_memory(void **state)
{
	struct late late = { .channel = rdma_create_event_channel() };
	pthread_t thread;
	void *ret;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, get_late, &late), 0);
	until(late.tid && waits(late.tid));
	rdma_destroy_event_channel(late.channel);
	open_and_close_channels(late.channel);
	open_and_close_channels(late.channel);
	assert_false(late.returned);
	assert_int_equal(pthread_cancel(thread), 0);
	assert_int_equal(pthread_join(thread, &ret), 0);
	assert_ptr_equal(ret, PTHREAD_CANCELED);
}

/*
 * A program that destroys its channel before its ids breaks the rules, but what it opens next gets
 * the fd's number and must not get the channel's octets.
 */
static void channel__destroyed_before_its_ids(void **state)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct sockaddr_storage ss = cm_address("127.0.0.1", 1);
	struct rdma_cm_id *id;
	uint64_t count;
	int number = channel->fd;

	(void)state;
	assert_int_equal(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), 0);
	rdma_destroy_event_channel(channel);
	int other = eventfd(0, EFD_NONBLOCK);

	assert_int_equal(other, number);
	assert_int_equal(rdma_resolve_addr(id, NULL, (struct sockaddr *)&ss, 1), 0);
	assert_int_equal(read(other, &count, sizeof(count)), -1);
	assert_int_equal(write(other, &(uint64_t){ 5 }, sizeof(uint64_t)), sizeof(uint64_t));
	rdma_destroy_id(id);
	assert_int_equal(read(other, &count, sizeof(count)), sizeof(count));
	assert_int_equal(count, 5);
	close(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(channel__non_blocking),
		cmocka_unit_test(channel__fd_is_never_writable),
		cmocka_unit_test(channel__every_event_is_an_edge),
		cmocka_unit_test(channel__fd_is_low_once_the_event_is_taken),
		cmocka_unit_test(channel__blocks_readers),
		cmocka_unit_test(channel__cancels_readers),
		cmocka_unit_test(channel__restarts_after_a_signal),
		cmocka_unit_test(channel__interrupted_by_a_signal),
		cmocka_unit_test(channel__goes_on_when_stopped_and_continued),
		cmocka_unit_test(channel__late_reader_of_a_destroyed_one_waits),
		cmocka_unit_test(channel__destroyed_under_a_reader_keeps_its_memory),
		cmocka_unit_test(channel__destroyed_before_its_ids),
		cmocka_unit_test(channel__many_events_in_order),
		cmocka_unit_test(migrate__takes_events_along),
		cmocka_unit_test(migrate__to_sync_and_back),
		cmocka_unit_test(migrate__listener_with_request),
		cmocka_unit_test(migrate__beside_a_reader),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
