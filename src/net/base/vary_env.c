// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The seed, and the number of streams that were taken from it.
#include "net/base/vary_env.h"

#include "base/log.h"
#include "base/setting.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static unsigned long seed;
static bool is_on;
static int err;
static _Atomic uint64_t streams;

static void read_environment(void)
{
	switch (aw_setting_read(AW_SETTING_VARY, "there is no device", &seed)) {
	case AW_SETTING_UNSET:
		return;
	case AW_SETTING_RIGHT:
		is_on = true;
		aw_log(AW_LOG_INFO, "the device varies by seed %lu", seed);
		return;
	case AW_SETTING_WRONG:
		err = EINVAL;
		return;
	}
}

bool aw_vary_env_is_on(void)
{
	pthread_once(&once, read_environment);
	return is_on;
}

int aw_vary_env_check(void)
{
	pthread_once(&once, read_environment);
	return err;
}

/* Relaxed: only the number matters. */
struct aw_rng aw_vary_env_stream(void)
{
	return aw_rng_stream(seed, atomic_fetch_add_explicit(&streams, 1, memory_order_relaxed));
}
