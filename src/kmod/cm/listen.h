// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A listening TCP socket that turns connections into Requests: iw_cm's calls.
#ifndef KMOD_CM_LISTEN_H
#define KMOD_CM_LISTEN_H

#include <rdma/iw_cm.h>

int awk_listen_create(struct iw_cm_id *cm_id, int backlog);
int awk_listen_destroy(struct iw_cm_id *cm_id);

#endif
