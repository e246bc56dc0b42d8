// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The CQs that rdma_create_qp makes when the program gives none.
#ifndef RDMACM_CQS_H
#define RDMACM_CQS_H

#include <rdma/rdma_cma.h>

/* Creates a CQ with its channel for each direction with a room over 0. 0, or -1 with errno. */
int aw_cm_cqs_create(struct rdma_cm_id *id, uint32_t send_room, uint32_t recv_room);

void aw_cm_cqs_destroy(struct rdma_cm_id *id);

#endif
