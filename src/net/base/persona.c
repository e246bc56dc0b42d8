// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// ANYWARP_PERSONA, read once a process.
#include "net/base/persona.h"

#include "base/log.h"
#include "base/setting.h"

#include <errno.h>
#include <pthread.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool is_roce;
static int err;

static void read_environment(void)
{
	unsigned long word = 0;

	/* Of a wrong ANYWARP_LOG the user is told, although there may be nothing else to log. */
	(void)aw_log_level();
	if (aw_setting_read(AW_SETTING_PERSONA, "there is no device", &word) == AW_SETTING_WRONG)
		err = EINVAL;
	is_roce = word == 1;
}

bool aw_persona_is_roce(void)
{
	pthread_once(&once, read_environment);
	return is_roce;
}

int aw_persona_check(void)
{
	pthread_once(&once, read_environment);
	return err;
}
