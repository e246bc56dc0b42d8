// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Reads the settings of the environment.
#include "xsock/process/env.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "xsock/base/log.h"

bool aw_env_switch(const char *name, bool otherwise)
{
	const char *word = secure_getenv(name);

	if (!word || !*word)
		return otherwise;
	if (!strcmp(word, "on"))
		return true;
	if (!strcmp(word, "off"))
		return false;
	aw_xs_log(AW_XS_LOG_ERROR, "%s is '%.32s': it must be on or off; taken as %s", name, word,
		  otherwise ? "on" : "off");
	return otherwise;
}

int aw_env_number(const char *name, int max, int otherwise)
{
	const char *word = secure_getenv(name);
	char *end;
	long number;

	if (!word || !*word)
		return otherwise;
	errno = 0;
	number = strtol(word, &end, 10);
	if (!errno && !*end && number >= 0 && number <= max)
		return (int)number;
	aw_xs_log(AW_XS_LOG_ERROR, "%s is '%.32s': it must be a number from 0 to %d; not heeded",
		  name, word, max);
	return otherwise;
}
