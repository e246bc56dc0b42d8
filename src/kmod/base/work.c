// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "kmod/base/work.h"

struct workqueue_struct *awk_wq;

/* Consumers may be on the way to free memory, and wait for a worker: swap over NFS or NVMe. */
int awk_work_init_module(void)
{
	awk_wq = alloc_workqueue("anywarp", WQ_MEM_RECLAIM | WQ_UNBOUND, 0);
	return awk_wq ? 0 : -ENOMEM;
}

void awk_work_exit_module(void)
{
	destroy_workqueue(awk_wq);
}
