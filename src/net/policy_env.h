// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The process's MPA policy and host path, from the environment to what start-up is told.
#ifndef NET_POLICY_ENV_H
#define NET_POLICY_ENV_H

#include "net/conn.h"

#define AW_HOST_PATH_ENV "ANYWARP_HOST_PATH" /* on, or off */

/*
 * What ANYWARP_MPA and ANYWARP_HOST_PATH say, read on the first call. 0 with local's policy written and its ird
 * and ord left alone, or EINVAL: one of them is wrong, which was logged once.
 */
int aw_policy_local(struct aw_mpa_local *local);

/* The same without a result, for calls that must not begin what cannot go on. */
int aw_policy_check(void);

#endif
