// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Puts off signal handlers and cancellation, and finds out which interrupted calls the kernel would restart.
//
// The kernel calls on_signal in place of a handler that the program sets. Where the signal has interrupted work under a
// shield, on_signal keeps it and has the thread go on with all signals blocked; the handler runs when the shield is
// lowered. A shield that no signal meets thus costs no system call. A signal may interrupt one system call of the work under a
// shield. A handler that the program sets by rt_sigaction itself is not put off.
#include "xsock/process/shield.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <ucontext.h>

#include "xsock/base/libc.h"
#include "xsock/process/fdtab.h"

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
/* The innermost shield of the thread. A handler may read it within malloc(3), which dynamic TLS would call. */
static _Thread_local struct aw_shield *_Atomic raised __attribute__((tls_model("initial-exec")));

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

enum aw_strike aw_shield_strike(const struct aw_shield *shield)
{
	int first = shield->sig;
	struct sigaction action;
	sigset_t pending;
	bool ends;

	if (!first || sigpending(&pending) != 0)
		return AW_STRIKE_NONE;
	ends = aw_libc()->sigaction(first, NULL, &action) != 0 || !(action.sa_flags & SA_RESTART);
	for (int sig = 1; sig < NSIG && !ends; sig++)
		ends = sigismember(&pending, sig) && !sigismember(&shield->before, sig) &&
		       sigaction(sig, NULL, &action) == 0 && is_handler(action.sa_handler) &&
		       !(action.sa_flags & SA_RESTART);
	return ends ? AW_STRIKE_ENDS : AW_STRIKE_RESTARTS;
}

/*
 * Fills the set with the signals that wait for a shield: not faults, which the thread's own instruction raises, nor
 * SIGABRT, since abort(3) ends the process after the handler.
 */
static void fill_kept(sigset_t *kept)
{
	sigfillset(kept);
	sigdelset(kept, SIGABRT);
	for (int sig = 1; sig < NSIG; sig++)
		if (is_fault(sig))
			sigdelset(kept, sig);
}

/* Copies what the kernel has of a signal set. */
static sigset_t set_of(const void *mask)
{
	sigset_t set;

	sigemptyset(&set);
	memcpy(&set, mask, MASK_BYTES);
	return set;
}

/* Calls the program's handler with the mask that the kernel would have given it. context has the mask of before. */
static void call_handler(int sig, siginfo_t *info, ucontext_t *context, bool defers)
{
	sigset_t blocked = set_of(&context->uc_sigmask), added = set_of(&actions[sig].mask);

	sigorset(&blocked, &blocked, &added);
	if (defers)
		sigaddset(&blocked, sig);
	pthread_sigmask(SIG_SETMASK, &blocked, NULL);
	atomic_load (&actions[sig].handler)(sig, info, context);
}

/* Keeps the signal for the shield, and blocks the other signals of the thread once on_signal has returned. */
static void keep(struct aw_shield *shield, int sig, const siginfo_t *info, ucontext_t *context)
{
	sigset_t kept;

	fill_kept(&kept);
	shield->info = *info;
	shield->before = set_of(&context->uc_sigmask);
	sigorset(&kept, &kept, &shield->before);
	memcpy(&context->uc_sigmask, &kept, MASK_BYTES);
	shield->sig = sig;
}

/* The kernel calls it with all signals blocked that wait for a shield. */
static void on_signal(int sig, siginfo_t *info, void *context)
{
	struct aw_shield *shield = atomic_load_explicit(&raised, memory_order_relaxed);

	if (shield && !shield->sig)
		keep(shield, sig, info, context);
	else
		call_handler(sig, info, context, !(atomic_load(&actions[sig].flags) & SA_NODEFER));
}

/*
 * Runs the handler of a signal that was kept, on the thread's own stack. A handler with SA_RESETHAND is not interrupted by
 * its signal, which it may have set no handler for yet: signals that come under one shield count as one.
 */
static void run_kept(const struct aw_shield *shield)
{
	int sig = shield->sig, flags = atomic_load(&actions[sig].flags);
	siginfo_t info = shield->info;
	ucontext_t context;

	getcontext(&context);
	context.uc_sigmask = shield->before;
	call_handler(sig, &info, &context, !(flags & SA_NODEFER) || flags & (int)SA_RESETHAND);
	pthread_sigmask(SIG_SETMASK, &context.uc_sigmask, NULL);
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
	sigset_t kept;

	fill_kept(&kept);
	return sigismember(&kept, sig) == 1 && is_handler(action->sa_handler) &&
	       action->sa_sigaction != on_signal && !aw_fdtab_is_vfork_child();
}

/* Puts on_signal in the place of action's handler, with a mask that keeps other handlers from interrupting it. */
static void replace(int sig, struct sigaction *action)
{
	uint64_t mask = 0;

	memcpy(&mask, &action->sa_mask, MASK_BYTES);
	atomic_store(&actions[sig].mask, mask);
	atomic_store(&actions[sig].flags, action->sa_flags);
	atomic_store(&actions[sig].handler, action->sa_sigaction);
	fill_kept(&action->sa_mask);
	action->sa_sigaction = on_signal;
	action->sa_flags |= SA_SIGINFO;
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
		if (is_to_be_kept(sig, &own))
			replace(sig, &own);
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
static aw_handler_fn *plain(handler_fn *handler)
{
	return (struct sigaction){ .sa_sigaction = handler }.sa_handler;
}

aw_handler_fn *aw_shield_adopt(int sig, aw_handler_fn *before)
{
	handler_fn *handler = before == plain(on_signal) ? actions[sig].handler : NULL;
	struct sigaction own;

	if (before == SIG_ERR || aw_libc()->sigaction(sig, NULL, &own) != 0)
		return before;
	if (is_to_be_kept(sig, &own))
		(void)aw_shield_sigaction(sig, &own, NULL);
	else if (own.sa_sigaction != on_signal)
		note_once(sig, &own);
	return handler ? plain(handler) : before;
}

static void set_raised(struct aw_shield *shield)
{
	atomic_signal_fence(memory_order_seq_cst);
	atomic_store_explicit(&raised, shield, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
}

void aw_shield_raise(struct aw_shield *shield)
{
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &shield->cancel);
	shield->sig = 0;
	shield->outer = atomic_load_explicit(&raised, memory_order_relaxed);
	set_raised(shield);
}

/* Leaves a kept signal to the shield around this one. */
static void hand_out(const struct aw_shield *shield)
{
	struct aw_shield *outer = shield->outer;

	outer->info = shield->info;
	outer->before = shield->before;
	outer->sig = shield->sig;
}

void aw_shield_lower(const struct aw_shield *shield)
{
	set_raised(shield->outer);
	if (shield->sig && shield->outer)
		hand_out(shield);
	pthread_setcancelstate(shield->cancel, NULL);
	if (shield->sig && !shield->outer)
		run_kept(shield);
}
