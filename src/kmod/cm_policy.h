// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What the administrator decides of MPA's start-up: the module's parameters.
#ifndef KMOD_CM_POLICY_H
#define KMOD_CM_POLICY_H

#include "core/startup.h"

#include <linux/types.h>

/* What this end wants; ird and ord as asked, at most the device's. */
struct aw_mpa_local awk_policy_local(u32 ird, u32 ord);

#endif
