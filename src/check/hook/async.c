// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "check/hook/async.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/log.h"
#include "check/base/marks.h"
#include "check/faults/faults.h"
#include "check/hook/hook.h"
#include "check/report/report.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define CQS_MAX 16 /* CQs of a device whose event the program has not got yet */
#define SECOND UINT64_C(1000000000)

/* A device whose async_fd is ours. */
struct watch {
	struct watch *next;
	struct ibv_context *context;
	int device_fd; /* the device's own, which does not block */
	int epoll_fd, timer_fd;
	pthread_mutex_t lock; /* guards what follows, and context->async_fd */
	struct ibv_cq *cqs[CQS_MAX];
	unsigned count;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the list, not its members */
static struct watch *watches;

static struct watch *watch_of(const struct ibv_context *context)
{
	struct watch *watch;

	pthread_mutex_lock(&lock);
	watch = watches;
	while (watch && watch->context != context)
		watch = watch->next;
	pthread_mutex_unlock(&lock);
	return watch;
}

/* The timer is over from the time on at which the next event is due. */
static void timer_set(const struct watch *watch)
{
	uint64_t due_ns = watch->count ? 1 : aw_fault_async_due_ns();
	struct itimerspec time = { .it_value = { 0, 0 } }; /* never */

	if (due_ns != UINT64_MAX)
		time.it_value =
			(struct timespec){ (time_t)(due_ns / SECOND), (long)(due_ns % SECOND) };
	timerfd_settime(watch->timer_fd, TFD_TIMER_ABSTIME, &time, NULL);
}

static bool fds_open(struct watch *watch)
{
	struct epoll_event event = { .events = EPOLLIN };
	int flags = fcntl(watch->device_fd, F_GETFL);

	watch->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	watch->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	return watch->timer_fd >= 0 && watch->epoll_fd >= 0 && flags >= 0 &&
	       fcntl(watch->device_fd, F_SETFL, flags | O_NONBLOCK) == 0 &&
	       fcntl(watch->epoll_fd, F_SETFL, flags) == 0 &&
	       epoll_ctl(watch->epoll_fd, EPOLL_CTL_ADD, watch->device_fd, &event) == 0 &&
	       epoll_ctl(watch->epoll_fd, EPOLL_CTL_ADD, watch->timer_fd, &event) == 0;
}

static void watch_free(struct watch *watch)
{
	if (watch->epoll_fd >= 0)
		close(watch->epoll_fd);
	if (watch->timer_fd >= 0)
		close(watch->timer_fd);
	free(watch);
}

void aw_async_begin(struct ibv_context *context)
{
	struct watch *watch;

	if (!aw_fault_async_planned())
		return;
	watch = calloc(1, sizeof(*watch));
	if (!watch)
		return;
	watch->context = context;
	watch->device_fd = context->async_fd;
	pthread_mutex_init(&watch->lock, NULL);
	if (!fds_open(watch)) {
		aw_log(AW_LOG_ERROR, "no planned event of %s occurs: %s", context->device->name,
		       strerror(errno));
		watch_free(watch);
		return;
	}
	timer_set(watch);
	context->async_fd = watch->epoll_fd;
	pthread_mutex_lock(&lock);
	watch->next = watches;
	watches = watch;
	pthread_mutex_unlock(&lock);
}

void aw_async_end(struct ibv_context *context)
{
	struct watch **at = &watches, *watch;

	pthread_mutex_lock(&lock);
	while (*at && (*at)->context != context)
		at = &(*at)->next;
	watch = *at;
	if (watch)
		*at = watch->next;
	pthread_mutex_unlock(&lock);
	if (!watch)
		return;
	context->async_fd = watch->device_fd;
	watch_free(watch);
}

void aw_async_cq_error(struct ibv_cq *cq)
{
	struct watch *watch = watch_of(cq->context);

	if (!watch)
		return;
	pthread_mutex_lock(&watch->lock);
	if (watch->count < CQS_MAX)
		watch->cqs[watch->count++] = cq;
	timer_set(watch);
	pthread_mutex_unlock(&watch->lock);
}

/* An event of the plan that is due. */
static bool take_planned(struct watch *watch, struct ibv_async_event *event)
{
	bool is_due = true;

	pthread_mutex_lock(&watch->lock);
	if (watch->count) {
		event->event_type = IBV_EVENT_CQ_ERR;
		event->element.cq = watch->cqs[--watch->count];
	} else {
		is_due = aw_fault_async((uint64_t)aw_now_ns(), &event->event_type);
		event->element.port_num = 1;
	}
	timer_set(watch);
	pthread_mutex_unlock(&watch->lock);
	return is_due;
}

/* The device's own event; its call reads from context->async_fd. */
static int take_own(struct watch *watch, struct ibv_async_event *event)
{
	int rc;

	pthread_mutex_lock(&watch->lock);
	watch->context->async_fd = watch->device_fd;
	rc = aw_real()->ibv_get_async_event(watch->context, event);
	watch->context->async_fd = watch->epoll_fd;
	pthread_mutex_unlock(&watch->lock);
	return rc;
}

/* False, with errno: there is nothing to wait for, or a signal has come. */
static bool wait_for_event(const struct watch *watch)
{
	struct pollfd poll_fd = { .fd = watch->epoll_fd, .events = POLLIN };

	if (fcntl(watch->epoll_fd, F_GETFL) & O_NONBLOCK) {
		errno = EAGAIN;
		return false;
	}
	return poll(&poll_fd, 1, -1) >= 0;
}

static int event_get(struct ibv_context *context, struct ibv_async_event *event)
{
	struct watch *watch = watch_of(context);

	if (!watch)
		return aw_real()->ibv_get_async_event(context, event);
	do {
		if (take_planned(watch, event) || take_own(watch, event) == 0)
			return 0;
	} while ((errno == EAGAIN || errno == EWOULDBLOCK) && wait_for_event(watch));
	return -1;
}

/* That a CQ is overrun, only the device knows. */
static void overrun_tell(const struct ibv_async_event *event)
{
	struct aw_object *cq = aw_object_get(event->element.cq, AW_KIND_CQ);
	char name[AW_OBJECT_NAME_MAX];

	if (cq && !atomic_load(&((struct aw_cq_shadow *)cq)->is_overrun)) {
		aw_object_name(cq, name);
		aw_report(
			&(struct aw_report){ .rule = AW_RULE_CQ_OVERRUN,
					     .object = name,
					     .earlier = { { "the CQ was made here", &cq->made } } },
			"%s had more completions than its %d entries", name,
			event->element.cq->cqe);
	}
	aw_object_put(cq);
}

int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	int rc = -1;

	aw_inside_enter();
	aw_hook_context(context);
	if (aw_hook_may("ibv_get_async_event"))
		rc = event_get(context, event);
	if (rc == 0)
		aw_mark_given(event, sizeof(*event));
	if (rc == 0 && event->event_type == IBV_EVENT_CQ_ERR)
		overrun_tell(event);
	else if (rc && errno != EAGAIN && errno != EINTR)
		aw_hook_failed("ibv_get_async_event", errno);
	aw_inside_leave();
	return rc;
}

/* The library, which counts them until the CQ is destroyed, does not know of an overrun by the plan. */
static bool is_planned(const struct ibv_async_event *event)
{
	struct aw_cq_shadow *cq;
	bool planned;

	if (event->event_type != IBV_EVENT_CQ_ERR)
		return false;
	cq = aw_cq_get(event->element.cq);
	planned = cq && atomic_exchange(&cq->overrun_unacked, false);
	aw_object_put(cq ? &cq->object : NULL);
	return planned;
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
	aw_inside_enter();
	if (!is_planned(event))
		aw_real()->ibv_ack_async_event(event);
	aw_inside_leave();
}
