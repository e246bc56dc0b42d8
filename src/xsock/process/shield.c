// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Puts off signal handlers and cancellation, and finds out which interrupted calls the kernel would restart.
//
// The kernel calls on_signal in place of a handler that the program sets. Where the signal has interrupted work under a
// shield, on_signal keeps it and has the thread go on with all signals blocked; the handler runs when the shield is
// lowered. A shield that no signal meets thus costs no system call.
#include "xsock/process/shield.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <ucontext.h>

#include "xsock/base/libc.h"

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
	ends = !(atomic_load(&actions[first].flags) & SA_RESTART);
	for (int sig = 1; sig < NSIG && !ends; sig++)
		ends = sigismember(&pending, sig) && !sigismember(&shield->before, sig) &&
		       sigaction(sig, NULL, &action) == 0 && is_handler(action.sa_handler) &&
		       !(action.sa_flags & SA_RESTART);
	return ends ? AW_STRIKE_ENDS : AW_STRIKE_RESTARTS;
}

/* libibverbs handles faults of its copies (net/mem/fault.h). */
static void fill_blocked(sigset_t *blocked)
{
	sigfillset(blocked);
	sigdelset(blocked, SIGSEGV);
	sigdelset(blocked, SIGBUS);
}

/* Keeps the signal for the shield, and blocks all signals of the thread once this handler has returned. */
static void keep(struct aw_shield *shield, int sig, const siginfo_t *info, ucontext_t *context)
{
	sigset_t blocked;

	fill_blocked(&blocked);
	shield->info = *info;
	sigemptyset(&shield->before);
	memcpy(&shield->before, &context->uc_sigmask, MASK_BYTES);
	memcpy(&context->uc_sigmask, &blocked, MASK_BYTES);
	shield->sig = sig;
}

static void on_signal(int sig, siginfo_t *info, void *context)
{
	struct aw_shield *shield = atomic_load_explicit(&raised, memory_order_relaxed);

	if (shield && !shield->sig)
		keep(shield, sig, info, context);
	else
		atomic_load (&actions[sig].handler)(sig, info, context);
}

/* Runs the handler of a signal that was kept, with the mask that the kernel would have given it. */
static void run_kept(const struct aw_shield *shield)
{
	int sig = shield->sig, flags = atomic_load(&actions[sig].flags);
	uint64_t mask = atomic_load(&actions[sig].mask);
	siginfo_t info = shield->info;
	sigset_t blocked, before = shield->before;
	ucontext_t context;

	sigemptyset(&blocked);
	memcpy(&blocked, &mask, MASK_BYTES);
	sigorset(&blocked, &blocked, &before);
	if (!(flags & SA_NODEFER))
		sigaddset(&blocked, sig);
	getcontext(&context);
	context.uc_sigmask = before;
	pthread_sigmask(SIG_SETMASK, &blocked, NULL);
	atomic_load (&actions[sig].handler)(sig, &info, &context);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void note_once(int sig, const struct sigaction *action)
{
	if (is_handler(action->sa_handler) && action->sa_flags & (int)SA_RESETHAND &&
	    !(action->sa_flags & SA_RESTART))
		atomic_fetch_or(&once, bit_of(sig));
	else
		atomic_fetch_and(&once, ~bit_of(sig));
}

/* A fault interrupts the thread's own instruction, which its handler has to mend at once. */
static bool is_kept(int sig, const struct sigaction *action)
{
	return sig >= 1 && sig < NSIG && !is_fault(sig) && is_handler(action->sa_handler);
}

/* Puts on_signal in the place of action's handler. */
static void replace(int sig, struct sigaction *action)
{
	uint64_t mask;

	memcpy(&mask, &action->sa_mask, MASK_BYTES);
	atomic_store(&actions[sig].mask, mask);
	atomic_store(&actions[sig].flags, action->sa_flags);
	atomic_store(&actions[sig].handler, action->sa_sigaction);
	action->sa_sigaction = on_signal;
	action->sa_flags |= SA_SIGINFO;
}

int aw_shield_sigaction(int sig, const struct sigaction *action, struct sigaction *before)
{
	bool known = sig >= 1 && sig < NSIG;
	handler_fn *handler = known ? atomic_load(&actions[sig].handler) : NULL;
	int flags = known ? atomic_load(&actions[sig].flags) : 0;
	struct sigaction own;

	if (action && known) {
		own = *action;
		note_once(sig, &own);
		if (is_kept(sig, &own))
			replace(sig, &own);
		action = &own;
	}
	if (aw_libc()->sigaction(sig, action, before) != 0)
		return -1;
	if (before && before->sa_sigaction == on_signal) {
		before->sa_sigaction = handler;
		before->sa_flags &= flags | ~SA_SIGINFO;
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

	if (before != SIG_ERR && aw_libc()->sigaction(sig, NULL, &own) == 0 &&
	    own.sa_sigaction != on_signal)
		(void)aw_shield_sigaction(sig, &own, NULL);
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
