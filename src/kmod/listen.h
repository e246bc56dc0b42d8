// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A listening TCP socket that turns connections into Requests. Bounds what strangers can hold.
#ifndef KMOD_LISTEN_H
#define KMOD_LISTEN_H

#include "kmod/cm_conn.h"

/* Connections of a listener without a whole Request; then the oldest go. */
#define AWK_HALF_OPEN_MAX 256
/*
 * But none that is here for less: its Request may have been lost once, which its TCP finds out after 200 ms
 * (Linux's least retransmission time-out), and threads have to come to run.
 */
#define AWK_HALF_OPEN_YOUNG_MS 250

/* Of struct ib_device_ops. */
int awk_listen_create(struct iw_cm_id *cm_id, int backlog);
int awk_listen_destroy(struct iw_cm_id *cm_id);

/*
 * For the connection's worker. claim: its Request is whole, and it is not half-open any more. False: the listener
 * ends. tell: iw_cm's answer to the event. told, behind it: gives back what claim took.
 */
bool awk_listener_claim(struct awk_conn *c);
int awk_listener_tell(struct awk_listener *l, struct iw_cm_event *event);
void awk_listener_told(struct awk_listener *l);
/* It is over, half-open or told. */
void awk_listener_forget(struct awk_conn *c);

#endif
