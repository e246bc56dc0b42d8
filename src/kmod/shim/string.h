// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// <string.h> for wire/ and core/ in the kernel.
#include <linux/string.h>
