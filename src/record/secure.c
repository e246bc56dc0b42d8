// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The beginning and the end of a record's keys.
#include "record/record.h"

#include "record/intent.h"

#include <errno.h>
#include <string.h>

static bool begin_key(struct aw_record_key *key, uint16_t suite, const uint8_t *secret, uint64_t id)
{
	key->suite = suite;
	key->id = id;
	memcpy(key->secret, secret, aw_suite_hash_len(suite));
	return aw_record_calls.cipher->derive(key);
}

int aw_record_secure(struct aw_record *record, int fd, const struct aw_record_secrets *secrets)
{
	const uint8_t *sending = secrets->is_client ? secrets->client : secrets->server;
	const uint8_t *receiving = secrets->is_client ? secrets->server : secrets->client;
	/* Any place will do, as long as it is not the other half's. */
	uint64_t id = (uint64_t)(uintptr_t)record / sizeof(*record) * 2;

	aw_record_init(record);
	if (!aw_record_calls.cipher || !aw_suite_is_known(secrets->suite))
		return -EOPNOTSUPP;
	if (!begin_key(&record->tx.key, secrets->suite, sending, id) ||
	    !begin_key(&record->rx.key, secrets->suite, receiving, id + 1)) {
		aw_record_forget_keys(record);
		return -EOPNOTSUPP;
	}
	/* TCP has taken the handshake's bytes before the record's. */
	record->tx.active = secrets->is_client;
	aw_intent_begin(record, fd);
	return 0;
}

void aw_record_forget_keys(struct aw_record *record)
{
	if (aw_key_is_on(&record->tx.key))
		explicit_bzero(&record->tx.key, sizeof(record->tx.key));
	if (aw_key_is_on(&record->rx.key))
		explicit_bzero(&record->rx.key, sizeof(record->rx.key));
}
