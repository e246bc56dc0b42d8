// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A conn does this for TLS: the handshake, and its beginning behind a Request in the clear (docs/extensions.md). The states
// are conn_machine.c's.
#ifndef NET_CONN_TLS_H
#define NET_CONN_TLS_H

#include "net/conn/conn_machine.h"

/*
 * Makes the session where there is none, and takes the handshake's next step. 0 with *io, or an errno; after DONE the peer's
 * identity is known, and was logged.
 */
int aw_conn_handshake(struct aw_conn *conn, bool accepts, enum aw_tls_io *io)
	AW_REQUIRES(conn->lock);

/* Has MPA do without CRCs under TLS, unless the user asks for them. Nothing was sent yet. */
void aw_conn_drop_crc(struct aw_conn *conn);

/* True where the two ends, which are of one host, may share memory. They name it within TLS, once they have proven who they are. */
bool aw_conn_tls_shares(const struct aw_conn *conn);

enum aw_conn_begun {
	AW_CONN_BEGUN_NOT,
	AW_CONN_BEGUN_TLS, /* or, where TLS is required, what OpenSSL is to refuse */
	AW_CONN_BEGUN_MPA,
};

/* Looks how the peer begins, and leaves its bytes in the socket. */
enum aw_conn_begun aw_conn_look(struct aw_conn *conn) AW_REQUIRES(conn->lock);

/*
 * Responder: takes the Request's offer; the Request counts for nothing from now on. False: the socket did not take the frame,
 * for which it has room, since it has taken nothing before.
 */
bool aw_conn_say_start_tls(struct aw_conn *conn) AW_REQUIRES(conn->lock);

/* Initiator: the peer has taken the offer. Prepares the Request anew, for within. */
void aw_conn_ask_within(struct aw_conn *conn) AW_REQUIRES(conn->lock);

#endif
