// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "check/model/object.h"

#include "check/base/inside.h"
#include "check/report/report.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FORK_WAIT_S \
	2 /* a thread holds the lock for microseconds: one that does not let go is the forking one */
#define BUCKETS 4096 /* for some thousand objects; more share a bucket */

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static struct aw_object *by_handle[BUCKETS], *by_number[BUCKETS];
static struct aw_object *gone[AW_OBJECTS_GONE_MAX]; /* a ring, each with a reference */
static unsigned gone_next;

static const char *const kinds[AW_KINDS] = {
	[AW_KIND_CONTEXT] = "device context",
	[AW_KIND_PD] = "PD",
	[AW_KIND_TD] = "thread domain",
	[AW_KIND_MR] = "MR",
	[AW_KIND_MW] = "MW",
	[AW_KIND_CHANNEL] = "completion channel",
	[AW_KIND_CQ] = "CQ",
	[AW_KIND_SRQ] = "SRQ",
	[AW_KIND_QP] = "QP",
	[AW_KIND_AH] = "AH",
	[AW_KIND_CM_CHANNEL] = "event channel of rdma_cm",
	[AW_KIND_CM_ID] = "rdma_cm_id",
};

void aw_object_name(const struct aw_object *object, char name[AW_OBJECT_NAME_MAX])
{
	if (object->kind == AW_KIND_QP)
		snprintf(name, AW_OBJECT_NAME_MAX, "QP 0x%x", object->number);
	else if (object->kind == AW_KIND_MR)
		snprintf(name, AW_OBJECT_NAME_MAX, "MR of lkey 0x%x", object->number);
	else
		snprintf(name, AW_OBJECT_NAME_MAX, "%s at %p", kinds[object->kind], object->handle);
}

static struct aw_object **handle_bucket(const void *handle)
{
	return &by_handle[((uintptr_t)handle * UINT64_C(0x9e3779b97f4a7c15)) >> 52];
}

static struct aw_object **number_bucket(const void *context, enum aw_kind kind, uint32_t number)
{
	const uint64_t key = (uintptr_t)context + ((uint64_t)kind << 32) + number;

	return &by_number[(key * UINT64_C(0x9e3779b97f4a7c15)) >> 52];
}

static struct aw_object *find(const void *handle, enum aw_kind kind)
{
	struct aw_object *object = *handle_bucket(handle);

	while (object && (object->handle != handle || object->kind != kind))
		object = object->next;
	return object;
}

static void handle_unlink(struct aw_object *object)
{
	struct aw_object **at = handle_bucket(object->handle);

	while (*at && *at != object)
		at = &(*at)->next;
	if (*at)
		*at = object->next;
}

static void number_link(struct aw_object *object)
{
	if (!object->has_number)
		return;

	struct aw_object **bucket = number_bucket(object->context, object->kind, object->number);

	object->next_by_number = *bucket;
	*bucket = object;
}

static void number_unlink(struct aw_object *object)
{
	if (!object->has_number)
		return;

	struct aw_object **at = number_bucket(object->context, object->kind, object->number);

	while (*at && *at != object)
		at = &(*at)->next_by_number;
	if (*at)
		*at = object->next_by_number;
}

void aw_object_put(struct aw_object *object)
{
	if (object && atomic_fetch_sub_explicit(&object->refs, 1, memory_order_acq_rel) == 1)
		object->free(object);
}

bool aw_stack_is_library(const struct aw_stack *stack)
{
	Dl_info caller;

	return stack->frames && dladdr(stack->pc[0], &caller) && caller.dli_fname &&
	       (strstr(caller.dli_fname, "/librdmacm") || strstr(caller.dli_fname, "/libibverbs"));
}

void aw_object_add(struct aw_object *object)
{
	aw_stack_take(&object->made);
	object->is_inner = aw_inside_depth() > 1 || aw_stack_is_library(&object->made) ||
			   object->kind == AW_KIND_CONTEXT;
	atomic_store(&object->refs, 1);
	pthread_rwlock_wrlock(&lock);

	/* An object that had this address is gone, whether a destroy of it was seen or not. */
	struct aw_object *old = find(object->handle, object->kind);

	if (old) {
		handle_unlink(old);
		if (!atomic_exchange(&old->is_gone, true))
			number_unlink(old);
	}
	struct aw_object **bucket = handle_bucket(object->handle);

	object->next = *bucket;
	*bucket = object;
	number_link(object);
	pthread_rwlock_unlock(&lock);
	aw_object_put(old);
}

struct aw_object *aw_object_get(const void *handle, enum aw_kind kind)
{
	pthread_rwlock_rdlock(&lock);

	struct aw_object *object = find(handle, kind);

	if (object)
		atomic_fetch_add_explicit(&object->refs, 1, memory_order_relaxed);
	pthread_rwlock_unlock(&lock);
	return object;
}

struct aw_object *aw_object_get_by_number(const void *context, enum aw_kind kind, uint32_t number)
{
	pthread_rwlock_rdlock(&lock);

	struct aw_object *object = *number_bucket(context, kind, number);

	while (object &&
	       (object->context != context || object->kind != kind || object->number != number))
		object = object->next_by_number;
	if (object)
		atomic_fetch_add_explicit(&object->refs, 1, memory_order_relaxed);
	pthread_rwlock_unlock(&lock);
	return object;
}

static void used_after_destroy_report(const struct aw_object *object)
{
	char name[AW_OBJECT_NAME_MAX];

	aw_object_name(object, name);
	aw_report(&(struct aw_report){ .rule = AW_RULE_USED_AFTER_DESTROY,
				       .object = name,
				       .earlier = { { "destroyed here", &object->gone },
						    { "made here", &object->made } } },
		  "a call uses %s, which was destroyed", name);
}

bool aw_object_goes(struct aw_object *object)
{
	struct aw_stack stack;

	aw_stack_take(&stack);
	pthread_rwlock_wrlock(&lock);
	if (atomic_exchange(&object->is_gone, true)) {
		pthread_rwlock_unlock(&lock);
		used_after_destroy_report(object);
		return false;
	}
	object->gone = stack;
	number_unlink(object);

	/* The oldest of the ring leaves the table, unless another object has its address already, or it came back. */
	struct aw_object *oldest = gone[gone_next];
	const bool is_linked = oldest && atomic_load(&oldest->is_gone) &&
			       find(oldest->handle, oldest->kind) == oldest;

	if (is_linked)
		handle_unlink(oldest);
	atomic_fetch_add_explicit(&object->refs, 1, memory_order_relaxed);
	gone[gone_next] = object;
	gone_next = (gone_next + 1) % AW_OBJECTS_GONE_MAX;
	pthread_rwlock_unlock(&lock);
	aw_object_put(oldest);
	if (is_linked)
		aw_object_put(oldest);
	return true;
}

void aw_object_stays(struct aw_object *object)
{
	pthread_rwlock_wrlock(&lock);
	atomic_store(&object->is_gone, false);
	number_link(object);
	pthread_rwlock_unlock(&lock);
}

bool aw_object_enter(struct aw_object *object, bool destroys)
{
	const unsigned others = atomic_fetch_add(&object->calls, 1);
	char name[AW_OBJECT_NAME_MAX];

	if (atomic_load(&object->is_gone)) {
		used_after_destroy_report(object);
		return false;
	}
	if (destroys && others) {
		aw_object_name(object, name);
		aw_report(&(struct aw_report){ .rule = AW_RULE_DESTROYED_IN_USE,
					       .object = name,
					       .earlier = { { "made here", &object->made } } },
			  "%s is destroyed while %u other thread%s in a call on it", name, others,
			  others == 1 ? " is" : "s are");
	}
	return true;
}

void aw_object_leave(struct aw_object *object)
{
	atomic_fetch_sub(&object->calls, 1);
}

void aw_object_each(void (*found)(struct aw_object *object, void *arg), void *arg)
{
	pthread_rwlock_rdlock(&lock);
	for (unsigned i = 0; i < BUCKETS; i++) {
		for (struct aw_object *object = by_handle[i]; object; object = object->next) {
			if (!atomic_load(&object->is_gone))
				found(object, arg);
		}
	}
	pthread_rwlock_unlock(&lock);
}

void aw_object_each_gone(void (*found)(struct aw_object *object, void *arg), void *arg)
{
	pthread_rwlock_rdlock(&lock);
	for (unsigned i = 1; i <= AW_OBJECTS_GONE_MAX; i++) {
		struct aw_object *object =
			gone[(gone_next + AW_OBJECTS_GONE_MAX - i) % AW_OBJECTS_GONE_MAX];

		if (object && atomic_load(&object->is_gone))
			found(object, arg);
	}
	pthread_rwlock_unlock(&lock);
}

static _Thread_local bool fork_has_lock;

void aw_objects_fork_begin(void)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += FORK_WAIT_S;
	fork_has_lock = pthread_rwlock_timedwrlock(&lock, &until) == 0;
}

void aw_objects_fork_end(bool in_child)
{
	if (!in_child) {
		if (fork_has_lock)
			pthread_rwlock_unlock(&lock);
		return;
	}
	pthread_rwlock_init(&lock, NULL);
	for (unsigned i = 0; i < BUCKETS; i++) {
		for (struct aw_object *object = by_handle[i]; object; object = object->next) {
			if (object->forked)
				object->forked(object);
			object->is_inner = true; /* the parent destroys it */
		}
	}
}
