// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#ifndef KSHIM_TIMER_H
#define KSHIM_TIMER_H

#include <linux/jiffies.h>
#include <linux/list.h>

struct timer_list {
	void (*function)(struct timer_list *timer);
	unsigned long expires;
	bool pending;
	bool running;
	struct list_head entry; /* pending: of all */
};

#define from_timer(var, timer, field) container_of(timer, __typeof__(*(var)), field)

void timer_setup(struct timer_list *timer, void (*function)(struct timer_list *timer),
		 unsigned int flags);
void mod_timer(struct timer_list *timer, unsigned long expires);
/* Never later than it is. */
void timer_reduce(struct timer_list *timer, unsigned long expires);
void del_timer(struct timer_list *timer);
void del_timer_sync(struct timer_list *timer);

#endif
