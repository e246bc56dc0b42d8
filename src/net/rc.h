// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// RC connections of the roce persona: what ibv_modify_qp says becomes a TCP connection with MPA.
#ifndef NET_RC_H
#define NET_RC_H

#include "net/conn.h"

/* What every such connection is negotiated against. 0, or EINVAL: ANYWARP_MPA is wrong. */
int aw_rc_mpa_local(struct aw_mpa_local *local);

/* The event of a port's listener (net/qpn.h): a Request for one of its QPs. */
void aw_rc_on_request(void *arg, struct aw_conn *conn, enum aw_conn_event event);

#endif
