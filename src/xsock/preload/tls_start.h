// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The TLS handshake of a connection that is to be a record under TLS (docs/tls-records.md): it moves the handshake's bytes between
// net/tls and the TCP socket, and takes no byte of a record behind them.
//
// An accepted client's ClientHello stays in the socket until it is known that the client asks for records: another client is left to
// the proxy process as it came. From the ClientHello on the connection is this process's.
//
// Calls take the object's own lock, under a shield, and do not wait. The caller keeps fd open, and holds no lock.
#ifndef XSOCK_PRELOAD_TLS_START_H
#define XSOCK_PRELOAD_TLS_START_H

#include <stdbool.h>
#include <stddef.h>

#include "net/tls/secrets.h"

struct aw_tls_start;

enum aw_tls_started {
	AW_TLS_START_LATER, /* the next step is due when the socket is ready: struct aw_tls_start_wait */
	AW_TLS_START_DONE, /* the next byte of the peer's is that of a record under the keys */
	AW_TLS_START_FAILED, /* aw_tls_start_cause says why; the peer was told, if TCP had room */
	AW_TLS_START_OTHER, /* the client asks for no records: its bytes are in the socket, and nothing was sent */
};

struct aw_tls_start_wait {
	short events; /* POLLIN, or POLLOUT where TCP has no room for this end's bytes */
	size_t bytes; /* how many must be there for the next step to have a use, 1 at least */
};

/* accepts: the peer has connected. NULL: memory is out. */
struct aw_tls_start *aw_tls_start_create(bool accepts);
/* Forgets the keys. No thread uses the object. Takes NULL. */
void aw_tls_start_free(struct aw_tls_start *start);

/* Goes on as far as the socket has bytes and room. wait: written with LATER. */
enum aw_tls_started aw_tls_start_step(struct aw_tls_start *start, int fd,
				      struct aw_tls_start_wait *wait);

/* Returns whether a byte was sent or taken: nobody else can carry the connection any more. */
bool aw_tls_start_has_begun(struct aw_tls_start *start);

/* Behind FAILED: in words, with a remedy. */
const char *aw_tls_start_cause(const struct aw_tls_start *start);

/* Behind DONE: TLS_AES_128_GCM_SHA256, ... (RFC 8446 B.4); the secrets, which the caller wipes; the peer's name, for the log. */
unsigned aw_tls_start_cipher(const struct aw_tls_start *start);
void aw_tls_start_copy_secrets(const struct aw_tls_start *start, struct aw_tls_secrets *secrets);

#endif
