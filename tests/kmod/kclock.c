// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Work and timers: both wait until a test runs them.
#include "kclock.h"

#include <linux/workqueue.h>

#define RUNNING_MAX 64

unsigned long jiffies = 1000;

static LIST_HEAD(works);
static LIST_HEAD(timers);
static unsigned int work_count;
/* What runs now: an item may free itself, so that it is known by its address alone. */
static const void *running[RUNNING_MAX];

static int running_at(const void *item)
{
	for (int i = 0; i < RUNNING_MAX; i++)
		if (running[i] == item)
			return i;
	return -1;
}

static void running_add(const void *item)
{
	int at = running_at(NULL);

	KSHIM_CHECK(at >= 0);
	running[at] = item;
}

static void running_remove(const void *item)
{
	running[running_at(item)] = NULL;
}

void kshim_work_init(struct work_struct *work, void (*function)(struct work_struct *work))
{
	*work = (struct work_struct){ .function = function };
}

bool queue_work(struct workqueue_struct *wq, struct work_struct *work)
{
	(void)wq;
	kshim_yield(false);
	KSHIM_CHECK(work->function);
	if (work->pending)
		return false;
	work->pending = true;
	list_add_tail(&work->entry, &works);
	work_count++;
	return true;
}

static void work_dequeue(struct work_struct *work)
{
	if (!work->pending)
		return;
	work->pending = false;
	list_del(&work->entry);
	work_count--;
}

void cancel_work_sync(struct work_struct *work)
{
	work_dequeue(work);
	while (running_at(work) >= 0)
		kshim_yield(true);
	work_dequeue(work); /* it may queue itself */
}

bool kshim_work_is_none(void)
{
	for (int i = 0; i < RUNNING_MAX; i++)
		if (running[i])
			return false;
	return list_empty(&works) && list_empty(&timers);
}

unsigned int kshim_work_count(void)
{
	return work_count;
}

bool kshim_work_run(unsigned int nth)
{
	struct work_struct *work;

	list_for_each_entry(work, &works, entry)
	{
		void (*function)(struct work_struct *) = work->function;

		if (nth-- > 0 || running_at(work) >= 0)
			continue;
		work_dequeue(work);
		running_add(work);
		function(work);
		running_remove(work);
		return true;
	}
	return false;
}

void timer_setup(struct timer_list *timer, void (*function)(struct timer_list *timer),
		 unsigned int flags)
{
	(void)flags;
	*timer = (struct timer_list){ .function = function };
}

void mod_timer(struct timer_list *timer, unsigned long expires)
{
	kshim_yield(false);
	KSHIM_CHECK(timer->function);
	timer->expires = expires;
	if (!timer->pending)
		list_add_tail(&timer->entry, &timers);
	timer->pending = true;
}

void timer_reduce(struct timer_list *timer, unsigned long expires)
{
	if (!timer->pending || time_before(expires, timer->expires))
		mod_timer(timer, expires);
}

void del_timer(struct timer_list *timer)
{
	kshim_yield(false);
	if (timer->pending)
		list_del(&timer->entry);
	timer->pending = false;
}

void del_timer_sync(struct timer_list *timer)
{
	del_timer(timer);
	while (running_at(timer) >= 0)
		kshim_yield(true);
	del_timer(timer);
}

bool kshim_timer_next(unsigned long *expires)
{
	struct timer_list *timer;
	bool found = false;

	list_for_each_entry(timer, &timers, entry)
	{
		if (!found || time_before(timer->expires, *expires))
			*expires = timer->expires;
		found = true;
	}
	return found;
}

bool kshim_timer_run(void)
{
	struct timer_list *timer;

	list_for_each_entry(timer, &timers, entry)
	{
		if (time_before(jiffies, timer->expires) || running_at(timer) >= 0)
			continue;
		timer->pending = false;
		list_del(&timer->entry);
		running_add(timer);
		timer->function(timer);
		running_remove(timer);
		return true;
	}
	return false;
}

static void delayed_due(struct timer_list *timer)
{
	queue_work(NULL, &container_of(timer, struct delayed_work, timer)->work);
}

void kshim_delayed_work_init(struct delayed_work *work, void (*function)(struct work_struct *work))
{
	kshim_work_init(&work->work, function);
	timer_setup(&work->timer, delayed_due, 0);
}

bool queue_delayed_work(struct workqueue_struct *wq, struct delayed_work *work, unsigned long delay)
{
	if (work->work.pending || work->timer.pending)
		return false;
	if (delay == 0)
		return queue_work(wq, &work->work);
	mod_timer(&work->timer, jiffies + delay);
	return true;
}

void mod_delayed_work(struct workqueue_struct *wq, struct delayed_work *work, unsigned long delay)
{
	del_timer(&work->timer);
	work_dequeue(&work->work);
	queue_delayed_work(wq, work, delay);
}

void cancel_delayed_work(struct delayed_work *work)
{
	del_timer(&work->timer);
	work_dequeue(&work->work);
}

void cancel_delayed_work_sync(struct delayed_work *work)
{
	del_timer_sync(&work->timer);
	cancel_work_sync(&work->work);
	del_timer_sync(&work->timer);
}
