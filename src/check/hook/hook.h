// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The parts that the exported functions share. Each of them enters (base/inside.h), asks the plan of faults, makes the real call, tells
// the model, and says why a call failed.
#ifndef CHECK_HOOK_HOOK_H
#define CHECK_HOOK_HOOK_H

#include "check/base/inside.h"
#include "check/base/real.h"
#include "check/model/object.h"
#include "check/model/verbs.h"

#include <stdbool.h>

/* False: the plan has the call fail; errno is set. */
bool aw_hook_may(const char *call);

/* A post of wrs work requests: the number that is accepted before the one that the plan has refused, by *err; -1: it refuses none. */
int aw_hook_post(const char *call, unsigned wrs, int *err);

/* The failure that is explained next is the plan's doing. */
void aw_hook_by_plan(void);

/* Says why the call failed: the plan, or the reason. Keeps errno. */
void aw_hook_explain(const char *call, const char *why);

/* Says why the call failed, by the errno number, which it keeps as errno. */
void aw_hook_failed(const char *call, int err);

/* The end of a call that returns 0 or an errno number, or 0 or -1 with errno: says why it failed, leaves, and returns the same. */
int aw_hook_end(const char *call, int err);
int aw_hook_end_minus(const char *call, int rc);

/* Sees to it that the context's ops are the hooks'. Every call that is given a context begins here. */
void aw_hook_context(struct ibv_context *context);

/* Replaces the functions of a QP's or CQ's extended interface. */
void aw_hook_qp_ex(struct ibv_qp_ex *qp);
void aw_hook_cq_ex(struct ibv_cq_ex *cq);

/*
 * A destroy of the object, which may be NULL where it is not known. False: the call must not be made, and errno says what to
 * return: a fault of the plan, or an object that is destroyed already, whose memory may be gone. True: the real call follows,
 * and then the end with what it returned; err is 0 or an errno number.
 */
bool aw_destroy_begin(const char *call, struct aw_object *object);
void aw_destroy_end(const char *call, struct aw_object *object, int err);

#endif
