// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Memory windows. A bound window is published as an MR of its own, so that placing through it costs
// as much as placing into an MR. A binding ends in two steps: first no look-up finds it, which
// needs no wait; then no thread holds it, which a thread that changes or frees the binding waits
// for. A thread that holds a binding is copying, and waits for no other thread.
#include "net/mr/mw.h"

#include "net/base/fork.h"
#include "net/mr/mrtab.h"
#include "ring/lock.h"
#include "ring/once.h"
#include "ring/table.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#define WINDOWS_FORBIDDEN UINT32_MAX /* struct aw_mr.windows */

static struct aw_table table;
static struct aw_once once = AW_ONCE_INIT;
/*
 * Guards every binding: its MR, the number of bindings of an MR, and the list of a QP's bindings.
 * The innermost lock.
 */
static aw_mutex bindings_lock = PTHREAD_MUTEX_INITIALIZER;

static void unbind(struct aw_mw *mw);
static bool rebind(struct aw_mw *mw, struct aw_mw_user *qp, struct aw_mr *parent,
		   const struct aw_swqe *wqe);
static struct aw_mr *hide_binding(struct aw_mw *mw) AW_REQUIRES(bindings_lock);
static void withdraw(struct aw_mw *mw);
static void parent_put(struct aw_mr *parent);

static void fork_prepare(void) AW_ACQUIRE(table.lock, bindings_lock)
{
	aw_table_fork_prepare(&table);
	aw_lock(&bindings_lock);
}

static void fork_parent(void) AW_RELEASE(table.lock, bindings_lock)
{
	aw_unlock(&bindings_lock);
	aw_table_fork_parent(&table);
}

static void fork_child(void) AW_RELEASE(table.lock, bindings_lock)
{
	aw_unlock(&bindings_lock);
	aw_table_fork_child(&table);
}

static const struct aw_fork_handlers fork_handlers = {
	.prepare = fork_prepare,
	.parent = fork_parent,
	.child = fork_child,
};

static int init_once(void)
{
	int err = aw_table_init(&table, AW_MW_MAX);

	if (err)
		return err;
	aw_fork_register(AW_FORK_WINDOWS, &fork_handlers);
	return 0;
}

int aw_mw_create(const void *pd, bool type2, struct aw_mw **created)
{
	struct aw_mw *mw;
	int err;

	err = aw_once_run(&once, init_once);
	if (err)
		return err;
	mw = calloc(1, sizeof(*mw));
	if (!mw)
		return ENOMEM;
	mw->pd = pd;
	mw->type2 = type2;
	pthread_mutex_init(&mw->lock, NULL);
	err = aw_stag_reserve(&mw->stag);
	if (err)
		goto free_mw;
	mw->handle = aw_table_insert(&table, mw, NULL);
	err = ENOMEM;
	if (mw->handle == AW_TABLE_NONE)
		goto cancel;
	*created = mw;
	return 0;

cancel:
	aw_stag_cancel(mw->stag);
free_mw:
	pthread_mutex_destroy(&mw->lock);
	free(mw);
	return err;
}

void aw_mw_destroy(struct aw_mw *mw)
{
	/* After this no bind of mw runs. */
	aw_table_remove_wait(&table, mw->handle);
	unbind(mw);
	aw_stag_cancel(mw->stag);
	pthread_mutex_destroy(&mw->lock);
	free(mw);
}

static bool bind(struct aw_mw *mw, struct aw_mw_user *qp, const struct aw_swqe *wqe)
{
	uint32_t access = AW_ACCESS_MW_BIND;
	struct aw_mr *parent;
	bool bound;

	if (mw->pd != qp->pd || !aw_stag_same_index(mw->stag, wqe->stag))
		return false;
	/* compare_add is the window's length. */
	if (wqe->compare_add == 0) {
		if (mw->type2)
			return false;
		unbind(mw);
		return true;
	}
	parent = aw_mr_get(wqe->inv_or_imm);
	if (!parent)
		return false;
	/* man ibv_bind_mw: the MR must take windows, and be writable here if the peer may write. */
	if (wqe->access & (AW_ACCESS_REMOTE_WRITE | AW_ACCESS_REMOTE_ATOMIC))
		access |= AW_ACCESS_LOCAL_WRITE;
	bound = aw_mr_check(parent, mw->pd, NULL, access, wqe->to, wqe->compare_add) == AW_OK &&
		rebind(mw, qp, parent, wqe);
	aw_mr_put(parent);
	return bound;
}

enum aw_wc_status aw_mw_bind(struct aw_mw_user *qp, const struct aw_swqe *wqe)
{
	/* The WR may have waited until after the window was destroyed. */
	struct aw_mw *mw = aw_table_get(&table, (uint32_t)wqe->swap);
	bool bound = false;

	if (!mw)
		return AW_WC_MW_BIND_ERR;
	aw_lock(&mw->lock);
	bound = bind(mw, qp, wqe);
	aw_unlock(&mw->lock);
	aw_table_put(&table, mw->handle);
	return bound ? AW_WC_SUCCESS : AW_WC_MW_BIND_ERR;
}

/* Ends the binding that mr is; false when it has just ended otherwise. */
static bool end_binding(struct aw_mr *mr)
{
	struct aw_mw *mw = (void *)((char *)mr - offsetof(struct aw_mw, mr));
	struct aw_mr *parent;

	aw_lock(&bindings_lock);
	parent = hide_binding(mw);
	/*
	 * Only the QP whose lock the caller holds could be placing, so the memory is free already.
	 */
	if (parent)
		parent->windows--;
	aw_unlock(&bindings_lock);
	return parent;
}

enum aw_error aw_mw_invalidate(struct aw_mw_user *qp, uint32_t stag)
{
	struct aw_mr *mr = aw_mr_get(stag);
	enum aw_error err = AW_OK;

	if (!mr)
		return AW_E_RDMAP_STAG;
	if (mr->pd != qp->pd || (mr->qp && mr->qp != qp->core))
		err = AW_E_RDMAP_NOT_ASSOCIATED;
	else if (!mr->qp)
		err = AW_E_RDMAP_CANNOT_INVALIDATE;
	else if (!end_binding(mr))
		err = AW_E_RDMAP_STAG;
	aw_mr_put(mr);
	return err;
}

void aw_mw_forget_qp(struct aw_mw_user *qp)
{
	aw_lock(&bindings_lock);
	while (!LIST_EMPTY(&qp->windows))
		hide_binding(LIST_FIRST(&qp->windows))->windows--;
	aw_unlock(&bindings_lock);
}

bool aw_mw_forbid(struct aw_mr *mr)
{
	bool idle;

	aw_lock(&bindings_lock);
	idle = mr->windows == 0;
	if (idle)
		mr->windows = WINDOWS_FORBIDDEN;
	aw_unlock(&bindings_lock);
	return idle;
}

static void unbind(struct aw_mw *mw)
{
	struct aw_mr *parent;

	aw_lock(&bindings_lock);
	parent = hide_binding(mw);
	aw_unlock(&bindings_lock);
	withdraw(mw);
	if (parent)
		parent_put(parent);
}

static bool rebind(struct aw_mw *mw, struct aw_mw_user *qp, struct aw_mr *parent,
		   const struct aw_swqe *wqe)
{
	struct aw_mr *old = NULL;
	bool allowed;

	aw_lock(&bindings_lock);
	allowed = parent->windows != WINDOWS_FORBIDDEN && !(mw->type2 && mw->parent);
	if (allowed) {
		old = hide_binding(mw);
		parent->windows++;
		mw->parent = parent;
		if (mw->type2)
			LIST_INSERT_HEAD(&qp->windows, mw, entry);
	}
	aw_unlock(&bindings_lock);
	if (!allowed)
		return false;

	/* The old MR is released once no thread places there through mw. */
	withdraw(mw);
	if (old)
		parent_put(old);
	mw->mr = (struct aw_mr){
		.stag = wqe->stag,
		.access = (wqe->access & AW_ACCESS_REMOTE) | (parent->access & AW_ACCESS_ON_DEMAND),
		.iova = wqe->access & AW_ACCESS_ZERO_BASED ? 0 : wqe->to,
		.len = wqe->compare_add,
		.host = aw_mr_at(parent, wqe->to),
		.pd = mw->pd,
		.qp = mw->type2 ? qp->core : NULL,
		.window = true,
	};
	aw_stag_publish(&mw->mr);
	mw->published = true;
	return true;
}

/* Hides the binding from look-ups. Returns the MR that it was bound to, or NULL. */
static struct aw_mr *hide_binding(struct aw_mw *mw)
{
	struct aw_mr *parent = mw->parent;

	if (!parent)
		return NULL;
	aw_stag_hide(mw->stag);
	if (mw->type2)
		LIST_REMOVE(mw, entry);
	mw->parent = NULL;
	return parent;
}

/* Waits until no thread holds the hidden binding. */
static void withdraw(struct aw_mw *mw)
{
	if (mw->published)
		aw_stag_withdraw_wait(mw->stag);
	mw->published = false;
}

static void parent_put(struct aw_mr *parent)
{
	aw_lock(&bindings_lock);
	parent->windows--;
	aw_unlock(&bindings_lock);
}
