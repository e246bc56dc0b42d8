// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Connection management: iw_cm's requests, MPA start-up, listeners.
#ifndef KMOD_CM_CM_H
#define KMOD_CM_CM_H

#include <rdma/ib_verbs.h>

/* iw_connect, iw_accept, iw_reject, iw_create_listen and iw_destroy_listen; module/link.c adds them. */
extern const struct ib_device_ops awk_cm_ops;

/* Called as the module ends: waits for all connections. */
void awk_cm_exit_module(void);

#endif
