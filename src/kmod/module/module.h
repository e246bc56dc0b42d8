// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The parts of the module's beginning and end (main.c).
#ifndef KMOD_MODULE_MODULE_H
#define KMOD_MODULE_MODULE_H

#include <linux/types.h>

/* link.c: the rdma_link operations, and the reactions to a netdev that comes, goes or changes. */
int awk_link_init(void);
void awk_link_exit(void);

/* siw.c: two drivers of one driver_id cannot be loaded together. */
int awk_siw_refuse(void);
void awk_siw_refuse_end(void);
bool awk_siw_is_loaded(void);

#endif
