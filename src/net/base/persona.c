// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// ANYWARP_PERSONA, read once a process.
#include "net/base/persona.h"

#include "base/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool is_roce;
static int err;

static void read_environment(void)
{
	const char *word = secure_getenv(AW_PERSONA_ENV);

	if (!word || !*word || !strcmp(word, "iwarp"))
		return;
	is_roce = !strcmp(word, "roce");
	if (is_roce)
		return;
	err = EINVAL;
	aw_log(AW_LOG_ERROR, "%s is '%s': it must be iwarp or roce", AW_PERSONA_ENV, word);
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
