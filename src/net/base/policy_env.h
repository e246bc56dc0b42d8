// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The process's MPA policy and host path, read from the environment for start-up.
#ifndef NET_POLICY_ENV_H
#define NET_POLICY_ENV_H

#include "core/startup.h"

/*
 * Sends and receives of the responder, each a system call, before a stream moves into memory: by
 * then the move costs less than it saves (docs/host-path.md).
 */
#define AW_HOST_PATH_CALLS 64

/*
 * Reads ANYWARP_MPA and ANYWARP_HOST_PATH on the first call. 0 with local's policy written and its
 * ird and ord left alone, or EINVAL: one of the two is wrong, which was logged once.
 */
int aw_policy_local(struct aw_mpa_local *local);

/* The same check without a result, for calls that must not begin what would fail later, or that only tell the user. */
int aw_policy_check(void);

/* How many of those calls the responder waits for: 1 where the user asks for the host path. */
uint32_t aw_policy_host_path_calls(void);

#endif
