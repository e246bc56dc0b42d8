// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Completion channels and CQs.
#include "check/base/marks.h"
#include "check/explain/explain.h"
#include "check/faults/faults.h"
#include "check/hook/failure.h"
#include "check/hook/ops.h"
#include "check/hook/overrun.h"
#include "check/hook/vary.h"
#include "check/model/acked.h"
#include "check/model/qp.h"
#include "check/model/refusal_report.h"
#include "check/report/report.h"

#include <errno.h>
#include <fcntl.h>

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	struct ibv_comp_channel *channel = NULL;

	aw_inside_enter();
	aw_hook_context(context);
	if (aw_hook_may("ibv_create_comp_channel"))
		channel = aw_real()->ibv_create_comp_channel(context);
	if (channel)
		aw_plain_add(AW_KIND_CHANNEL, channel, context);
	else
		aw_hook_failed("ibv_create_comp_channel", errno);
	aw_inside_leave();
	return channel;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	struct aw_object *object;
	int err;

	aw_inside_enter();
	object = aw_object_get(channel, AW_KIND_CHANNEL);
	if (aw_destroy_begin("ibv_destroy_comp_channel", object)) {
		err = aw_real()->ibv_destroy_comp_channel(channel);
		aw_destroy_end("ibv_destroy_comp_channel", object, err);
	} else {
		err = errno;
	}
	aw_object_put(object);
	aw_inside_leave();
	return err;
}

static void cq_create_failed(const struct ibv_context *context, int cqe, int comp_vector)
{
	struct aw_context_shadow *device = aw_context_get(context);
	const int err = errno;
	char why[AW_EXPLAIN_MAX];

	aw_explain_create_cq(cqe, comp_vector, context, device ? &device->attr : NULL, err, why);
	aw_failure_explain_memory("ibv_create_cq", err, why);
	aw_object_put(device ? &device->object : NULL);
	errno = err;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
			     struct ibv_comp_channel *channel, int comp_vector)
{
	struct ibv_cq *cq = NULL;

	aw_inside_enter();
	aw_hook_context(context);
	if (aw_like_allows(aw_hook_like() ? aw_like_check_create_cq(aw_hook_like(), cqe) : 0) &&
	    aw_hook_may("ibv_create_cq"))
		cq = aw_real()->ibv_create_cq(context, cqe, cq_context, channel, comp_vector);
	if (cq)
		aw_cq_add(cq, channel);
	else
		cq_create_failed(context, cqe, comp_vector);
	aw_inside_leave();
	return cq;
}

struct ibv_cq_ex *aw_op_create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr)
{
	struct aw_context_shadow *device;
	struct ibv_cq_ex *cq = NULL;

	aw_inside_enter();
	device = aw_ops_get(context);
	if (aw_like_allows(aw_hook_like() ? aw_like_check_create_cq(aw_hook_like(), (int)attr->cqe)
					  : 0) &&
	    aw_hook_may("ibv_create_cq_ex"))
		cq = device->extended.create_cq_ex(context, attr);
	if (cq) {
		aw_cq_add(ibv_cq_ex_to_cq(cq), attr->channel);
		aw_hook_cq_ex(cq);
	} else {
		cq_create_failed(context, (int)attr->cqe, (int)attr->comp_vector);
	}
	aw_object_put(&device->object);
	aw_inside_leave();
	return cq;
}

int ibv_resize_cq(struct ibv_cq *cq, int cqe)
{
	struct aw_cq_shadow *shadow;
	int err;

	aw_inside_enter();
	shadow = aw_cq_get(cq);
	err = aw_hook_may("ibv_resize_cq") ? aw_real()->ibv_resize_cq(cq, cqe) : errno;
	if (err)
		aw_hook_failed("ibv_resize_cq", err);
	else if (shadow)
		shadow->cqe = cq->cqe;
	aw_object_put(shadow ? &shadow->object : NULL);
	aw_inside_leave();
	return err;
}

static bool cq_is_acked(const void *arg)
{
	struct aw_cq_shadow *cq = (struct aw_cq_shadow *)(uintptr_t)arg;
	bool is_acked;

	pthread_mutex_lock(&cq->lock);
	is_acked = cq->events_unacked == 0;
	pthread_mutex_unlock(&cq->lock);
	return is_acked;
}

/*
 * Tells events that the program does not acknowledge in time, and acknowledges them in its place, or the destroy would wait for
 * ever.
 */
static void cq_events_settle(struct aw_cq_shadow *cq)
{
	char name[AW_OBJECT_NAME_MAX];
	unsigned unacked, spurious;

	if (aw_acked_wait(cq_is_acked, cq))
		return;
	pthread_mutex_lock(&cq->lock);
	unacked = cq->events_unacked;
	spurious = cq->events_spurious;
	cq->events_unacked = cq->events_spurious = 0;
	pthread_mutex_unlock(&cq->lock);
	if (!unacked)
		return;
	aw_object_name(&cq->object, name);
	aw_report(
		&(struct aw_report){
			.rule = AW_RULE_EVENT_UNACKED,
			.object = name,
			.earlier = { { "the last event was got here", &cq->event_got } } },
		"%s is destroyed with %u event%s unacknowledged: without the checker the call would wait for ever",
		name, unacked, unacked == 1 ? "" : "s");
	aw_real()->ibv_ack_cq_events(cq->cq, unacked - spurious);
}

int ibv_destroy_cq(struct ibv_cq *cq)
{
	struct aw_object *object;
	int err;

	aw_inside_enter();
	object = aw_object_get(cq, AW_KIND_CQ);
	if (aw_destroy_begin("ibv_destroy_cq", object)) {
		if (object)
			cq_events_settle((struct aw_cq_shadow *)object);
		err = aw_real()->ibv_destroy_cq(cq);
		aw_destroy_end("ibv_destroy_cq", object, err);
	} else {
		err = errno;
	}
	aw_object_put(object);
	aw_inside_leave();
	return err;
}

/* A CQ of the channel on which the thread that is about to sleep there misses a completion; with a reference, or NULL. */
struct sleeper {
	const struct ibv_comp_channel *channel;
	struct aw_cq_shadow *cq;
};

static void sleeper_find(struct aw_object *object, void *arg)
{
	struct sleeper *sleeper = arg;
	struct aw_cq_shadow *cq = (struct aw_cq_shadow *)object;

	if (sleeper->cq || object->kind != AW_KIND_CQ || cq->channel != sleeper->channel ||
	    !cq->arm_needs_poll || !pthread_equal(cq->armed_by, pthread_self()) ||
	    !pthread_equal(cq->poller, pthread_self()))
		return;
	atomic_fetch_add(&object->refs, 1);
	sleeper->cq = cq;
}

/*
 * Tells a thread that may sleep on a CQ which it armed and has not polled since; that an event is there already is luck. A thread
 * that arms and leaves the polls to another one is not told, since the other one may come behind the arm.
 */
static void sleep_judge(const struct ibv_comp_channel *channel)
{
	struct sleeper sleeper = { .channel = channel };
	char name[AW_OBJECT_NAME_MAX];

	aw_object_each(sleeper_find, &sleeper);
	if (!sleeper.cq || fcntl(channel->fd, F_GETFL) & O_NONBLOCK ||
	    !aw_cq_awaits(sleeper.cq->cq)) {
		aw_object_put(sleeper.cq ? &sleeper.cq->object : NULL);
		return;
	}
	aw_object_name(&sleeper.cq->object, name);
	aw_report(
		&(struct aw_report){
			.rule = AW_RULE_WAKEUP_LOST,
			.object = name,
			.earlier = { { "the CQ was armed here", &sleeper.cq->armed } } },
		"a thread sleeps for an event of %s, which it armed with work requests under way and has not polled empty since: "
		"a completion from before the arm raises no event",
		name);
	aw_object_put(&sleeper.cq->object);
}

/* The program is given an event of the CQ. */
static void event_got(struct ibv_cq *cq)
{
	struct aw_cq_shadow *shadow = aw_cq_get(cq);

	if (!shadow)
		return;
	aw_vary_cq_event(shadow);
	pthread_mutex_lock(&shadow->lock);
	shadow->events_unacked++;
	shadow->arm_needs_poll = false;
	aw_stack_take(&shadow->event_got);
	pthread_mutex_unlock(&shadow->lock);
	aw_object_put(&shadow->object);
}

static int event_get(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
	struct aw_cq_shadow *shadow = aw_vary_channel_event(channel);
	int rc = 0;

	if (shadow) {
		*cq = shadow->cq;
		*cq_context = shadow->cq->cq_context;
		aw_object_put(&shadow->object);
	} else {
		rc = aw_real()->ibv_get_cq_event(channel, cq, cq_context);
	}
	if (rc == 0) {
		aw_mark_given(cq, sizeof(*cq));
		aw_mark_given(cq_context, sizeof(*cq_context));
	}
	return rc;
}

int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
	struct aw_object *object;
	int rc = -1;

	aw_inside_enter();
	object = aw_object_get(channel, AW_KIND_CHANNEL);
	if (object)
		(void)aw_object_enter(object, false);
	sleep_judge(channel);
	aw_vary_pause(AW_VARY_EVENT);
	if (aw_hook_may("ibv_get_cq_event"))
		rc = event_get(channel, cq, cq_context);
	if (rc == 0)
		event_got(*cq);
	else if (errno != EAGAIN && errno != EINTR)
		aw_hook_failed("ibv_get_cq_event", errno);
	aw_vary_pause(AW_VARY_EVENT);
	if (object)
		aw_object_leave(object);
	aw_object_put(object);
	aw_inside_leave();
	return rc;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int nevents)
{
	struct aw_cq_shadow *shadow;
	unsigned int real = nevents;

	aw_inside_enter();
	shadow = aw_cq_get(cq);
	if (shadow) {
		pthread_mutex_lock(&shadow->lock);
		real -= shadow->events_spurious < nevents ? shadow->events_spurious : nevents;
		shadow->events_spurious -= nevents - real;
		if (atomic_load(&shadow->object.is_gone) && !shadow->events_unacked)
			real = 0; /* cq_events_settle has done so, and the CQ may be freed */
		shadow->events_unacked -= nevents < shadow->events_unacked ? nevents
									   : shadow->events_unacked;
		pthread_mutex_unlock(&shadow->lock);
		aw_acked_tell();
		aw_object_put(&shadow->object);
	}
	if (real)
		aw_real()->ibv_ack_cq_events(cq, real);
	aw_inside_leave();
}

int aw_op_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	struct aw_context_shadow *device;
	struct aw_cq_shadow *shadow;
	int err;

	aw_inside_enter();
	device = aw_ops_get(cq->context);
	shadow = aw_cq_get(cq);

	const bool awaits = shadow && shadow->channel && aw_cq_awaits(cq);

	aw_vary_pause(AW_VARY_ARM);
	err = aw_hook_may("ibv_req_notify_cq") ? device->ops.req_notify_cq(cq, solicited_only)
					       : errno;
	if (err) {
		aw_hook_failed("ibv_req_notify_cq", err);
	} else if (shadow) {
		aw_vary_cq_armed(shadow, solicited_only);
		pthread_mutex_lock(&shadow->lock);
		shadow->arm_needs_poll = awaits;
		shadow->armed_by = pthread_self();
		aw_stack_take(&shadow->armed);
		pthread_mutex_unlock(&shadow->lock);
	}
	aw_object_put(shadow ? &shadow->object : NULL);
	aw_object_put(&device->object);
	aw_inside_leave();
	return err;
}

/* The program never sees these completions; their memory is its own again all the same. */
static void completions_lose(const struct ibv_cq *cq, const struct ibv_wc *wc, int count)
{
	for (int i = 0; i < count; i++) {
		struct ibv_wc lost = wc[i];

		aw_cq_completed(cq, &lost);
	}
}

/* The completions that the program is given now; the plan of faults may change them. */
static int completions_get(const struct aw_context_shadow *device, struct aw_cq_shadow *shadow,
			   struct ibv_cq *cq, int max, struct ibv_wc *wc)
{
	const uint32_t ask = shadow && max > 0 ? aw_vary_cq_poll(shadow, (uint32_t)max)
					       : (uint32_t)max;
	int count = max > 0 && ask == 0 ? 0 : device->ops.poll_cq(cq, (int)ask, wc);

	if (shadow)
		aw_vary_cq_polled(shadow, wc, count);
	for (int i = 0; i < count; i++) {
		enum ibv_wc_status status;

		aw_refused_completed(cq, &wc[i]);
		if (shadow && aw_fault_planned() && aw_overrun_loses(shadow)) {
			completions_lose(cq, wc + i, count - i);
			aw_overrun_settle(shadow);
			return i;
		}
		const bool is_planned = aw_fault_planned() && aw_fault_completion(&wc[i], &status);

		if (is_planned)
			wc[i].status = status;
		aw_failure_explain_completion(&wc[i], is_planned);
	}
	return count;
}

/* False: the plan has the poll fail. */
static bool polls(void)
{
	if (!aw_fault_planned() || aw_hook_may("ibv_poll_cq"))
		return true;
	aw_hook_failed("ibv_poll_cq", errno);
	return false;
}

int aw_op_poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc)
{
	struct aw_context_shadow *device;
	struct aw_cq_shadow *shadow;
	int count;

	aw_inside_enter();
	device = aw_ops_get(cq->context);
	shadow = aw_cq_get(cq);
	if (shadow) {
		(void)aw_object_enter(&shadow->object, false);
		atomic_store_explicit(&shadow->poller, pthread_self(), memory_order_relaxed);
	}
	aw_vary_pause(AW_VARY_POLL);
	count = polls() ? completions_get(device, shadow, cq, num_entries, wc) : -1;
	if (shadow && count >= 0 && count < num_entries)
		shadow->arm_needs_poll = false; /* it was empty */
	for (int i = 0; i < count; i++)
		aw_cq_completed(cq, &wc[i]);
	if (shadow)
		aw_object_leave(&shadow->object);
	aw_object_put(shadow ? &shadow->object : NULL);
	aw_object_put(&device->object);
	aw_inside_leave();
	return count;
}

int aw_op_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr)
{
	struct aw_context_shadow *device;
	int err;

	aw_inside_enter();
	device = aw_ops_get(cq->context);
	err = aw_hook_may("ibv_modify_cq") ? device->extended.modify_cq(cq, attr) : errno;
	aw_object_put(&device->object);
	return aw_hook_end("ibv_modify_cq", err);
}
