// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A thread that waits lets others run until what it waits for holds: nobody has to be woken.
#ifndef KSHIM_WAIT_H
#define KSHIM_WAIT_H

#include <linux/spinlock.h>

typedef struct {
	int unused;
} wait_queue_head_t;

#define DECLARE_WAIT_QUEUE_HEAD(name) wait_queue_head_t name
#define init_waitqueue_head(queue) ((void)(queue))
#define wake_up(queue) ((void)(queue))
#define wait_event(queue, condition)       \
	do {                               \
		while (!(condition))       \
			kshim_yield(true); \
	} while (0)

#endif
