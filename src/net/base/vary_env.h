// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// ANYWARP_VARY: a device that is hostile within the law (docs/vary.md). Read once a process.
#ifndef NET_VARY_ENV_H
#define NET_VARY_ENV_H

#include "base/rng.h"

#include <stdbool.h>

bool aw_vary_env_is_on(void);

/* 0, or EINVAL when the environment holds no number: then there is no device. */
int aw_vary_env_check(void);

/* The seed's stream of chance for the QP that is made now; the n-th QP of a process has the n-th. */
struct aw_rng aw_vary_env_stream(void);

#endif
