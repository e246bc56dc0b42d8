// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Blocks signals and cancellation, and finds out which interrupted calls the kernel would restart.
#include "xsock/process/shield.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

static _Atomic(bool) has_handlers; /* the program handles a signal */
/* The signals, one a bit, whose handler has SA_RESETHAND and not SA_RESTART: the kernel removes it when it runs. */
static _Atomic(uint64_t) once;

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
	enum aw_strike strike = AW_STRIKE_NONE;
	struct sigaction action;
	sigset_t pending;

	if (!shield->up || sigpending(&pending) != 0)
		return AW_STRIKE_NONE;
	for (int sig = 1; sig < NSIG; sig++) {
		if (!sigismember(&pending, sig) || sigismember(&shield->before, sig) ||
		    sigaction(sig, NULL, &action) != 0 || !is_handler(action.sa_handler))
			continue;
		if (!(action.sa_flags & SA_RESTART))
			return AW_STRIKE_ENDS;
		strike = AW_STRIKE_RESTARTS;
	}
	return strike;
}

/*
 * Handlers of SIGSEGV and SIGBUS do not count: a fault does not interrupt this library's work, and libibverbs has such
 * handlers of its own.
 */
void aw_shield_note_action(int sig, void (*handler)(int), int flags)
{
	if (sig < 1 || sig >= NSIG)
		return;
	if (is_handler(handler) && flags & (int)SA_RESETHAND && !(flags & SA_RESTART))
		atomic_fetch_or(&once, bit_of(sig));
	else
		atomic_fetch_and(&once, ~bit_of(sig));
	if (is_handler(handler) && sig != SIGSEGV && sig != SIGBUS)
		atomic_store(&has_handlers, true);
}

void aw_shield_raise(struct aw_shield *shield)
{
	sigset_t all;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &shield->cancel);
	shield->up = atomic_load_explicit(&has_handlers, memory_order_relaxed);
	if (!shield->up)
		return;
	sigfillset(&all);
	sigdelset(&all, SIGSEGV); /* libibverbs handles faults of its copies (net/mem/fault.h) */
	sigdelset(&all, SIGBUS);
	pthread_sigmask(SIG_BLOCK, &all, &shield->before);
}

void aw_shield_lower(const struct aw_shield *shield)
{
	if (shield->up)
		pthread_sigmask(SIG_SETMASK, &shield->before, NULL);
	pthread_setcancelstate(shield->cancel, NULL);
}
