// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Blocks signals and cancellation, once a thread.
#include "xsock/process/quiet.h"

#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>

#define MASK_BYTES ((size_t)(NSIG - 1) / 8)

static _Thread_local bool is_quiet;

/* pthread_sigmask leaves alone the signals by which libc itself ends threads and changes their user. */
__attribute__((noinline)) void aw_quiet_set_mask(uint64_t bits)
{
	sigset_t set;

	sigemptyset(&set);
	memcpy(&set, &bits, MASK_BYTES);
	pthread_sigmask(SIG_SETMASK, &set, NULL);
}

__attribute__((noinline)) static uint64_t block_all(void)
{
	sigset_t set, before;
	uint64_t bits;

	sigfillset(&set);
	pthread_sigmask(SIG_BLOCK, &set, &before);
	memcpy(&bits, &before, MASK_BYTES);
	return bits;
}

void aw_quiet_begin(struct aw_quiet *before)
{
	before->was_quiet = is_quiet;
	if (is_quiet)
		return;
	before->signals = block_all();
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before->cancel);
	is_quiet = true;
}

void aw_quiet_end(const struct aw_quiet *before)
{
	if (before->was_quiet)
		return;
	is_quiet = false;
	pthread_setcancelstate(before->cancel, NULL);
	aw_quiet_set_mask(before->signals);
}
