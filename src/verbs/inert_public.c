// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Public verbs that this device does not have: completion counters, DMA handles and dma-buf, all of
// them newer than Debian 12's rdma-core (44); and the layer 2 address of a peer, since IP finds its
// own way.
#include "verbs/inert.h"

int _ibv_query_comp_cntr_caps(void) UNSUPPORTED;
void *ibv_alloc_buf(void) NO_OBJECT;
void *ibv_alloc_dmah(void) NO_OBJECT;
void *ibv_create_comp_cntr(void) NO_OBJECT;
int ibv_dealloc_dmah(void) UNSUPPORTED;
int ibv_destroy_comp_cntr(void) UNSUPPORTED;
int ibv_dm_export_dmabuf_fd(void) NO_FD;
int ibv_export_buf_dmabuf_fd(void) NO_FD;
void ibv_free_buf(void) NOTHING;
int ibv_inc_comp_cntr(void) UNSUPPORTED;
int ibv_inc_err_comp_cntr(void) UNSUPPORTED;
int ibv_qp_attach_comp_cntr(void) UNSUPPORTED;
int ibv_read_comp_cntr(void) UNSUPPORTED;
int ibv_read_err_comp_cntr(void) UNSUPPORTED;
void *ibv_reg_buf_mr(void) NO_OBJECT;
int ibv_set_comp_cntr(void) UNSUPPORTED;
int ibv_set_err_comp_cntr(void) UNSUPPORTED;
int ibv_resolve_eth_l2_from_gid(void) UNSUPPORTED;
