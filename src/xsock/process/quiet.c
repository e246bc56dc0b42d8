// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Blocks signals and cancellation, once a thread.
#include "xsock/process/quiet.h"

#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>

#include "xsock/base/libc.h"

#define MASK_BYTES ((size_t)(NSIG - 1) / 8)

static _Thread_local bool is_quiet;

void aw_quiet_set_mask(uint64_t bits)
{
	bits &= ~AW_QUIET_LIBC_SIGNALS;
	(void)aw_libc()->syscall(SYS_rt_sigprocmask, SIG_SETMASK, &bits, NULL, MASK_BYTES);
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
