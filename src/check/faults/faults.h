// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Faults at named places, by a plan that a seed replays. The hooks ask here before they make a call; the plan knows no verbs
// object, thread or clock but what it is given.
#ifndef CHECK_FAULTS_FAULTS_H
#define CHECK_FAULTS_FAULTS_H

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * A verb or a function of rdma_cm by its name ("ibv_reg_mr"): true where the plan has it fail now; *err becomes the errno
 * number. Counts the call, for nth= and for --sweep. Cheap where no plan is set.
 */
bool aw_fault_call(const char *name, int *err);

/* A post of wrs work requests: the number that is accepted before the fault, or -1 for no fault; *err likewise. */
int aw_fault_post(const char *name, unsigned wrs, int *err);

/* A completion that the program is about to be given: true where the plan changes its status. */
bool aw_fault_completion(const struct ibv_wc *wc, enum ibv_wc_status *status);

/* An event of rdma_cm that the program is about to be given: true where the plan puts another one in its place. */
bool aw_fault_cm_event(enum rdma_cm_event_type *event, int *status);

/* An asynchronous event that is due by the plan: true, and its type, at most once for each. now_ns: monotonic. */
bool aw_fault_async(uint64_t now_ns, enum ibv_event_type *type);

/* Whether a plan is set at all. */
bool aw_fault_planned(void);

#endif
