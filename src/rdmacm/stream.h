// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The QP under an id's connection: claimed for start-up, heard of while it lives, closed.
#ifndef RDMACM_STREAM_H
#define RDMACM_STREAM_H

#include "rdmacm/id.h"

/* The most and the default that conn_param may ask for. */
bool aw_cm_param_valid(const struct rdma_cm_id *id, const struct rdma_conn_param *param);
uint8_t aw_cm_param_ird(const struct rdma_conn_param *param);
uint8_t aw_cm_param_ord(const struct rdma_conn_param *param);

/*
 * Takes the id's QP, or the one with param's number, for this id's connection. 0, or EINVAL: no
 * such QP, or it is connected already.
 */
int aw_cm_stream_claim(struct aw_cm_id *cm, const struct rdma_conn_param *param);

/* The claimed QP, held until aw_uqp_put; NULL when it was destroyed. Without the lock. */
struct aw_uqp *aw_cm_stream_hold(struct aw_cm_id *cm);

/* Stops listening to the QP, if it is still this id's. Not from a callback, without the lock. */
void aw_cm_stream_release(struct aw_cm_id *cm);

/* Nothing of the stream is left: the QP can be reset and connected again. Without the lock. */
bool aw_cm_stream_is_over(struct aw_cm_id *cm);

/* Closes the stream if it was this id's and is not over. Without the lock. */
void aw_cm_stream_close(struct aw_cm_id *cm);

/* The stream goes on in another process: the QP gives its socket up without a word. */
void aw_cm_stream_forget(struct aw_cm_id *cm);

/* Is qp in the connection of an id that this process carries on? */
bool aw_cm_stream_is_carried(struct aw_uqp *qp);

/* What the QP was heard to do becomes state and events. The lock is held. */
void aw_cm_stream_settle(struct aw_cm_id *cm);

/* The socket is the QP's now: from, CONNECTING or REPLIED, follows. The lock is held. */
void aw_cm_stream_sync(struct aw_cm_id *cm);

#endif
