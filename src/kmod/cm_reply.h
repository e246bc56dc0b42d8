// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The answers to a Request. The caller owns the connection: it has moved it to ANSWERING.
#ifndef KMOD_CM_REPLY_H
#define KMOD_CM_REPLY_H

#include "kmod/cm_conn.h"

/*
 * Sends the accepting Reply, and begins the stream on qp, whose reference the connection owns from
 * here on. 0, or an error: the connection is over, and iw_cm gets no event.
 */
int awk_conn_accept(struct awk_conn *c, struct iw_cm_id *cm_id, struct awk_qp *qp,
		    const struct iw_cm_conn_param *param);
/*
 * Sends the rejecting Reply, and ends the connection. 0, or -EINVAL: too much private data, and
 * none was sent.
 */
int awk_conn_reject(struct awk_conn *c, const void *pd, size_t pd_len);

#endif
