// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The module's workqueue, on which QPs, connections, listeners and sockets that linger have their workers.
#ifndef KMOD_BASE_WORK_H
#define KMOD_BASE_WORK_H

#include <linux/workqueue.h>

extern struct workqueue_struct *awk_wq;

/* Called as the module begins and ends. 0 or -ENOMEM. */
int awk_work_init_module(void);
void awk_work_exit_module(void);

#endif
