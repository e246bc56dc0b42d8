// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The knowledge of an object of verbs or rdma_cm beside the library's own: a shadow, found by the library's pointer, or by
// the context and a number (of a QP, or the lkey of an MR). A destroyed object's shadow stays until its address is used
// again or AW_OBJECTS_GONE_MAX others were destroyed behind it, so that a later call on it can be told.
#ifndef CHECK_MODEL_OBJECT_H
#define CHECK_MODEL_OBJECT_H

#include "check/base/stack.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define AW_OBJECTS_GONE_MAX 1024

enum aw_kind {
	AW_KIND_CONTEXT,
	AW_KIND_PD,
	AW_KIND_TD,
	AW_KIND_MR,
	AW_KIND_MW,
	AW_KIND_CHANNEL,
	AW_KIND_CQ,
	AW_KIND_SRQ,
	AW_KIND_QP,
	AW_KIND_AH,
	AW_KIND_CM_CHANNEL,
	AW_KIND_CM_ID,
	AW_KINDS,
};

/* The first member of every shadow. */
struct aw_object {
	enum aw_kind kind;
	const void *handle; /* the library's object */
	const void *context; /* its ibv_context; NULL for objects of rdma_cm */
	uint32_t number; /* of a QP, or the lkey of an MR */
	bool has_number;
	bool is_inner; /* made inside another call of the library, which frees it as well */
	struct aw_stack made; /* the call that made it */
	void (*free)(struct aw_object *object); /* frees the shadow */
	void (*forked)(
		struct aw_object *object); /* in the child of a fork; NULL: nothing is to be done */
	struct aw_stack gone; /* the call that destroyed it; under the table's lock */
	atomic_bool is_gone;
	atomic_uint calls; /* threads that are in a call on it */
	/* The table's own. */
	atomic_uint refs;
	struct aw_object *next, *next_by_number;
};

/* True where librdmacm or libibverbs made the call: inside one that the program made, or in a thread of its own. */
bool aw_stack_is_library(const struct aw_stack *stack);

#define AW_OBJECT_NAME_MAX 64
/* "QP 0x12", "MR of lkey 0x100", "CQ at 0x7f0000001000". */
void aw_object_name(const struct aw_object *object, char name[AW_OBJECT_NAME_MAX]);

/* Puts the shadow into the table, which owns a reference to it; its stack becomes the call that the thread is in. */
void aw_object_add(struct aw_object *object);
/* The shadow, with a reference for the caller, also of one that is gone; NULL: the table does not know it. */
struct aw_object *aw_object_get(const void *handle, enum aw_kind kind);
/* One that is not gone. */
struct aw_object *aw_object_get_by_number(const void *context, enum aw_kind kind, uint32_t number);
/* NULL does nothing. */
void aw_object_put(struct aw_object *object);

/*
 * The object is about to be destroyed: from here on its address may belong to another one. False: it is gone already, which
 * is told as used-after-destroy. A destroy that fails is taken back by aw_object_stays.
 */
bool aw_object_goes(struct aw_object *object);
void aw_object_stays(struct aw_object *object);

/*
 * A thread enters a call on the object: false, and told, where it was destroyed. destroys: the call destroys it; then a
 * thread that is in another call on it is told as destroyed-in-use.
 */
bool aw_object_enter(struct aw_object *object, bool destroys);
void aw_object_leave(struct aw_object *object);

/* Calls found for every object that is not gone, under the table's lock. */
void aw_object_each(void (*found)(struct aw_object *object, void *arg), void *arg);

/* Calls found for each that was destroyed and is remembered, the last one first, likewise. */
void aw_object_each_gone(void (*found)(struct aw_object *object, void *arg), void *arg);

/*
 * Around a fork. Before it, waits for threads that change the table, but not for ever: the forking thread may be one, in a
 * signal's handler. In the child, calls each shadow's `forked`: the objects' functions are needed there, but their work
 * requests are the parent's, and threads that held locks are not there.
 */
void aw_objects_fork_begin(void);
void aw_objects_fork_end(bool in_child);

#endif
