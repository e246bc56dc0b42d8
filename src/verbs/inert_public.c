// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Public verbs that this device does not have: DMA handles and device memory as a dma-buf, both newer than Debian 12's
// rdma-core (44); and the layer 2 address of a peer, since IP finds its own way. docs/verbs-missing.md has each reason.
#include "verbs/inert.h"

void *ibv_alloc_dmah(void) NO_OBJECT;
int ibv_dealloc_dmah(void) UNSUPPORTED;
int ibv_dm_export_dmabuf_fd(void) NO_FD;
int ibv_resolve_eth_l2_from_gid(void) UNSUPPORTED;
