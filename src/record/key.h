// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The keys of a record under TLS, one for each half. The ciphers are the caller's, because each process has contexts of its own for keys
// that processes share.
#ifndef RECORD_KEY_H
#define RECORD_KEY_H

#include "crypto/key.h"

#include <sys/uio.h>

/*
 * TLS records under one key. RFC 8446 5.5 allows AES-GCM 2^24.5 full ones; the keys change before that.
 */
#define AW_KEY_RECORDS_MAX (UINT64_C(1) << 24)
/* KeyUpdates that a peer may send without a byte for the program in between: each costs this end a key. */
#define AW_KEY_UPDATES_MAX 32u

/* The result of a handshake. */
struct aw_record_secrets {
	uint16_t suite;
	bool is_client; /* this end has sent the ClientHello */
	/* client_ and server_application_traffic_secret_0 */
	uint8_t client[AW_TLS_SECRET_MAX], server[AW_TLS_SECRET_MAX];
};

/* A process calls a record under TLS only when libcrypto is loaded. False: there is no memory. */
struct aw_record_cipher {
	/*
	 * Encrypts the pieces to text, one behind the other, and writes the tag behind them; head is authenticated. A piece may
	 * be where its ciphertext goes.
	 */
	bool (*seal)(const struct aw_record_key *key, const uint8_t head[AW_AEAD_HEAD],
		     const struct iovec *pieces, int count, uint8_t *text);
	/* Decrypts len bytes where they are. False also where the tag behind them is wrong. */
	bool (*open)(const struct aw_record_key *key, const uint8_t head[AW_AEAD_HEAD],
		     uint8_t *text, size_t len);
	/* Wipes what this process has of the key with that id, beside the key itself. */
	void (*forget)(uint64_t id);
};

static inline bool aw_key_is_on(const struct aw_record_key *key)
{
	return __builtin_expect(key->suite != AW_SUITE_NONE, 0);
}

#endif
