// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Work that a thread of its own does, no item twice at a time. One queue stands for all.
#ifndef KSHIM_WORKQUEUE_H
#define KSHIM_WORKQUEUE_H

#include <linux/timer.h>

struct workqueue_struct;

struct work_struct {
	void (*function)(struct work_struct *work);
	bool pending;
	bool running;
	struct list_head entry; /* pending: of all */
};

typedef void (*work_func_t)(struct work_struct *work);

struct delayed_work {
	struct work_struct work;
	struct timer_list timer;
};

#define WQ_MEM_RECLAIM 1
#define WQ_UNBOUND 2
#define alloc_workqueue(name, flags, active) ((struct workqueue_struct *)(uintptr_t)1)
#define destroy_workqueue(wq) KSHIM_CHECK(kshim_work_is_none())
#define to_delayed_work(item) container_of(item, struct delayed_work, work)

void kshim_work_init(struct work_struct *work, void (*function)(struct work_struct *work));
void kshim_delayed_work_init(struct delayed_work *work, void (*function)(struct work_struct *work));
bool kshim_work_is_none(void);
#define INIT_WORK(work, function) kshim_work_init(work, function)
#define INIT_DELAYED_WORK(work, function) kshim_delayed_work_init(work, function)

/* False: it is queued already. */
bool queue_work(struct workqueue_struct *wq, struct work_struct *work);
void cancel_work_sync(struct work_struct *work);
bool queue_delayed_work(struct workqueue_struct *wq, struct delayed_work *work,
			unsigned long delay);
void mod_delayed_work(struct workqueue_struct *wq, struct delayed_work *work, unsigned long delay);
void cancel_delayed_work(struct delayed_work *work);
void cancel_delayed_work_sync(struct delayed_work *work);

#endif
