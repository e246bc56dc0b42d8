// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Ignores signals.
#include "xsock/proxy/outlive.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

static bool keeps_default(int sig)
{
	static const int kept[] = { SIGSEGV, SIGBUS,  SIGFPE,  SIGILL, SIGTRAP,
				    SIGSYS,  SIGABRT, SIGCHLD, SIGCONT };

	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		if (sig == kept[i])
			return true;
	return false;
}

void aw_outlive_signals(void)
{
	sigset_t none;

	/* signal() fails for SIGKILL, SIGSTOP and the C library's own signals. */
	for (int sig = 1; sig < NSIG; sig++)
		signal(sig, keeps_default(sig) ? SIG_DFL : SIG_IGN);
	sigemptyset(&none);
	pthread_sigmask(SIG_SETMASK, &none, NULL);
}
