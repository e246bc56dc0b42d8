// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A listener, and its connections whose Request is not whole yet: bounds what unaccepted peers can hold.
#ifndef KMOD_CM_HALF_OPEN_H
#define KMOD_CM_HALF_OPEN_H

#include "kmod/cm/conn.h"

/* Connections of a listener without a whole Request. Beyond that the oldest are dropped. */
#define AWK_HALF_OPEN_MAX 256
/*
 * No connection is dropped that has been here for less: its Request may have been lost once, which
 * its TCP finds out after 200 ms (Linux's least retransmission time-out), and threads need time to
 * run.
 */
#define AWK_HALF_OPEN_YOUNG_MS 250

struct awk_listener {
	/* fixed after create */
	struct kref refs;
	struct iw_cm_id *cm_id; /* a reference, until destroy */
	struct socket *sock; /* or NULL: no connection can come */
	struct awk_sock_saved saved;
	struct delayed_work work;

	spinlock_t lock; /* process context, innermost; guards what follows */
	bool closing;
	unsigned int delivering; /* connections whose Request is being delivered to iw_cm */
	wait_queue_head_t idle; /* delivering came to 0 */
	struct list_head half_open; /* the oldest first */
	unsigned int half_open_count;
};

/* One reference. NULL: memory is out. */
struct awk_listener *awk_listener_create(struct iw_cm_id *cm_id, work_func_t work);
void awk_listener_put(struct awk_listener *l);

/*
 * A client that behaves sends its Request at once, so the connection that has been silent longest
 * is dropped, and silent peers cannot keep others out. False: all are too young for that.
 */
bool awk_half_open_make_room(struct awk_listener *l);
/* Adds a connection that was just accepted. */
void awk_half_open_add(struct awk_listener *l, struct awk_conn *c);
/* Abandons all, and waits until none delivers its Request any more. No connection is added. */
void awk_half_open_close(struct awk_listener *l);

/*
 * For the connection's worker: delivers its Request, which is whole, to iw_cm, and returns iw_cm's answer; the connection
 * is not half-open any more. -ECONNREFUSED: the listener ends.
 */
int awk_half_open_deliver(struct awk_conn *c, struct iw_cm_event *event);
/* Called when a connection that has a listener is over. */
void awk_half_open_forget(struct awk_conn *c);

#endif
