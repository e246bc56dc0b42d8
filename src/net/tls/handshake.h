// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A TLS 1.3 handshake without a socket: the owner passes in the peer's bytes, sends what comes out, and has in the end the keys
// for the records, which it makes and opens itself (docs/tls-records.md). It takes no byte behind the handshake's last one, and no
// message follows the handshake: there are no tickets.
//
// One thread at a time uses a handshake. No call waits.
#ifndef NET_TLS_HANDSHAKE_H
#define NET_TLS_HANDSHAKE_H

#include "net/tls/identity.h"
#include "net/tls/secrets.h"
#include "net/tls/want.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define AW_HANDSHAKE_HEADER 5 /* bytes in front of a record (RFC 8446 5.1) */
#define AW_HANDSHAKE_RECORD_MAX (16384u + 256) /* bytes behind it (RFC 8446 5.2) */

struct aw_handshake;

enum aw_handshake_state {
	AW_HANDSHAKE_MORE, /* the peer's next bytes are missing: aw_handshake_wanted */
	AW_HANDSHAKE_DONE, /* the output may hold its last flight, without which the peer does not end */
	AW_HANDSHAKE_FAILED, /* aw_handshake_cause says why; the output may hold an alert */
	/*
	 * The client does not offer the protocol: the output holds the alert for it. Nothing has been sent before, so that an owner
	 * that has left the client's bytes in the socket may have somebody else answer them.
	 */
	AW_HANDSHAKE_OTHER,
};

/*
 * A handshake for records with the peer at this address, which want lets in. accepts: the peer has connected, and speaks first. The
 * output of an end that connects holds its first flight, unless it has FAILED already. 0, ENOMEM, or EINVAL: the settings are wrong (aw_tls_check).
 */
int aw_handshake_create(const struct sockaddr *peer, bool accepts, const struct aw_tls_want *want,
			struct aw_handshake **made) __attribute__((warn_unused_result));

/* Forgets the secrets. Takes NULL. */
void aw_handshake_free(struct aw_handshake *handshake);

/*
 * How many bytes to take next: the rest of a record's header, or of the record. More may be the peer's first bytes behind the handshake.
 * 0: it is over.
 */
size_t aw_handshake_wanted(const struct aw_handshake *handshake);

/* Takes bytes from the peer, wanted at most. */
enum aw_handshake_state aw_handshake_take(struct aw_handshake *handshake, const void *octets,
					  size_t len);

/* The peer's stream ends here, or, with an errno, is broken. FAILED, unless it is over already. */
enum aw_handshake_state aw_handshake_cut(struct aw_handshake *handshake, int io_errno);

/* Reads up to len bytes that are to be sent to the peer. Returns their number; 0: there is nothing. */
size_t aw_handshake_output(struct aw_handshake *handshake, void *to, size_t len);

/* In words, with a remedy. Valid for the handshake's life. */
const char *aw_handshake_cause(const struct aw_handshake *handshake);

/* Once DONE: */

/* TLS_AES_128_GCM_SHA256, ... (RFC 8446 B.4). */
uint16_t aw_handshake_cipher(const struct aw_handshake *handshake);
const struct aw_tls_secrets *aw_handshake_secrets(const struct aw_handshake *handshake);
/* The peer, with a reference for the caller. NULL: memory is out. */
struct aw_tls_identity *aw_handshake_identify(const struct aw_handshake *handshake);

#endif
