// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The beginning and the end of a record's keys.
#include "record/record.h"

#include "record/intent.h"

#include <errno.h>
#include <string.h>

int aw_record_secure(struct aw_record *record, int fd, const struct aw_record_secrets *secrets)
{
	const uint8_t *sending = secrets->is_client ? secrets->client : secrets->server;
	const uint8_t *receiving = secrets->is_client ? secrets->server : secrets->client;
	/* Any place will do, as long as it is not the other half's. */
	uint64_t id = (uint64_t)(uintptr_t)record / sizeof(*record) * 2;

	aw_record_init(record);
	if (!aw_record_calls.cipher || !aw_suite_is_known(secrets->suite))
		return -EOPNOTSUPP;
	record->tx.key.id = id;
	record->rx.key.id = id + 1;
	if (!aw_key_begin(&record->tx.key, secrets->suite, sending) ||
	    !aw_key_begin(&record->rx.key, secrets->suite, receiving)) {
		aw_record_forget_keys(record);
		return -EOPNOTSUPP;
	}
	/* TCP has taken the handshake's bytes before the record's. */
	record->tx.active = secrets->is_client;
	aw_intent_begin(record, fd);
	return 0;
}

struct aw_record_key_ids aw_record_key_ids(const struct aw_record *record)
{
	return (struct aw_record_key_ids){ record->tx.key.id, record->rx.key.id };
}

void aw_record_leave_keys(struct aw_record_key_ids ids)
{
	if (ids.tx)
		aw_record_calls.cipher->forget(ids.tx);
	if (ids.rx)
		aw_record_calls.cipher->forget(ids.rx);
}

void aw_record_forget_keys(struct aw_record *record)
{
	aw_record_leave_keys(aw_record_key_ids(record));
	if (aw_key_is_on(&record->tx.key))
		explicit_bzero(&record->tx.key, sizeof(record->tx.key));
	if (aw_key_is_on(&record->rx.key))
		explicit_bzero(&record->rx.key, sizeof(record->rx.key));
}
