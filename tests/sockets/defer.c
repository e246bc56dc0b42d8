// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Loaded behind the library under test: a runtime that calls signal handlers later, at the end of the next call that may wait, and with a
// copy of the context, as the thread sanitizer's does. The program sets defer_next, and
// the library's next look for bytes raises SIGUSR2 and SIGUSR1.
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <ucontext.h>

#define SIGNALS 65

typedef ssize_t recvmsg_fn(int fd, struct msghdr *msg, int flags);
typedef int sigaction_fn(int sig, const struct sigaction *action, struct sigaction *before);

int defer_next;
static struct sigaction actions[SIGNALS];
static struct {
	bool armed;
	siginfo_t info;
	ucontext_t context;
} pending[SIGNALS];

static void defer(int sig, siginfo_t *info, void *context)
{
	pending[sig].armed = true;
	pending[sig].info = *info;
	memcpy(&pending[sig].context, context, sizeof(ucontext_t));
}

int sigaction(int sig, const struct sigaction *action, struct sigaction *before)
{
	struct sigaction old = actions[sig], own;
	sigaction_fn *real;

	*(void **)&real = dlsym(RTLD_NEXT, "sigaction");
	if (!action || !(action->sa_flags & SA_SIGINFO))
		return real(sig, action, before);
	own = actions[sig] = *action;
	own.sa_sigaction = defer;
	if (before)
		*before = old;
	return real(sig, &own, NULL);
}

static void run_pending(void)
{
	sigset_t all, mask;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &mask);
	for (int sig = 1; sig < SIGNALS; sig++) {
		if (!pending[sig].armed)
			continue;
		pending[sig].armed = false;
		actions[sig].sa_sigaction(sig, &pending[sig].info, &pending[sig].context);
	}
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
}

ssize_t recvmsg(int fd, struct msghdr *msg, int flags)
{
	recvmsg_fn *real;
	ssize_t got;

	*(void **)&real = dlsym(RTLD_NEXT, "recvmsg");
	if (!defer_next)
		return real(fd, msg, flags);
	defer_next = 0;
	raise(SIGUSR2);
	raise(SIGUSR1);
	got = real(fd, msg, flags);
	run_pending();
	return got;
}
