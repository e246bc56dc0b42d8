// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Blocks signals and cancellation, once a thread.
#include "xsock/process/quiet.h"

#include <pthread.h>
#include <stddef.h>

static _Thread_local bool is_quiet;

void aw_quiet_begin(struct aw_quiet *before)
{
	sigset_t all;

	before->was_quiet = is_quiet;
	if (is_quiet)
		return;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before->signals);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before->cancel);
	is_quiet = true;
}

void aw_quiet_end(const struct aw_quiet *before)
{
	if (before->was_quiet)
		return;
	is_quiet = false;
	pthread_setcancelstate(before->cancel, NULL);
	pthread_sigmask(SIG_SETMASK, &before->signals, NULL);
}
