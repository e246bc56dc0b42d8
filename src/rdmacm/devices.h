// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The device that all ids share, opened on first use and kept: programs hold on to its context.
#ifndef RDMACM_DEVICES_H
#define RDMACM_DEVICES_H

#include <rdma/rdma_cma.h>

/* Gives id the context, the default PD and the port. 0 or an errno (ENODEV, EMFILE, ENOMEM). */
int aw_cm_device_set(struct rdma_cm_id *id);

/* The XRC domain of ids whose programs name none: it has no file, and is kept as the context is. NULL, with errno. */
struct ibv_xrcd *aw_cm_device_xrcd(void);

#endif
