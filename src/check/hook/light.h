// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The ops of a context where no rule is looked for (--explain alone): they call the device, and look at failures only.
#ifndef CHECK_HOOK_LIGHT_H
#define CHECK_HOOK_LIGHT_H

#include "check/model/verbs.h"

#include <infiniband/verbs.h>

/* True where that is so in this process, by its settings. */
bool aw_light_is_on(void);

/* Replaces the ops of a context, whose shadow has the device's own. */
void aw_light_context(struct ibv_context *context);

/* A context was opened or closed: threads forget the ops that they know by its address. */
void aw_light_forget(void);

#endif
