/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The function of anywarp's libibverbs.so.1 by which libanywarp-check.so is told of each request of a peer for memory that this
 * end refuses. The header is not installed, and the function's version is ANYWARP_PRIVATE_1: both libraries are of one
 * build. Other libibverbs lack the function, so it is found by dlsym(3).
 */
#ifndef ANYWARP_CHECK_H
#define ANYWARP_CHECK_H

#include <infiniband/verbs.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum anywarp_refusal_cause {
	ANYWARP_REFUSAL_RKEY = 1, /* no MR and no memory window has the rkey */
	ANYWARP_REFUSAL_PD, /* the MR is of another PD than the QP */
	ANYWARP_REFUSAL_WINDOW, /* the memory window is bound to another QP */
	ANYWARP_REFUSAL_MR_RIGHTS, /* the MR or window does not grant the right */
	ANYWARP_REFUSAL_QP_RIGHTS, /* the QP's qp_access_flags do not */
	ANYWARP_REFUSAL_BOUNDS, /* the request is not inside the MR or window */
	ANYWARP_REFUSAL_UNMAPPED, /* it is, but the memory there is not mapped, or not writable */
	ANYWARP_REFUSAL_UNALIGNED, /* the address of an atomic is no multiple of 8 */
};

struct anywarp_refusal {
	struct ibv_qp *qp; /* this end's, which has ended the stream */
	enum anywarp_refusal_cause cause;
	unsigned int access; /* the right that it needs: IBV_ACCESS_REMOTE_READ of a Read */
	uint32_t rkey;
	uint64_t addr, length; /* of a Write of several segments: of the one that was refused */
	uint64_t start, size; /* the extent of the MR or window for peers; 0: there is none */
};

/*
 * Called for each stream that ends so, once, by the thread that has received the request: one of the library's own, or one of the
 * program's in a call of verbs. refusal is the library's, and valid during the call; the QP is not destroyed before it returns. The
 * thread may hold a lock of the library, so the function calls no verb and waits for no thread that may be in one.
 */
typedef void anywarp_refused(const struct anywarp_refusal *refusal);

/* Sets the function, of which a process has one; NULL: none. A call that has begun may still run when this returns. */
void avb_refusal_watch(anywarp_refused *refused);

#ifdef __cplusplus
}
#endif

#endif
