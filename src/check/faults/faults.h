// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Faults at named places, by a plan that a seed replays. The hooks ask here before they make a call; the plan knows no verbs
// object, thread or clock but what it is given. The plan is ANYWARP_FAULTS, which is read once, at the first question.
// Faults that occur are logged here.
#ifndef CHECK_FAULTS_FAULTS_H
#define CHECK_FAULTS_FAULTS_H

#include "check/faults/stream.h"

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * A verb or a function of rdma_cm by its name ("ibv_reg_mr"): true where the plan has it fail now; *err becomes the errno
 * number. Counts the call, for nth= and for --sweep. Cheap where no plan is set. May sleep, for delay=, and may stop or end
 * the process: the caller holds no lock.
 */
bool aw_fault_call(const char *name, int *err);

/* A post of wrs work requests: the number that is accepted before the fault, or -1 for no fault; *err likewise. */
int aw_fault_post(const char *name, unsigned wrs, int *err);

/* A post to a QP that is accepted: true where the plan has the QP go to the state ERR behind it. */
bool aw_fault_qp_error(void);

/* A completion that the program is about to be given: true where the plan changes its status. */
bool aw_fault_completion(const struct ibv_wc *wc, enum ibv_wc_status *status);

/* The same completion: true where the plan has its CQ overrun, so that the program is not given it. */
bool aw_fault_cq_overrun(void);

/* An event of rdma_cm that the program is about to be given: true where the plan puts another one in its place. */
bool aw_fault_cm_event(enum rdma_cm_event_type *event, int *status);

/* The same event: how many nanoseconds later the program is to be given it; 0: now. */
uint64_t aw_fault_cm_late(enum rdma_cm_event_type event);

/* An asynchronous event that is due by the plan: true, and its type, at most once for each. now_ns: monotonic. */
bool aw_fault_async(uint64_t now_ns, enum ibv_event_type *type);

/* The monotonic time at which the next one is due; UINT64_MAX: none is left. */
uint64_t aw_fault_async_due_ns(void);

/* True where the plan has asynchronous events at all, those of a CQ that overruns among them. */
bool aw_fault_async_planned(void);

/* True where a plan is set at all, or calls are counted. */
bool aw_fault_planned(void);

/* True where it has a fault of the wire. */
bool aw_fault_wire_planned(void);

/* A TCP connection of the process begins. */
void aw_fault_wire_begin(struct aw_fault_stream *stream);

/* As aw_fault_stream_next, at the present time. Stops or ends the process itself, and then asks again. */
struct aw_wire_step aw_fault_wire_next(struct aw_fault_stream *stream,
				       enum aw_wire_direction direction, size_t len);

/* As aw_fault_stream_moved. */
void aw_fault_wire_moved(struct aw_fault_stream *stream, enum aw_wire_direction direction,
			 const struct aw_wire_step *step, size_t bytes);

#endif
