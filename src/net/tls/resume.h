// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A process that connects to a peer again resumes its session by a ticket (RFC 8446 2.2), with a Diffie-Hellman exchange of its own and
// without 0-RTT: neither end signs or verifies anything. A ticket holds while the files that its context was made from do, an hour
// at most; the certificate that it stands for is looked at again, at either end. A ticket that does not hold costs a full handshake.
#ifndef NET_TLS_RESUME_H
#define NET_TLS_RESUME_H

#include "net/tls/expect.h"
#include "net/tls/openssl.h"

#include <stdbool.h>

#define AW_TLS_TICKETS_MAX 64 /* of peers; beyond that the oldest is forgotten */
#define AW_TLS_TICKET_SECONDS 3600

/* Sessions of this context give and take tickets. False: memory is out. */
bool aw_tls_resume_prepare(SSL_CTX *ctx) __attribute__((warn_unused_result));

/*
 * The session resumes an earlier one only with the certificate of a peer that it would let in now (aw_tls_expect_set was called). That of
 * an initiator resumes the last one with its peer's address, if there is a ticket, and keeps what the peer gives it.
 */
void aw_tls_resume_begin(SSL *ssl, bool accepts);

/* The tickets that the process has. */
unsigned int aw_tls_resume_count(void);

#endif
