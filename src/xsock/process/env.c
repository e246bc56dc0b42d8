// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Reads the settings of the environment.
#include "xsock/process/env.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/log.h"
#include "base/slice.h"

bool aw_env_switch(const char *name, bool otherwise)
{
	static const char *const words[] = { "off", "on" };
	const char *word = secure_getenv(name);
	size_t found;

	if (!word || !*word)
		return otherwise;
	if (aw_slice_find(aw_slice_of(word), words, ARRAY_LEN(words), &found))
		return found;
	aw_log(AW_LOG_ERROR, "%s is '%.32s': it must be on or off; taken as %s", name, word,
	       otherwise ? "on" : "off");
	return otherwise;
}

int aw_env_number(const char *name, int max, int otherwise)
{
	const char *word = secure_getenv(name);
	unsigned long number;

	if (!word || !*word)
		return otherwise;
	if (aw_slice_number(aw_slice_of(word), (unsigned long)max, &number))
		return (int)number;
	aw_log(AW_LOG_ERROR, "%s is '%.32s': it must be a number from 0 to %d; ignored", name, word,
	       max);
	return otherwise;
}
