// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Newer calls (rdma-core 61 and later) that end in an event of the id: rdma_resolve_addrinfo, whose names are resolved in
// the caller's thread as rdma-core does it, and events of the program's own.
#include "rdmacm/event.h"
#include "rdmacm/fail.h"
#include "rdmacm/newer.h"
#include "ring/lock.h"

#include <netdb.h>
#include <string.h>

int rdma_resolve_addrinfo(struct rdma_cm_id *id, const char *node, const char *service,
			  const struct rdma_addrinfo *hints);
int rdma_query_addrinfo(struct rdma_cm_id *id, struct rdma_addrinfo **info);
int rdma_write_cm_event(struct rdma_cm_id *id, enum rdma_cm_event_type event, int status,
			uint64_t arg);

/* The errno of a failure of rdma_getaddrinfo, which sets errno itself for the last two. */
static int errno_of(int failure)
{
	switch (failure) {
	case EAI_MEMORY:
		return ENOMEM;
	case EAI_AGAIN:
		return EAGAIN;
	case EAI_SOCKTYPE:
		return EPROTONOSUPPORT;
	case EAI_SYSTEM:
	case -1:
		return errno;
	}
	return ENOENT;
}

/* EBUSY until rdma_query_addrinfo has taken what an earlier call found. */
static int begin_resolving(struct aw_cm_id *cm)
{
	aw_lock(&cm->lock);
	bool busy = cm->resolving;

	cm->resolving = true;
	aw_unlock(&cm->lock);
	return busy ? EBUSY : 0;
}

static void end_resolving(struct aw_cm_id *cm, struct rdma_addrinfo *found)
{
	aw_lock(&cm->lock);
	cm->resolving = found;
	cm->resolved = found;
	if (found)
		aw_cm_event_tell(cm, (enum rdma_cm_event_type)AW_CM_EVENT_ADDRINFO_RESOLVED, 0);
	aw_unlock(&cm->lock);
}

/* EOPNOTSUPP for services of InfiniBand's subnet administrator, which IP has not. */
int rdma_resolve_addrinfo(struct rdma_cm_id *id, const char *node, const char *service,
			  const struct rdma_addrinfo *hints)
{
	struct rdma_addrinfo *found = NULL;

	if (!id)
		return aw_cm_fail(EINVAL);
	if (hints && hints->ai_flags & AW_CM_RAI_SA)
		return aw_cm_fail(EOPNOTSUPP);
	struct aw_cm_id *cm = aw_cm_id_of(id);
	int err = begin_resolving(cm);

	if (err)
		return aw_cm_fail(err);
	err = rdma_getaddrinfo(node, service, hints, &found);
	if (err) {
		err = errno_of(err);
		found = NULL;
	}
	end_resolving(cm, found);
	return err ? aw_cm_fail(err) : aw_cm_id_complete(cm);
}

/* The program frees what it gets. ENOENT: there is nothing, or not yet. */
int rdma_query_addrinfo(struct rdma_cm_id *id, struct rdma_addrinfo **info)
{
	if (!id || !info)
		return aw_cm_fail(EINVAL);
	struct aw_cm_id *cm = aw_cm_id_of(id);

	aw_lock(&cm->lock);
	struct rdma_addrinfo *found = cm->resolved;

	if (found) {
		cm->resolved = NULL;
		cm->resolving = false;
	}
	aw_unlock(&cm->lock);
	if (!found)
		return aw_cm_fail(ENOENT);
	*info = found;
	return 0;
}

/* A program's own event: arg is param.arg of newer headers, in the place of the other parameters. */
int rdma_write_cm_event(struct rdma_cm_id *id, enum rdma_cm_event_type event, int status,
			uint64_t arg)
{
	if (!id || (int)event != AW_CM_EVENT_USER)
		return aw_cm_fail(EINVAL);
	struct aw_cm_id *cm = aw_cm_id_of(id);
	struct aw_cm_event *ev = aw_cm_event_create(cm, event, status);

	if (!ev)
		return aw_cm_fail(ENOMEM);
	memcpy(&ev->event.param, &arg, sizeof(arg));
	aw_lock(&cm->lock);
	aw_cm_event_raise(ev);
	aw_unlock(&cm->lock);
	return 0;
}
