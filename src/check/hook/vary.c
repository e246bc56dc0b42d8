// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "check/hook/vary.h"

#include "base/log.h"
#include "check/base/settings.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static const struct aw_like *like;

static void like_find(void)
{
	const struct aw_slice asked = aw_check_settings()->like;
	char name[32];

	if (!asked.len)
		return;
	snprintf(name, sizeof(name), "%.*s", (int)asked.len, asked.at);
	like = aw_like_find(name);
	if (!like)
		aw_log(AW_LOG_ERROR, "%s has like=%s: the adapters are %s", AW_CHECK_ENV, name,
		       aw_like_names());
}

const struct aw_like *aw_hook_like(void)
{
	pthread_once(&once, like_find);
	return like;
}

/* anywarp's only device, and what it was before it showed another transport. */
static struct {
	pthread_mutex_t lock;
	const struct ibv_device *device; /* NULL: none shows another one */
	enum ibv_transport_type transport;
} shown = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* rdma-core's libibverbs has no such function. */
static bool device_is_anywarps(void)
{
	return dlsym(RTLD_DEFAULT, "avb_refusal_watch") != NULL;
}

void aw_like_show(struct ibv_device *device)
{
	const struct aw_like *adapter = aw_hook_like();

	if (!adapter || !device_is_anywarps())
		return;
	pthread_mutex_lock(&shown.lock);
	if (!shown.device) {
		shown.device = device;
		shown.transport = device->transport_type;
		device->node_type = adapter->node;
		device->transport_type = adapter->transport;
	}
	pthread_mutex_unlock(&shown.lock);
}

enum ibv_transport_type aw_like_transport(const struct ibv_device *device)
{
	enum ibv_transport_type transport;

	pthread_mutex_lock(&shown.lock);
	transport = shown.device == device ? shown.transport : device->transport_type;
	pthread_mutex_unlock(&shown.lock);
	return transport;
}

bool aw_like_allows(int err)
{
	if (err)
		errno = err;
	return err == 0;
}

uint32_t aw_vary_cq_poll(struct aw_cq_shadow *cq, uint32_t max)
{
	uint32_t ask;

	if (!aw_vary_is_on() || max == 0)
		return max;
	pthread_mutex_lock(&cq->lock);
	ask = aw_vary_poll(&cq->vary, max);
	pthread_mutex_unlock(&cq->lock);
	return ask;
}

void aw_vary_cq_polled(struct aw_cq_shadow *cq, struct ibv_wc *wc, int count)
{
	if (!aw_vary_is_on() || count <= 0)
		return;
	pthread_mutex_lock(&cq->lock);
	aw_vary_polled(&cq->vary, wc, (uint32_t)count);
	pthread_mutex_unlock(&cq->lock);
}

void aw_vary_cq_gave(struct aw_cq_shadow *cq)
{
	if (!aw_vary_is_on())
		return;
	pthread_mutex_lock(&cq->lock);
	aw_vary_gave(&cq->vary);
	pthread_mutex_unlock(&cq->lock);
}

void aw_vary_cq_armed(struct aw_cq_shadow *cq, bool solicited_only)
{
	if (!aw_vary_is_on())
		return;
	pthread_mutex_lock(&cq->lock);
	aw_vary_armed(&cq->vary, solicited_only);
	pthread_mutex_unlock(&cq->lock);
}

void aw_vary_cq_event(struct aw_cq_shadow *cq)
{
	if (!aw_vary_is_on())
		return;
	pthread_mutex_lock(&cq->lock);
	aw_vary_event(&cq->vary);
	pthread_mutex_unlock(&cq->lock);
}

struct event_search {
	const struct ibv_comp_channel *channel;
	struct aw_cq_shadow *cq;
};

static void cq_ask(struct aw_object *object, void *arg)
{
	struct event_search *search = arg;
	struct aw_cq_shadow *cq = (struct aw_cq_shadow *)object;
	bool is_spurious;

	if (search->cq || object->kind != AW_KIND_CQ || cq->channel != search->channel)
		return;
	pthread_mutex_lock(&cq->lock);
	is_spurious = aw_vary_event_spurious(&cq->vary);
	if (is_spurious)
		cq->events_spurious++;
	pthread_mutex_unlock(&cq->lock);
	if (!is_spurious)
		return;
	atomic_fetch_add(&object->refs, 1);
	search->cq = cq;
}

struct aw_cq_shadow *aw_vary_channel_event(const struct ibv_comp_channel *channel)
{
	struct event_search search = { .channel = channel };

	if (aw_vary_is_on())
		aw_object_each(cq_ask, &search);
	return search.cq;
}
