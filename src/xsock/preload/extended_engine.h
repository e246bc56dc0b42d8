// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The engine of the extended calls, as extended.c has loaded it. For extended_io.c.
#ifndef XSOCK_PRELOAD_EXTENDED_ENGINE_H
#define XSOCK_PRELOAD_EXTENDED_ENGINE_H

#include <stdbool.h>

#include "xsock/ext/calls.h"

/* The calling thread is in a call of the engine's that waits, or that reads the pair itself. */
extern _Thread_local bool aw_extended_engaged;

/* Returns NULL before the first iwarp_start. */
const struct aw_ext_calls *aw_extended_engine(void);

#endif
