// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// TLS's handshake of a connection, between TCP's connection and the MPA Request. By the connection's worker, but for begin, which
// is the owner's. Until it is over the socket has none of the connection's callbacks.
#ifndef KMOD_CM_SECURE_H
#define KMOD_CM_SECURE_H

#include "kmod/cm/conn.h"

/* Enters SECURING, by the deadline that is set. The worker is to be kicked. */
void awk_secure_begin(struct awk_conn *c);
/* 0: TLS is on, and the peer has proven itself. -EINPROGRESS. Otherwise the failure, of which the log has been told. */
int awk_secure_try(struct awk_conn *c);
/* True: there is no handshake any more. False: it ends at this moment by itself, and kicks the connection. */
bool awk_secure_stop(struct awk_conn *c);

#endif
