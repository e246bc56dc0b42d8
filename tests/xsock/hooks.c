// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The fd table of a test that has none of the rooms above it.
#include "xsock/process/fdtab.h"

const struct aw_fdtab_hooks aw_fdtab_hooks;
