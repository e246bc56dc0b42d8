// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The plan of this process.
#include "check/faults/faults.h"

#include "base/clock.h"
#include "base/log.h"
#include "check/faults/count.h"
#include "check/faults/names.h"
#include "check/faults/words.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum state {
	UNREAD,
	OFF,
	ON
};

/* All but the counters is fixed once the environment is read. */
static struct aw_fault_plan plan;
static struct aw_fault_count counts[AW_FAULTS_MAX];
static struct aw_fault_counts *file; /* NULL: nobody wants the calls counted */
static uint64_t seed = 1;
static uint64_t start_ns;
static bool wire;
static _Atomic int state; /* stored last, by settings_read; pairs with the load in is_on */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Thread_local bool
	reads; /* the thread is in settings_read, whose calls of libc may be wrapped */

static uint64_t elapsed_ns(void)
{
	return (uint64_t)aw_now_ns() - start_ns;
}

/* A self:stop or self:kill that counts neither calls nor bytes. */
static bool is_timed(const struct aw_fault *fault)
{
	const struct aw_fault_when *when = &fault->when;

	return fault->kind == AW_FAULT_SELF && !fault->at_byte && !fault->name.len &&
	       when->after_ns && !when->nth && !when->from && !when->every && !when->probability;
}

static int signal_of(const struct aw_fault *fault)
{
	return fault->what == AW_WIRE_STOP ? SIGSTOP : SIGKILL;
}

/* The kernel sends the signal itself, so that no thread has to wait for the time. */
static void start_timer(const struct aw_fault *fault)
{
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = signal_of(fault) };
	struct itimerspec time = {
		.it_value = { .tv_sec = (time_t)(fault->when.after_ns / 1000000000),
			      .tv_nsec = (long)(fault->when.after_ns % 1000000000) },
	};
	timer_t timer;

	if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0 ||
	    timer_settime(timer, 0, &time, NULL) != 0)
		aw_log(AW_LOG_ERROR, "fault %.*s does not occur: no timer: %s",
		       (int)fault->text.len, fault->text.at, strerror(errno));
}

static void settings_read(void)
{
	const char *planned = secure_getenv(AW_FAULTS_ENV);
	const char *seeded = secure_getenv(AW_FAULTS_SEED_ENV);
	const char *path = secure_getenv(AW_FAULTS_COUNT_ENV);
	struct aw_fault_problem problem;
	unsigned long number;

	if (!aw_fault_plan_parse(planned, &plan, &problem)) {
		aw_log(AW_LOG_ERROR, AW_FAULTS_ENV " '%.*s': %s: no fault occurs", (int)problem.len,
		       planned + problem.at, problem.why);
		plan.count = 0;
	}
	if (seeded && aw_slice_number(aw_slice_of(seeded), (unsigned long)-1, &number))
		seed = number;
	else if (seeded)
		aw_log(AW_LOG_ERROR, AW_FAULTS_SEED_ENV " is '%s': it must be a number: it is 1",
		       seeded);
	file = path && *path ? aw_fault_counts_map(path) : NULL;
	if (path && *path && !file)
		aw_log(AW_LOG_ERROR, AW_FAULTS_COUNT_ENV " is '%s': %s: no call is counted", path,
		       strerror(errno));
	start_ns = (uint64_t)aw_now_ns();
	wire = aw_fault_plan_needs_wire(&plan);
	for (unsigned i = 0; i < plan.count; i++)
		if (is_timed(&plan.faults[i]))
			start_timer(&plan.faults[i]);
	atomic_store_explicit(&state, plan.count > 0 || file ? ON : OFF, memory_order_release);
}

static bool is_on(void)
{
	int now = atomic_load_explicit(&state, memory_order_acquire);

	if (now == UNREAD && !reads) {
		int err = errno;

		reads = true;
		pthread_once(&once, settings_read);
		reads = false;
		errno = err;
		now = atomic_load_explicit(&state, memory_order_acquire);
	}
	return now == ON;
}

bool aw_fault_planned(void)
{
	return is_on();
}

bool aw_fault_wire_planned(void)
{
	return is_on() && wire;
}

/* Notes that the fault occurs, at the n-th occasion, which `what` names. */
static void occurred(const struct aw_fault *fault, const char *what, uint64_t n)
{
	if (file)
		atomic_fetch_add_explicit(&file->injected, 1, memory_order_relaxed);
	if (aw_log_has_room())
		aw_log(AW_LOG_ERROR, "fault %.*s occurs: %s %" PRIu64, (int)fault->text.len,
		       fault->text.at, what, n);
}

static bool decide(unsigned index, uint64_t elapsed, const char *what)
{
	const struct aw_fault *fault = &plan.faults[index];
	uint64_t n;

	if (!aw_fault_decide(&fault->when, &counts[index], seed, index, elapsed, &n))
		return false;
	occurred(fault, what, n);
	return true;
}

static void wait_ns(uint64_t ns)
{
	struct timespec left = { .tv_sec = (time_t)(ns / 1000000000),
				 .tv_nsec = (long)(ns % 1000000000) };

	while (nanosleep(&left, &left) != 0 && errno == EINTR)
		;
}

static void send_signal(const struct aw_fault *fault)
{
	kill(getpid(), signal_of(fault));
}

static int usual_errno(const char *name)
{
	int index = aw_fault_name_find(aw_slice_of(name));

	return index >= 0 ? aw_fault_name_errno((unsigned)index) : EINVAL;
}

/* The fate of a call, by all faults of its function together. */
struct outcome {
	int err; /* 0: it does not fail */
	unsigned wr;
	uint64_t delay_ns;
};

static struct outcome call(const char *name, unsigned wrs)
{
	int saved = errno;
	int index = file ? aw_fault_name_find(aw_slice_of(name)) : -1;
	struct outcome outcome = { 0, 0, 0 };
	uint64_t elapsed;

	if (index >= 0)
		aw_fault_counts_add(file, (unsigned)index);
	elapsed = elapsed_ns();
	for (unsigned i = 0; i < plan.count; i++) {
		const struct aw_fault *fault = &plan.faults[i];
		bool is_self = fault->kind == AW_FAULT_SELF && !fault->at_byte && !is_timed(fault);

		if (is_self && (!fault->name.len || aw_fault_name_matches(fault->name, name)) &&
		    decide(i, elapsed, name))
			send_signal(fault);
		if (fault->kind != AW_FAULT_CALL || fault->wr > wrs ||
		    !aw_fault_name_matches(fault->name, name) || !decide(i, elapsed, name))
			continue;
		outcome.delay_ns += fault->delay_ns;
		if (fault->err && !outcome.err) {
			outcome.err = fault->is_usual ? usual_errno(name) : fault->err;
			outcome.wr = fault->wr ? fault->wr - 1 : 0;
		}
	}
	if (outcome.delay_ns)
		wait_ns(outcome.delay_ns);
	errno = saved;
	return outcome;
}

bool aw_fault_call(const char *name, int *err)
{
	struct outcome outcome;

	if (!is_on())
		return false;
	outcome = call(name, 0);
	if (outcome.err)
		*err = outcome.err;
	return outcome.err != 0;
}

int aw_fault_post(const char *name, unsigned wrs, int *err)
{
	struct outcome outcome;

	if (!is_on())
		return -1;
	outcome = call(name, wrs);
	if (!outcome.err)
		return -1;
	*err = outcome.err;
	return (int)outcome.wr;
}

/* An occasion of a kind that needs no more words. */
static bool kind_occurs(enum aw_fault_kind kind, const char *what)
{
	bool occurs = false;

	if (!aw_fault_planned())
		return false;
	for (unsigned i = 0; i < plan.count; i++)
		if (plan.faults[i].kind == kind)
			occurs |= decide(i, elapsed_ns(), what);
	return occurs;
}

bool aw_fault_qp_error(void)
{
	return kind_occurs(AW_FAULT_QP_ERROR, "post");
}

bool aw_fault_cq_overrun(void)
{
	return kind_occurs(AW_FAULT_CQ_OVERRUN, "completion");
}

bool aw_fault_completion(const struct ibv_wc *wc, enum ibv_wc_status *status)
{
	if (!aw_fault_planned() || wc->status != IBV_WC_SUCCESS)
		return false;
	for (unsigned i = 0; i < plan.count; i++) {
		const struct aw_fault *fault = &plan.faults[i];

		if (fault->kind == AW_FAULT_COMPLETION &&
		    fault->ops & aw_fault_op_bit(wc->opcode) &&
		    decide(i, elapsed_ns(), "completion")) {
			*status = fault->status;
			return true;
		}
	}
	return false;
}

bool aw_fault_cm_event(enum rdma_cm_event_type *event, int *status)
{
	if (!aw_fault_planned())
		return false;
	for (unsigned i = 0; i < plan.count; i++) {
		const struct aw_fault *fault = &plan.faults[i];

		if (fault->kind == AW_FAULT_CM &&
		    aw_fault_cm_replaces(fault->event) & 1u << *event &&
		    decide(i, elapsed_ns(), "event")) {
			*event = fault->event;
			*status = fault->err;
			return true;
		}
	}
	return false;
}

uint64_t aw_fault_cm_late(enum rdma_cm_event_type event)
{
	uint64_t late_ns = 0;

	if (!aw_fault_planned())
		return 0;
	for (unsigned i = 0; i < plan.count; i++) {
		const struct aw_fault *fault = &plan.faults[i];

		if (fault->kind == AW_FAULT_CM_LATE && fault->event == event &&
		    decide(i, elapsed_ns(), "event"))
			late_ns += fault->delay_ns;
	}
	return late_ns;
}

/* The event that is due first of those that have not occurred; -1: none is left. */
static int first_async(void)
{
	int first = -1;

	for (unsigned i = 0; i < plan.count; i++) {
		const struct aw_fault *fault = &plan.faults[i];

		if (fault->kind == AW_FAULT_ASYNC &&
		    !atomic_load_explicit(&counts[i].occurred, memory_order_relaxed) &&
		    (first < 0 || fault->when.after_ns < plan.faults[first].when.after_ns))
			first = (int)i;
	}
	return first;
}

bool aw_fault_async(uint64_t now_ns, enum ibv_event_type *type)
{
	int first = aw_fault_planned() ? first_async() : -1;

	if (first < 0 || now_ns < start_ns || !decide((unsigned)first, now_ns - start_ns, "event"))
		return false;
	*type = plan.faults[first].async;
	return true;
}

uint64_t aw_fault_async_due_ns(void)
{
	int first = aw_fault_planned() ? first_async() : -1;

	return first < 0 ? UINT64_MAX : start_ns + plan.faults[first].when.after_ns;
}

bool aw_fault_async_planned(void)
{
	if (!aw_fault_planned())
		return false;
	for (unsigned i = 0; i < plan.count; i++)
		if (plan.faults[i].kind == AW_FAULT_ASYNC ||
		    plan.faults[i].kind == AW_FAULT_CQ_OVERRUN)
			return true;
	return false;
}

void aw_fault_wire_begin(struct aw_fault_stream *stream)
{
	*stream = (struct aw_fault_stream){ 0 };
	if (aw_fault_wire_planned())
		aw_fault_stream_begin(&plan, counts, seed, stream);
}

struct aw_wire_step aw_fault_wire_next(struct aw_fault_stream *stream,
				       enum aw_wire_direction direction, size_t len)
{
	struct aw_wire_step step;

	for (;;) {
		step = aw_fault_stream_next(&plan, stream, direction, len, elapsed_ns());
		if (step.is_first)
			occurred(&plan.faults[step.fault], "byte", stream->of[direction].offset);
		if (step.what != AW_WIRE_STOP && step.what != AW_WIRE_KILL)
			return step;
		send_signal(&plan.faults[step.fault]);
	}
}

void aw_fault_wire_moved(struct aw_fault_stream *stream, enum aw_wire_direction direction,
			 const struct aw_wire_step *step, size_t bytes)
{
	if (step->what == AW_WIRE_FLIP && bytes > step->at)
		occurred(&plan.faults[step->fault], "byte",
			 stream->of[direction].offset + step->at);
	aw_fault_stream_moved(stream, direction, step, bytes);
}
