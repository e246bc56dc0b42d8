// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Settings from the environment. If a value is wrong, the library logs an error that names the
// variable, the value and the right values, and goes on as if the variable were unset. A program
// that runs with more rights than its user ignores the environment (secure_getenv).
#ifndef XSOCK_PROCESS_ENV_H
#define XSOCK_PROCESS_ENV_H

#include <stdbool.h>

/* Returns whether the variable is "on". Returns otherwise if it is unset, empty or wrong. */
bool aw_env_switch(const char *name, bool otherwise);

/*
 * Returns the variable's decimal number, from 0 to max. Returns otherwise if it is unset, empty or
 * wrong.
 */
int aw_env_number(const char *name, int max, int otherwise);

#endif
