// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A listening TCP socket that turns connections into Requests. Bounds what unaccepted peers can
// hold.
#ifndef KMOD_LISTEN_H
#define KMOD_LISTEN_H

#include "kmod/cm_conn.h"

/* Connections of a listener without a whole Request. Beyond that the oldest are dropped. */
#define AWK_HALF_OPEN_MAX 256
/*
 * No connection is dropped that has been here for less: its Request may have been lost once, which
 * its TCP finds out after 200 ms (Linux's least retransmission time-out), and threads need time to
 * run.
 */
#define AWK_HALF_OPEN_YOUNG_MS 250

/* The functions of struct ib_device_ops. */
int awk_listen_create(struct iw_cm_id *cm_id, int backlog);
int awk_listen_destroy(struct iw_cm_id *cm_id);

/*
 * For the connection's worker. claim: its Request is whole, and it is not half-open any more;
 * false: the listener ends. tell: returns iw_cm's answer to the event. told, called after tell:
 * gives back what claim took.
 */
bool awk_listener_claim(struct awk_conn *c);
int awk_listener_tell(struct awk_listener *l, struct iw_cm_event *event);
void awk_listener_told(struct awk_listener *l);
/* Called when a connection that has a listener is over. */
void awk_listener_forget(struct awk_conn *c);

#endif
