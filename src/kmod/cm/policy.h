// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The administrator's settings of MPA start-up: the module's parameters.
#ifndef KMOD_CM_POLICY_H
#define KMOD_CM_POLICY_H

#include "core/startup.h"

#include <linux/types.h>

/* The settings of this end; ird and ord as asked, at most the device's. */
struct aw_mpa_local awk_policy_local(u32 ird, u32 ord);

#endif
