// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Puts off signal handlers and cancellation, and finds out which interrupted calls the kernel would restart.
//
// The kernel calls on_signal in place of a handler that the program sets. Where the signal has interrupted work under a
// shield, on_signal keeps it and has the thread go on with all signals blocked; the handler runs when the shield is
// lowered. A shield that no signal meets thus costs no system call. A signal may interrupt one system call of the work under a
// shield. A handler that the program sets by rt_sigaction itself is not put off.
//
// A runtime that has put its own function in on_signal's place, such as the thread sanitizer's, calls on_signal later, within a
// call of libc's and with a copy of the context: the thread does not go on with the mask there. Further signals are then kept
// as well, in the order in which they come.
#include "xsock/process/shield.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <ucontext.h>

#include "xsock/base/libc.h"
#include "xsock/process/fdtab.h"
#include "xsock/process/memory.h"
#include "xsock/process/quiet.h"

/* The bytes of the kernel's signal set; glibc's sigset_t has more, which a handler's ucontext_t lacks. */
#define MASK_BYTES ((size_t)(NSIG - 1) / 8)

typedef void handler_fn(int sig, siginfo_t *info, void *context);

/* The program's last handler of each signal. It stays here when the program sets SIG_DFL: a signal may have been kept before. */
static struct {
	_Atomic(handler_fn *) handler;
	_Atomic(int) flags;
	_Atomic(uint64_t) mask;
} actions[NSIG];

/* The signals, one a bit, whose handler has SA_RESETHAND and not SA_RESTART: the kernel removes it when it runs. */
static _Atomic(uint64_t) once;
/* A handler may read what is the thread's within malloc(3), which dynamic TLS would call. */
#define IN_THREAD static _Thread_local __attribute__((tls_model("initial-exec")))

/* A shield of the thread is raised. */
IN_THREAD _Atomic(bool) raised;

struct kept_signal {
	int sig;
	siginfo_t info;
};

/* The kernel has one each of the signals without a queue, and a runtime one of each. */
#define KEPT_MAX NSIG

/* The thread's kept signals. They change in on_signal while the shield is raised, and in run_kept with signals blocked. */
IN_THREAD struct {
	volatile unsigned count;
	uint64_t mask; /* the thread's before the last of them came */
	struct kept_signal first;
	struct kept_signal *others; /* mapped while there are any */
} queue;

/*
 * Returns whether the thread's own instruction raises sig: its handler interrupts no call that
 * waits.
 */
static bool is_fault(int sig)
{
	return sig == SIGSEGV || sig == SIGBUS || sig == SIGFPE || sig == SIGILL ||
	       sig == SIGTRAP || sig == SIGSYS;
}

static bool is_handler(void (*handler)(int))
{
	return handler != SIG_DFL && handler != SIG_IGN;
}

static uint64_t bit_of(int sig)
{
	return UINT64_C(1) << (sig - 1);
}

/* Returns whether sig's handler, set by the program for one run, has run. Forgets it then. */
static bool has_run_once(int sig, const struct sigaction *action)
{
	return action->sa_handler == SIG_DFL && atomic_fetch_and(&once, ~bit_of(sig)) & bit_of(sig);
}

void aw_shield_begin_wait(void)
{
	struct sigaction action;

	for (int sig = 1; sig < NSIG && atomic_load_explicit(&once, memory_order_relaxed); sig++)
		if (atomic_load(&once) & bit_of(sig) && sigaction(sig, NULL, &action) == 0)
			(void)has_run_once(sig, &action);
}

/*
 * The kernel restarts a call if the handler has SA_RESTART. This function does not know which
 * handler has run: it returns true only if every handler has SA_RESTART, and never if there is a
 * time-out.
 */
bool aw_shield_restarts(int64_t timeout_ns)
{
	struct sigaction action;

	if (timeout_ns >= 0)
		return false;
	for (int sig = 1; sig < NSIG; sig++) {
		if (is_fault(sig) || sigaction(sig, NULL, &action) != 0)
			continue;
		if (has_run_once(sig, &action) ||
		    (is_handler(action.sa_handler) && !(action.sa_flags & SA_RESTART)))
			return false;
	}
	return true;
}

static struct kept_signal *kept_at(unsigned place)
{
	return place ? &queue.others[place - 1] : &queue.first;
}

enum aw_strike aw_shield_strike(void)
{
	struct sigaction action;
	sigset_t pending;
	bool ends = false;

	if (!queue.count || sigpending(&pending) != 0)
		return AW_STRIKE_NONE;
	for (unsigned i = 0; i < queue.count && !ends; i++)
		ends = !(atomic_load(&actions[kept_at(i)->sig].flags) & SA_RESTART);
	for (int sig = 1; sig < NSIG && !ends; sig++)
		ends = sigismember(&pending, sig) && !(queue.mask & bit_of(sig)) &&
		       sigaction(sig, NULL, &action) == 0 && is_handler(action.sa_handler) &&
		       !(action.sa_flags & SA_RESTART);
	return ends ? AW_STRIKE_ENDS : AW_STRIKE_RESTARTS;
}

/*
 * Returns the signals that wait for a shield: not faults, which the thread's own instruction raises, nor
 * SIGABRT, since abort(3) ends the process after the handler.
 */
static uint64_t kept_signals(void)
{
	uint64_t kept = ~(AW_QUIET_LIBC_SIGNALS | bit_of(SIGABRT));

	for (int sig = 1; sig < NSIG; sig++)
		if (is_fault(sig))
			kept &= ~bit_of(sig);
	return kept;
}

/* Copies what the kernel has of a signal set. */
static sigset_t set_of(const void *mask)
{
	sigset_t set;

	sigemptyset(&set);
	memcpy(&set, mask, MASK_BYTES);
	return set;
}

static uint64_t bits_of(const sigset_t *set)
{
	uint64_t bits;

	memcpy(&bits, set, MASK_BYTES);
	return bits;
}

/* The mask that the kernel gives sig's handler. */
static uint64_t handlers_mask(int sig, uint64_t before, bool defers)
{
	return before | atomic_load(&actions[sig].mask) | (defers ? bit_of(sig) : 0);
}

static void call_handler(int sig, siginfo_t *info, ucontext_t *context, uint64_t mask)
{
	aw_quiet_set_mask(mask);
	atomic_load (&actions[sig].handler)(sig, info, context);
}

/* Keeps the signal, and blocks the other signals of the thread once on_signal has returned. */
static void signal_keep(int sig, const siginfo_t *info, ucontext_t *context)
{
	unsigned count = queue.count;
	uint64_t going_on;

	queue.mask = bits_of(&context->uc_sigmask);
	going_on = queue.mask | kept_signals();
	memcpy(&context->uc_sigmask, &going_on, MASK_BYTES);
	/* A signal without a queue comes once however often it is sent. */
	for (unsigned i = 0; sig < SIGRTMIN && i < count; i++)
		if (kept_at(i)->sig == sig)
			return;
	if (count == KEPT_MAX)
		return;
	if (count && !queue.others)
		queue.others = aw_memory_map((KEPT_MAX - 1) * sizeof(struct kept_signal));
	if (count && !queue.others)
		return; /* as where the kernel has no memory for a signal */
	*kept_at(count) = (struct kept_signal){ sig, *info };
	queue.count = count + 1;
}

/* The kernel calls it with all signals blocked that wait for a shield. */
static void on_signal(int sig, siginfo_t *info, void *context)
{
	bool defers = !(atomic_load(&actions[sig].flags) & SA_NODEFER);
	uint64_t before = bits_of(&((ucontext_t *)context)->uc_sigmask);

	if (atomic_load_explicit(&raised, memory_order_relaxed))
		signal_keep(sig, info, context);
	else
		call_handler(sig, info, context, handlers_mask(sig, before, defers));
}

/*
 * Runs the handler of a signal that was kept, on the thread's own stack. A handler with SA_RESETHAND is not interrupted by
 * its signal, which it may have set no handler for yet: signals that come under one shield count as one. Returns the mask,
 * which the handler may have changed.
 */
__attribute__((noinline)) static uint64_t run_one(struct kept_signal *kept, uint64_t mask)
{
	int flags = atomic_load(&actions[kept->sig].flags);
	bool defers = !(flags & SA_NODEFER) || flags & (int)SA_RESETHAND;
	ucontext_t context;

	getcontext(&context);
	context.uc_sigmask = set_of(&mask);
	queue.mask = handlers_mask(kept->sig, mask, defers);
	call_handler(kept->sig, &kept->info, &context, queue.mask);
	return bits_of(&context.uc_sigmask);
}

/* A handler may use a shield itself: what is kept then, and is not blocked, runs within it. */
static void run_kept(void)
{
	uint64_t mask = queue.mask;
	struct kept_signal kept;
	unsigned i;

	aw_quiet_set_mask(UINT64_MAX);
	for (;;) {
		/* The first kept signal that the mask lets through leaves the queue. */
		i = 0;
		while (i < queue.count && mask & bit_of(kept_at(i)->sig))
			i++;
		if (i == queue.count)
			break;
		kept = *kept_at(i);
		for (queue.count--; i < queue.count; i++)
			*kept_at(i) = *kept_at(i + 1);

		queue.mask = mask = run_one(&kept, mask);
		aw_quiet_set_mask(UINT64_MAX);
	}
	if (queue.others && !queue.count) {
		aw_memory_unmap(queue.others, (KEPT_MAX - 1) * sizeof(struct kept_signal));
		queue.others = NULL;
	}
	aw_quiet_set_mask(mask);
}

static void note_once(int sig, const struct sigaction *action)
{
	if (is_handler(action->sa_handler) && action->sa_flags & (int)SA_RESETHAND &&
	    !(action->sa_flags & SA_RESTART))
		atomic_fetch_or(&once, bit_of(sig));
	else
		atomic_fetch_and(&once, ~bit_of(sig));
}

/* Returns whether the action's handler is to wait for a shield. A vfork's child would change the parent's table. */
static bool is_to_be_kept(int sig, const struct sigaction *action)
{
	return kept_signals() & bit_of(sig) && is_handler(action->sa_handler) &&
	       action->sa_sigaction != on_signal && !aw_fdtab_is_vfork_child();
}

int aw_shield_sigaction(int sig, const struct sigaction *action, struct sigaction *before)
{
	bool known = sig >= 1 && sig < NSIG;
	handler_fn *handler = known ? atomic_load(&actions[sig].handler) : NULL;
	int flags = known ? atomic_load(&actions[sig].flags) : 0;
	uint64_t mask = known ? atomic_load(&actions[sig].mask) : 0;
	struct sigaction own;

	if (action && known) {
		own = *action;
		note_once(sig, &own);
		if (is_to_be_kept(sig, &own)) {
			const uint64_t kept = kept_signals();

			/* on_signal takes the handler's place, with a mask that keeps other handlers from interrupting it. */
			atomic_store(&actions[sig].mask, bits_of(&own.sa_mask));
			atomic_store(&actions[sig].flags, own.sa_flags);
			atomic_store(&actions[sig].handler, own.sa_sigaction);
			own.sa_mask = set_of(&kept);
			own.sa_sigaction = on_signal;
			own.sa_flags |= SA_SIGINFO;
		}
		action = &own;
	}
	if (aw_libc()->sigaction(sig, action, before) != 0)
		return -1;
	if (before && before->sa_sigaction == on_signal) {
		before->sa_sigaction = handler;
		before->sa_flags &= flags | ~SA_SIGINFO;
		before->sa_mask = set_of(&mask);
	}
	return 0;
}

/* The same address by the other name of the two that a handler has in struct sigaction. */
static aw_handler_fn *plain_handler(handler_fn *handler)
{
	return (struct sigaction){ .sa_sigaction = handler }.sa_handler;
}

aw_handler_fn *aw_shield_adopt(int sig, aw_handler_fn *before)
{
	handler_fn *handler = before == plain_handler(on_signal) ? actions[sig].handler : NULL;
	struct sigaction own;

	if (before == SIG_ERR || aw_libc()->sigaction(sig, NULL, &own) != 0)
		return before;
	if (is_to_be_kept(sig, &own))
		(void)aw_shield_sigaction(sig, &own, NULL);
	else if (own.sa_sigaction != on_signal)
		note_once(sig, &own);
	return handler ? plain_handler(handler) : before;
}

static void set_raised(bool is_raised)
{
	atomic_signal_fence(memory_order_seq_cst);
	atomic_store_explicit(&raised, is_raised, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
}

void aw_shield_raise(struct aw_shield *shield)
{
	sigset_t unused;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &shield->cancel);
	shield->is_inner = atomic_load_explicit(&raised, memory_order_relaxed);
	set_raised(true);
	/*
	 * The thread sanitizer in front of this library runs handlers that it has put off at the end of a call of libc's, of
	 * which it has one of its own: of this one, which has nothing to do, and not of one where the thread has a lock. From
	 * now on it has none to put off.
	 */
	if (!shield->is_inner)
		sigemptyset(&unused);
}

void aw_shield_lower(const struct aw_shield *shield)
{
	set_raised(shield->is_inner);
	pthread_setcancelstate(shield->cancel, NULL);
	if (queue.count && !shield->is_inner)
		run_kept();
}
