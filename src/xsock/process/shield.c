// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Blocks signals and cancellation, and finds out which interrupted calls the kernel would restart.
#include "xsock/process/shield.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

static _Atomic(bool) has_handlers; /* the program handles a signal */

/*
 * Returns whether the thread's own instruction raises sig: its handler interrupts no call that
 * waits.
 */
static bool is_fault(int sig)
{
	return sig == SIGSEGV || sig == SIGBUS || sig == SIGFPE || sig == SIGILL ||
	       sig == SIGTRAP || sig == SIGSYS;
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
		if (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN &&
		    !(action.sa_flags & SA_RESTART))
			return false;
	}
	return true;
}

void aw_shield_note_handler(void)
{
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
