// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A copy runs within a frame, to which the fault handler jumps back. The frame costs 10 to 20 ns,
// where a copy by the kernel (process_vm_readv(2)) takes more than 1000. Where our handler would
// not be called, the kernel copies.
#include "net/mem/guard.h"

#include "base/tsan.h"
#include "core/atomic.h"
#include "crc/crc.h"
#include "net/mem/fault.h"
#include "net/mem/mapping.h"
#include "net/mem/nontemporal.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

/* The parameters of a copy or an atomic within a frame. */
struct step {
	uint8_t *dst;
	const uint8_t *src;
	size_t len;
	const struct rdmap_atomic_req *req; /* of an atomic, at dst */
	uint64_t before; /* of an atomic: the result */
	uint32_t crc; /* of a copy that folds */
	void (*read)(void *arg); /* by a caller's function */
	void *arg;
};

static void copy_folding(struct step *step)
{
	step->crc = aw_crc32c_copy(step->crc, step->dst, step->src, step->len);
}

static void copy_nontemporal(struct step *step)
{
	aw_nontemporal_copy(step->dst, step->src, step->len);
}

/*
 * SEQ_CST: the program's threads see the atomic in order with their own accesses to the memory
 * before and after it.
 */
static void execute(struct step *step)
{
	uint64_t *word = (uint64_t *)(void *)step->dst;

	step->before = __atomic_load_n(word, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(word, &step->before,
					    aw_atomic_next(step->req, step->before), true,
					    __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		;
}

/* False: a fault ended act, or the copy where act is NULL, before it was complete. */
static bool run(void (*act)(struct step *step), struct step *step, const uint8_t *at, size_t len)
{
	struct aw_fault_frame frame;
	bool whole;

	frame.at = at;
	frame.len = len;
	aw_tsan_ignore_begin();
	whole = sigsetjmp(frame.env, 0) == 0;
	if (whole) {
		aw_fault_frame = &frame;
		/*
		 * The compiler must not move act's accesses to the program's memory out from
		 * between the two fences.
		 */
		atomic_signal_fence(memory_order_seq_cst);
		if (act)
			act(step);
		else
			memcpy(step->dst, step->src, step->len);
		atomic_signal_fence(memory_order_seq_cst);
	}
	aw_fault_frame = NULL;
	aw_tsan_ignore_end();
	return whole;
}

/*
 * The outcome of a copy by the kernel. Where a sandbox forbids the system call, the plain copy is
 * all there is.
 */
static bool is_copied(ssize_t n, struct step *step, const uint8_t *at)
{
	if (n < 0 && errno != EFAULT)
		return run(NULL, step, at, step->len);
	return n == (ssize_t)step->len;
}

static __attribute__((noinline, cold)) bool place_by_kernel(struct step *step)
{
	const struct iovec ours = { (void *)(uintptr_t)step->src, step->len };
	const struct iovec theirs = { step->dst, step->len };

	return is_copied(process_vm_writev(getpid(), &ours, 1, &theirs, 1, 0), step, step->dst);
}

bool aw_guard_place(uint8_t *at, const uint8_t *src, size_t len)
{
	struct step step = { .dst = at, .src = src, .len = len };

	if (len == 0)
		return true;
	return aw_fault_is_caught() ? run(NULL, &step, at, len) : place_by_kernel(&step);
}

static __attribute__((noinline, cold)) bool gather_by_kernel(struct step *step)
{
	const struct iovec ours = { step->dst, step->len };
	const struct iovec theirs = { (void *)(uintptr_t)step->src, step->len };

	return is_copied(process_vm_readv(getpid(), &ours, 1, &theirs, 1, 0), step, step->src);
}

static bool gather(void (*act)(struct step *step), struct step *step)
{
	if (step->len == 0)
		return true;
	return aw_fault_is_caught() ? run(act, step, step->src, step->len) : gather_by_kernel(step);
}

bool aw_guard_gather(uint8_t *dst, const uint8_t *at, size_t len)
{
	return gather(NULL, &(struct step){ .dst = dst, .src = at, .len = len });
}

/* Asked once: another thread, or a handler of the program's, may change the answer meanwhile. */
bool aw_guard_gather_folding(uint8_t *dst, const uint8_t *at, size_t len, uint32_t *crc)
{
	struct step step = { .dst = dst, .src = at, .len = len, .crc = *crc };
	bool folds = len == 0 || aw_fault_is_caught();

	if (len > 0 && !(folds ? run(copy_folding, &step, at, len) : gather_by_kernel(&step)))
		return false;
	*crc = folds ? step.crc : aw_crc32c(*crc, dst, len);
	return true;
}

bool aw_guard_gather_nontemporal(uint8_t *dst, const uint8_t *at, size_t len)
{
	return gather(copy_nontemporal, &(struct step){ .dst = dst, .src = at, .len = len });
}

static void read_by_caller(struct step *step)
{
	step->read(step->arg);
}

bool aw_guard_read(void (*act)(void *arg), void *arg, const uint8_t *at, size_t len)
{
	struct step step = { .read = act, .arg = arg };

	return run(read_by_caller, &step, at, len);
}

bool aw_guard_can_read(void)
{
	return aw_fault_is_caught();
}

/* No system call does an atomic. Without our handler the page is faulted in before. */
bool aw_guard_atomic(uint8_t *at, const struct rdmap_atomic_req *req, uint64_t *before)
{
	struct step step = { .dst = at, .req = req };

	if (!aw_fault_is_caught() && !aw_mapping_reach(at, AW_ATOMIC_LEN, true))
		return false;
	if (!run(execute, &step, at, AW_ATOMIC_LEN))
		return false;
	*before = step.before;
	return true;
}
