// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The TLS handshake of a connection that is to be a record under TLS (docs/tls-records.md): it moves the handshake's bytes between
// net/tls and the TCP socket, and takes no byte of a record behind them.
//
// An accepted client's ClientHello stays in the socket until it is known that the client asks for records: another client is left to
// the proxy process as it came. From the ClientHello on the connection is this process's.
//
// Calls take the object's own lock, and do not wait. The caller keeps fd open and holds no lock; where signal handlers and cancellation
// may come, it raises a shield.
#ifndef XSOCK_FRAMED_TLS_START_H
#define XSOCK_FRAMED_TLS_START_H

#include <stdbool.h>
#include <stddef.h>

#include "record/key.h"

struct aw_tls_start;
union aw_address;

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
/* Another user, who frees it as well. Takes NULL. */
void aw_tls_start_get(struct aw_tls_start *start);
/* Forgets the keys, once the last user has called it. Takes NULL. */
void aw_tls_start_free(struct aw_tls_start *start);

/* Goes on as far as the socket has bytes and room. wait: written with LATER. */
enum aw_tls_started aw_tls_start_step(struct aw_tls_start *start, int fd,
				      struct aw_tls_start_wait *wait);

/*
 * Behind DONE, at the passive end: returns whether the client's first record has come whole, or is longer than any. *wanted: how many
 * bytes must be there.
 */
bool aw_tls_start_has_record(int fd, size_t *wanted);

/* Returns whether a byte was sent or taken: nobody else can carry the connection any more. */
bool aw_tls_start_has_begun(struct aw_tls_start *start);

/* Behind FAILED: the peer, of whose socket the kernel tells no address behind a reset; NULL: it is not known. In words, with a remedy. */
const union aw_address *aw_tls_start_peer(const struct aw_tls_start *start);
const char *aw_tls_start_cause(const struct aw_tls_start *start);
/* Behind FAILED: TCP has reported ECONNRESET, in place of one of the program's calls. */
bool aw_tls_start_was_reset(const struct aw_tls_start *start);

/* Behind DONE: the record's secrets, which the caller wipes. */
void aw_tls_start_copy_secrets(const struct aw_tls_start *start, struct aw_record_secrets *secrets);

#endif
