// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The objects that can be imported, in one list: programs have few, and import fewer. Its lock is
// taken around fork so that the child finds it free.
#include "verbs/share.h"

#include "net/base/fork.h"
#include "ring/lock.h"
#include "verbs/context.h"

#include <errno.h>
#include <pthread.h>

static aw_mutex lock = PTHREAD_MUTEX_INITIALIZER;
static TAILQ_HEAD(vb_shared_list, vb_shared) all AW_GUARDED_BY(lock) = TAILQ_HEAD_INITIALIZER(all);

static const struct aw_fork_handlers fork_handlers = { .lock = &lock };

static __attribute__((constructor)) void prepare_for_fork(void)
{
	aw_fork_register(AW_FORK_SHARED_OBJECTS, &fork_handlers);
}

void vb_share_add(struct vb_shared *shared, enum vb_kind kind, struct ibv_context *context)
{
	static uint32_t handles AW_GUARDED_BY(lock);

	shared->kind = kind;
	shared->context = context;
	aw_lock(&lock);
	shared->handle = handles++;
	TAILQ_INSERT_TAIL(&all, shared, entry);
	aw_unlock(&lock);
}

bool vb_share_remove(struct vb_shared *shared)
{
	bool unused;

	aw_lock(&lock);
	/* Acquire: pairs with the release of its last user. */
	unused = atomic_load_explicit(&shared->users, memory_order_acquire) == 0;
	if (unused)
		TAILQ_REMOVE(&all, shared, entry);
	aw_unlock(&lock);
	return unused;
}

struct vb_shared *vb_share_take(struct ibv_context *context, enum vb_kind kind, uint32_t handle)
{
	struct vb_shared *shared;

	aw_lock(&lock);
	TAILQ_FOREACH(shared, &all, entry)
	{
		if (shared->kind == kind && shared->handle == handle &&
		    vb_context_is_same(shared->context, context))
			break;
	}
	if (shared)
		atomic_fetch_add_explicit(&shared->users, 1, memory_order_relaxed);
	aw_unlock(&lock);
	if (!shared)
		errno = ENOENT;
	return shared;
}
