// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A memory window: an STag that a program binds to a part of an MR by a WR, as often as it likes.
// The window keeps the STag's index; each binding has its own key. Type 1 serves every QP of the
// PD. Type 2 serves only the QP that bound it, and only type 2 can be invalidated (RFC 5040 5.3).
//
// A thread that binds a window holds its QP's lock while it waits for placements through the old
// binding. That cannot deadlock, since a thread that places waits for no lock. A program chooses
// the lowest 8 bits of a type 2 rkey; the other bits of that WR's rkey are ignored.
#ifndef NET_MW_H
#define NET_MW_H

#include "base/thread_safety.h"
#include "core/mr.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#define AW_MW_MAX 65536u

struct aw_mw {
	/* fixed after create */
	uint32_t handle;
	uint32_t stag; /* the window's index, with the first key */
	bool type2;
	const void *pd;

	aw_mutex lock; /* held around a bind; guards what follows */
	bool published; /* mr has been published since it was last withdrawn */
	struct aw_mr mr; /* the binding; changes only while no look-up finds it */

	/* guarded by mw.c's lock */
	struct aw_mr *parent; /* the MR that it is bound to, or NULL */
	LIST_ENTRY(aw_mw) entry; /* bound type 2: in its QP's list */
};

/* A QP as its windows know it, embedded in the QP. */
struct aw_mw_user {
	/* fixed after init */
	const void *pd;
	const void *core; /* struct aw_mr.qp of its type 2 bindings */
	/* guarded by mw.c's lock */
	LIST_HEAD(, aw_mw) windows; /* type 2 windows that it bound */
};

/*
 * Creates a window that is not bound. 0, ENOMEM (AW_MW_MAX of them, or memory), EIO (no
 * randomness).
 */
int aw_mw_create(const void *pd, bool type2, struct aw_mw **mw);

/* Unbinds and frees mw. When this returns no thread places through it any more. */
void aw_mw_destroy(struct aw_mw *mw);

/*
 * As struct aw_ops.bind, with the lock of qp held; wqe->swap is the window's handle. A type 1
 * window's previous binding is dead when this returns, and length 0 makes no new one. A bind of a
 * bound type 2 window is refused, as is one of length 0: its binding ends by invalidation (IBTA
 * o10-37.2.40).
 */
enum aw_wc_status aw_mw_bind(struct aw_mw_user *qp, const struct aw_swqe *wqe);

/* As struct aw_ops.invalidate, with the lock of qp held. */
enum aw_error aw_mw_invalidate(struct aw_mw_user *qp, uint32_t stag);

/* Ends the type 2 bindings of qp, on whose stream nothing is placed any more. */
void aw_mw_forget_qp(struct aw_mw_user *qp);

/* Called before mr is removed. False when windows are bound to it; after true none can be bound. */
bool aw_mw_forbid(struct aw_mr *mr) AW_MUST_USE;

#endif
