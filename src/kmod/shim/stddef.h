// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// <stddef.h> for wire/ and core/ in the kernel.
#include <linux/stddef.h>
#include <linux/types.h>
