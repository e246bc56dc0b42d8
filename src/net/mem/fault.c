// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Our handlers, and calling the program's from them. All that a handler reads is written before it
// is installed.
#include "net/mem/fault.h"

#include "ring/lock.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define KEPT_MAX \
	8 /* a program that installs more handlers keeps the last one: the kernel copies then */

_Thread_local struct aw_fault_frame *aw_fault_frame __attribute__((tls_model("initial-exec")));

/* A handler that the program had installed. */
struct kept {
	struct sigaction action;
	_Atomic bool spent; /* SA_RESETHAND: the handler was called once */
};

static struct fault {
	int sig;
	struct kept kept[KEPT_MAX];
	unsigned int count;
	_Atomic unsigned int latest; /* index of kept */
} faults[] = { { .sig = SIGSEGV }, { .sig = SIGBUS } };

#define FAULTS (sizeof(faults) / sizeof(faults[0]))

static aw_mutex lock = PTHREAD_MUTEX_INITIALIZER; /* guards the writing of faults */
static uintptr_t page; /* bytes of one */

/* The signal that this thread's handler last passed on, and the stack depth of that call. */
static _Thread_local struct {
	const siginfo_t *info;
	uintptr_t depth;
} passed __attribute__((tls_model("initial-exec")));

static _Thread_local struct {
	struct timespec at;
	bool caught;
} seen __attribute__((tls_model("initial-exec")));

static void pass_on(int sig, siginfo_t *info, void *context);

/*
 * True for a fault of the thread's own; false for a signal that was sent, or memory that failed
 * elsewhere.
 */
static bool is_synchronous(int sig, const siginfo_t *info)
{
	return info->si_code > 0 && !(sig == SIGBUS && info->si_code == BUS_MCEERR_AO);
}

static bool is_within(const struct aw_fault_frame *frame, const void *addr)
{
	uintptr_t first = (uintptr_t)frame->at & ~(page - 1);

	/* Some processors report only the page of the fault. */
	return ((uintptr_t)addr & ~(page - 1)) - first < (uintptr_t)frame->at - first + frame->len;
}

static void on_fault(int sig, siginfo_t *info, void *context)
{
	struct aw_fault_frame *frame = aw_fault_frame;

	if (frame && is_synchronous(sig, info) && is_within(frame, info->si_addr)) {
		aw_fault_frame = NULL;
		/*
		 * The caller of this handler, such as a sanitizer's handler, may have blocked more
		 * signals than the kernel.
		 */
		pthread_sigmask(SIG_SETMASK, &((ucontext_t *)context)->uc_sigmask, NULL);
		siglongjmp(frame->env, 1);
	}
	pass_on(sig, info, context);
}

/*
 * Returns the handler that was installed last. A handler that passes unknown faults on to ours is
 * the exception: when it has called us, the handler from before our first installation is next. A
 * signal's info lies where the kernel put it, above both calls on the stack, so the same info
 * deeper in the stack shows such a call.
 */
static struct kept *next_of(struct fault *fault, const siginfo_t *info, uintptr_t depth)
{
	unsigned int latest = atomic_load_explicit(&fault->latest, memory_order_acquire);
	bool again = passed.info == info && depth < passed.depth;

	return &fault->kept[again ? 0 : latest];
}

static bool is_default(struct kept *kept)
{
	const struct sigaction *action = &kept->action;

	if (action->sa_flags & SA_RESETHAND && atomic_exchange(&kept->spent, true))
		return true;
	return !(action->sa_flags & SA_SIGINFO) && action->sa_handler == SIG_DFL;
}

static void pass_on(int sig, siginfo_t *info, void *context)
{
	uintptr_t depth = (uintptr_t)__builtin_frame_address(0);
	struct kept *kept = next_of(&faults[sig == SIGBUS], info, depth);
	const struct sigaction *action = &kept->action;
	bool ignores = !(action->sa_flags & SA_SIGINFO) && action->sa_handler == SIG_IGN;

	passed.info = info;
	passed.depth = depth;
	/* A fault cannot be ignored. */
	if (is_default(kept) || (ignores && is_synchronous(sig, info))) {
		/* The process ends as by the kernel's default: at the fault itself, once the handler has returned. */
		sigaction(sig, &(struct sigaction){ .sa_handler = SIG_DFL }, NULL);
		if (!is_synchronous(sig, info))
			raise(sig);
	} else if (!ignores) {
		/* Blocks what the kernel would; the return from our handler restores the thread's mask. */
		sigset_t mask = action->sa_mask;

		if (!(action->sa_flags & SA_NODEFER))
			sigaddset(&mask, sig);
		pthread_sigmask(SIG_BLOCK, &mask, NULL);
		if (action->sa_flags & SA_SIGINFO)
			action->sa_sigaction(sig, info, context);
		else
			action->sa_handler(sig);
	}
	passed.info = NULL;
}

static bool is_ours(const struct sigaction *action)
{
	return action->sa_flags & SA_SIGINFO && action->sa_sigaction == on_fault;
}

/* Compares signal by signal: a mask has more bits than the kernel fills in. */
static bool same(const struct sigaction *a, const struct sigaction *b)
{
	if (a->sa_flags != b->sa_flags || a->sa_handler != b->sa_handler)
		return false;
	for (int sig = 1; sig < NSIG; sig++)
		if (sigismember(&a->sa_mask, sig) != sigismember(&b->sa_mask, sig))
			return false;
	return true;
}

/* False: there is no room. */
static bool keep(struct fault *fault, const struct sigaction *action) AW_REQUIRES(lock)
{
	unsigned int at = 0;

	while (at < fault->count && !same(&fault->kept[at].action, action))
		at++;
	if (at == KEPT_MAX)
		return false;
	if (at == fault->count)
		fault->kept[fault->count++].action = *action;
	atomic_store(&fault->kept[at].spent, false);
	/* Release: pairs with next_of, which the program's handler may call at once. */
	atomic_store_explicit(&fault->latest, at, memory_order_release);
	return true;
}

/* SA_NODEFER: a jump out of the handler leaves no signal blocked. */
static void watch(struct fault *fault) AW_REQUIRES(lock)
{
	struct sigaction ours = { .sa_sigaction = on_fault };
	struct sigaction now;

	if (sigaction(fault->sig, NULL, &now) != 0 || is_ours(&now) || !keep(fault, &now))
		return;
	/*
	 * Our handler restarts an interrupted call as the program's would. Without a handler no call
	 * is interrupted.
	 */
	bool handles = now.sa_handler != SIG_DFL && now.sa_handler != SIG_IGN;

	ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER |
			(handles ? now.sa_flags & SA_RESTART : SA_RESTART);
	sigaction(fault->sig, &ours, NULL);
}

/*
 * A thread that finds the lock taken leaves the work to the holder. In the child of a fork the lock
 * may stay taken for ever.
 */
void aw_fault_watch(void)
{
	if (aw_trylock(&lock) != 0)
		return;
	page = (uintptr_t)sysconf(_SC_PAGESIZE);
	for (size_t i = 0; i < FAULTS; i++)
		watch(&faults[i]);
	aw_unlock(&lock);
}

static bool is_caught(void)
{
	struct sigaction now;
	sigset_t blocked;

	if (pthread_sigmask(SIG_BLOCK, NULL, &blocked) != 0)
		return false;
	for (size_t i = 0; i < FAULTS; i++)
		if (sigismember(&blocked, faults[i].sig) ||
		    sigaction(faults[i].sig, NULL, &now) != 0 || !is_ours(&now))
			return false;
	return true;
}

/*
 * Three system calls for each copy would be noticeable; three per tick of the kernel's clock are
 * not.
 */
bool aw_fault_is_caught(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	if (now.tv_nsec != seen.at.tv_nsec || now.tv_sec != seen.at.tv_sec) {
		seen.at = now;
		seen.caught = is_caught();
	}
	return seen.caught;
}
