// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Settings from the environment. A value that is wrong is an error in the log, which names the variable, the value and
// what it must be; the setting then is what it would be without the variable. Programs that run with more rights than
// their user's ignore the environment (secure_getenv).
#ifndef XSOCK_PROCESS_ENV_H
#define XSOCK_PROCESS_ENV_H

#include <stdbool.h>

/* "on" or "off"; otherwise: unset, empty or wrong. */
bool aw_env_switch(const char *name, bool otherwise);

/* A decimal number from 0 to max; otherwise: unset, empty or wrong. */
int aw_env_number(const char *name, int max, int otherwise);

#endif
