// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// TLS 1.3's records behind the handshake (RFC 8446 5), and the messages and alerts that they may hold beside data (4.6, 6). The
// handshake is OpenSSL's; from there on the records are made and opened here, by libcrypto's ciphers, so that a payload is
// sealed from where it lies and opened to where it is needed. No I/O.
//
// One octet that is wrong ends the session by the alert that RFC 8446 has for it. Nothing of a record counts before its tag was
// found right.
#ifndef NET_TLS_RECORDS_H
#define NET_TLS_RECORDS_H

#include "crypto/aead.h"
#include "crypto/message.h"
#include "net/tls/secrets.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AW_TLS_RECORD_MAX 16384u /* bytes of content in a record (RFC 8446 5.1) */
#define AW_TLS_SEALED_EXTRA \
	(AW_AEAD_HEAD + 1u + AW_AEAD_TAG) /* by which a record of ours is longer */
#define AW_TLS_SEALED_MAX (AW_AEAD_HEAD + AW_TLS_RECORD_MAX + 256u) /* of a peer's (RFC 8446 5.2) */

/* How many of these a peer may send without a byte of data between (OpenSSL's bounds). */
#define AW_TLS_EMPTY_MAX 32u
#define AW_TLS_WARNINGS_MAX 4u

/* Zero where there are none. */
struct aw_tls_records {
	struct aw_aead seals, opens;
	bool is_client;
	uint8_t *at; /* where the record's next bytes go that is being sealed */
	size_t left; /* bytes of content that it still lacks */

	uint32_t empty, warnings;
	/* A message of the handshake that has come in part: its first bytes, and how many are missing. */
	uint8_t message[AW_TLS_UPDATE_LEN];
	uint32_t message_len, message_left;
	bool was_cut; /* it began in an earlier record */
	bool owes_update; /* the peer has asked for a KeyUpdate */
	bool opens_anew; /* the peer has changed its keys: the kernel, where it opens the records, does not know yet */

	/* Why the session is over: the peer's alert, or what this end found. */
	bool ended_by_peer;
	uint8_t alert;
	const char *fault;
};

/* OpenSSL's records before: it has sealed so many under the keys of these secrets, and opened none. False: memory is out. */
bool aw_tls_records_begin(struct aw_tls_records *records, uint16_t suite,
			  const struct aw_tls_secrets *secrets, bool is_client, uint64_t sealed)
	__attribute__((warn_unused_result));
void aw_tls_records_end(struct aw_tls_records *records);

static inline bool aw_tls_records_are_on(const struct aw_tls_records *records)
{
	return records->seals.ctx != NULL;
}

/*
 * A record of len bytes of content, at most AW_TLS_RECORD_MAX, goes to `to`: start, its pieces, and finish. Instead of a
 * piece, which may be gone, the same record may be started anew. False: the cipher has failed, and the session is over.
 */
bool aw_tls_records_start(struct aw_tls_records *records, uint8_t *to, size_t len)
	__attribute__((warn_unused_result));
bool aw_tls_records_add(struct aw_tls_records *records, const uint8_t *from, size_t len)
	__attribute__((warn_unused_result));
bool aw_tls_records_finish(struct aw_tls_records *records, enum aw_tls_content type)
	__attribute__((warn_unused_result));
/* These write a whole record and return its length; 0: as above. update: the next record has the next keys. */
size_t aw_tls_records_put_update(struct aw_tls_records *records, uint8_t *to);
size_t aw_tls_records_put_alert(struct aw_tls_records *records, uint8_t *to, uint8_t alert);

enum aw_tls_opened {
	AW_TLS_OPENED_DATA,
	AW_TLS_OPENED_TICKET, /* one or more, and nothing else */
	AW_TLS_OPENED_OTHER, /* nothing that the caller has to look at */
	AW_TLS_OPENED_CLOSE, /* close_notify: the peer sends no more */
	AW_TLS_OPENED_FAULT, /* alert and fault say why the session is over */
};

/* The length of the record that begins so. False: no peer may send it, which is a fault. */
bool aw_tls_records_size(struct aw_tls_records *records, const uint8_t head[AW_AEAD_HEAD],
			 size_t *size) __attribute__((warn_unused_result));

/*
 * Opens a record of that size to `to`, where there is room for it without head and tag; that may be where it lies, too, behind
 * its head. *len: of data.
 */
enum aw_tls_opened aw_tls_records_open(struct aw_tls_records *records, const uint8_t *record,
				       size_t size, uint8_t *to, size_t *len)
	__attribute__((warn_unused_result));

/*
 * Takes a record's content, or a part of a message's, that another has opened: data or not, judged as if it had been opened here. A
 * KeyUpdate is a fault where the keys were given up (aw_aead_end).
 */
enum aw_tls_opened aw_tls_records_take(struct aw_tls_records *records, uint8_t type,
				       const uint8_t *content, size_t len)
	__attribute__((warn_unused_result));

#endif
