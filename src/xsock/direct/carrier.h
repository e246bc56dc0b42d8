// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The carrier: a process, born of the program's memory, in which the program's connections go on.
#ifndef XSOCK_DIRECT_CARRIER_H
#define XSOCK_DIRECT_CARRIER_H

#include "xsock/direct/calls.h"

/* The child's part; it does not return. Answers on control with an int, an errno or 0, first. */
_Noreturn void aw_carrier_run(const struct aw_direct_load *loads, int count, int control);

#endif
