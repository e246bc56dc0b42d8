// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The list of these QPs, under a lock of its own, which is taken under a QP's.
#include "net/qp/replied.h"

#include "net/base/fork.h"
#include "ring/lock.h"
#include "ring/table.h"

static aw_mutex lock = PTHREAD_MUTEX_INITIALIZER;
static TAILQ_HEAD(, aw_uqp) replied AW_GUARDED_BY(lock) = TAILQ_HEAD_INITIALIZER(replied);

static void unlist(struct aw_uqp *qp) AW_REQUIRES(lock)
{
	if (qp->replied)
		TAILQ_REMOVE(&replied, qp, replied_entry);
	qp->replied = false;
}

/* The listed QPs' connections are the parent's. */
static void fork_child(void) AW_REQUIRES(lock)
{
	struct aw_uqp *qp;

	while ((qp = TAILQ_FIRST(&replied)))
		unlist(qp);
}

static const struct aw_fork_handlers fork_handlers = {
	.lock = &lock,
	.child = fork_child,
};

static __attribute__((constructor)) void prepare_for_fork(void)
{
	aw_fork_register(AW_FORK_REPLIED, &fork_handlers);
}

void aw_replied_end(struct aw_uqp *qp)
{
	aw_lock(&lock);
	unlist(qp);
	aw_unlock(&lock);
}

int aw_replied_start(struct aw_uqp *qp, const struct aw_uqp_socket *to)
{
	aw_lock(&lock);
	TAILQ_INSERT_TAIL(&replied, qp, replied_entry);
	qp->replied = true;
	aw_unlock(&lock);
	int err = to->start(to->arg, to->fd);

	if (err)
		aw_replied_end(qp);
	return err;
}

uint32_t aw_replied_take(void)
{
	uint32_t handle = AW_TABLE_NONE;

	aw_lock(&lock);
	struct aw_uqp *qp = TAILQ_FIRST(&replied);

	if (qp) {
		handle = qp->handle;
		unlist(qp);
	}
	aw_unlock(&lock);
	return handle;
}
