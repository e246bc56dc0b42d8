// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#ifndef KSHIM_RANDOM_H
#define KSHIM_RANDOM_H

#include <linux/types.h>

/* The same numbers in each run. */
u32 get_random_u32(void);

#endif
