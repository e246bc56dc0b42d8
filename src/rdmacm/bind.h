// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Binding an id to a local address.
#ifndef RDMACM_BIND_H
#define RDMACM_BIND_H

#include "rdmacm/id.h"

/* IDLE to BOUND. 0, or EINVAL (state), EAFNOSUPPORT, EADDRINUSE, EADDRNOTAVAIL, EACCES ... */
int aw_cm_bind(struct aw_cm_id *cm, const struct sockaddr *addr);

#endif
