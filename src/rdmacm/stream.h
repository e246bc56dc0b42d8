// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The QP under an id's connection: claimed for start-up, listened to while it lives, closed.
#ifndef RDMACM_STREAM_H
#define RDMACM_STREAM_H

#include "rdmacm/id.h"

/* Checks conn_param; reads its depths, or their defaults. */
bool aw_cm_param_valid(struct aw_cm_id *cm, const struct rdma_conn_param *param);
uint8_t aw_cm_param_ird(const struct rdma_conn_param *param);
uint8_t aw_cm_param_ord(const struct rdma_conn_param *param);

/* The length of private data: 0 where there is no pointer or no param, as rdma-core has it. */
static inline uint8_t aw_cm_pd_len(const void *pd, uint8_t len)
{
	return pd ? len : 0;
}

static inline uint8_t aw_cm_param_pd_len(const struct rdma_conn_param *param)
{
	return param ? aw_cm_pd_len(param->private_data, param->private_data_len) : 0;
}

/* Writes what rdma_connect sends, at most 2 * AW_CM_PD_MAX bytes, and returns how many they are. */
size_t aw_cm_connect_data(const struct aw_cm_id *cm, const struct rdma_conn_param *param,
			  uint8_t *octets);

/*
 * Takes the id's QP, or the one with param's number, for this id's connection. 0, or EINVAL: no
 * such QP, or it is connected already.
 */
int aw_cm_stream_claim(struct aw_cm_id *cm, const struct rdma_conn_param *param);

/*
 * Moves the id's QP, if it has one, to the error state after the connection was refused: what is posted there is flushed. Called
 * by the program's threads.
 */
void aw_cm_qp_flush(struct aw_cm_id *cm) AW_EXCLUDES(cm->lock);

/* The claimed QP, held until aw_uqp_put; NULL when it was destroyed. */
struct aw_uqp *aw_cm_stream_hold(struct aw_cm_id *cm) AW_EXCLUDES(cm->lock);

/* Stops listening to the QP, if it is still this id's. Not called from a callback. */
void aw_cm_stream_release(struct aw_cm_id *cm) AW_EXCLUDES(cm->lock);

/* True when nothing of the stream is left: the QP can be reset and connected again. */
bool aw_cm_stream_is_over(struct aw_cm_id *cm) AW_EXCLUDES(cm->lock);

/* Closes the stream if it was this id's and is not over. */
void aw_cm_stream_close(struct aw_cm_id *cm) AW_EXCLUDES(cm->lock);

/* Turns the QP's events into states and events of the id. */
void aw_cm_stream_settle(struct aw_cm_id *cm) AW_REQUIRES(cm->lock);

/* Updates the state that the id's verbs QP shows. */
void aw_cm_stream_sync(struct aw_cm_id *cm) AW_REQUIRES(cm->lock);

#endif
