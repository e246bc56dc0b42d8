// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "kmod/cm/half_open.h"

#include <linux/slab.h>

struct awk_listener *awk_listener_create(struct iw_cm_id *cm_id, work_func_t work)
{
	struct awk_listener *l = kzalloc(sizeof(*l), GFP_KERNEL);

	if (!l)
		return NULL;
	kref_init(&l->refs);
	l->cm_id = cm_id;
	INIT_DELAYED_WORK(&l->work, work);
	spin_lock_init(&l->lock);
	init_waitqueue_head(&l->idle);
	INIT_LIST_HEAD(&l->half_open);
	return l;
}

static void listener_free(struct kref *refs)
{
	kfree(container_of(refs, struct awk_listener, refs));
}

void awk_listener_put(struct awk_listener *l)
{
	kref_put(&l->refs, listener_free);
}

static void half_open_remove(struct awk_listener *l, struct awk_conn *c)
{
	lockdep_assert_held(&l->lock);
	if (list_empty(&c->half_open))
		return;
	list_del_init(&c->half_open);
	l->half_open_count--;
}

bool awk_half_open_make_room(struct awk_listener *l)
{
	struct awk_conn *oldest = NULL;
	bool room;

	spin_lock(&l->lock);
	room = l->half_open_count < AWK_HALF_OPEN_MAX;
	if (!room)
		oldest = list_first_entry(&l->half_open, struct awk_conn, half_open);
	if (oldest &&
	    time_before(jiffies, oldest->since + msecs_to_jiffies(AWK_HALF_OPEN_YOUNG_MS)))
		oldest = NULL;
	if (oldest) {
		half_open_remove(l, oldest);
		awk_conn_abandon(oldest);
		room = true;
	}
	spin_unlock(&l->lock);
	return room;
}

void awk_half_open_add(struct awk_listener *l, struct awk_conn *c)
{
	kref_get(&l->refs);
	c->listener = l;
	c->since = jiffies;
	spin_lock(&l->lock);
	list_add_tail(&c->half_open, &l->half_open);
	l->half_open_count++;
	spin_unlock(&l->lock);
}

int awk_half_open_deliver(struct awk_conn *c, struct iw_cm_event *event)
{
	struct awk_listener *l = c->listener;
	bool open;
	int err;

	spin_lock(&l->lock);
	open = !l->closing;
	if (open) {
		half_open_remove(l, c);
		l->delivering++;
	}
	spin_unlock(&l->lock);
	if (!open)
		return -ECONNREFUSED;
	/* The program may answer at once, and the thread that does so owns c then. */
	c->listener = NULL;
	err = l->cm_id->event_handler(l->cm_id, event);
	spin_lock(&l->lock);
	l->delivering--;
	wake_up(&l->idle);
	spin_unlock(&l->lock);
	awk_listener_put(l);
	return err;
}

void awk_half_open_forget(struct awk_conn *c)
{
	struct awk_listener *l = c->listener;

	spin_lock(&l->lock);
	half_open_remove(l, c);
	spin_unlock(&l->lock);
	c->listener = NULL;
	awk_listener_put(l);
}

static bool is_idle(struct awk_listener *l)
{
	bool idle;

	spin_lock(&l->lock);
	idle = l->delivering == 0;
	spin_unlock(&l->lock);
	return idle;
}

void awk_half_open_close(struct awk_listener *l)
{
	struct awk_conn *c;

	spin_lock(&l->lock);
	l->closing = true;
	list_for_each_entry(c, &l->half_open, half_open) awk_conn_abandon(c);
	spin_unlock(&l->lock);
	wait_event(l->idle, is_idle(l));
}
