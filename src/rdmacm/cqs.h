// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The CQs of an id: those that rdma_create_qp makes when the program gives none, or those that a program has put into
// struct rdma_cm_id before, as rdma-core's rsockets do. The id owns either.
#ifndef RDMACM_CQS_H
#define RDMACM_CQS_H

#include <rdma/rdma_cma.h>

/* Creates a CQ with its channel for each direction with a room over 0. 0, or -1 with errno. */
int aw_cm_cqs_create(struct rdma_cm_id *id, uint32_t send_room, uint32_t recv_room);

/* Destroys each CQ of the id once, then each channel. */
void aw_cm_cqs_destroy(struct rdma_cm_id *id);

#endif
