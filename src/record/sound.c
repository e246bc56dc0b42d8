// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A record that another process has written: its numbers are judged before they are used.
#include "record/record.h"

#include "record/startup.h"
#include "record/urgent.h"

#include <errno.h>
#include <string.h>

#define ERRNO_MAX 4095

/* A bool of another process may be neither true nor false: each is made one of them. */
static void settle_flags(struct aw_record *record)
{
	struct aw_record_rx *rx = &record->rx;
	struct aw_record_tx *tx = &record->tx;
	bool *flags[] = { &rx->reply_due,   &rx->held,	       &rx->counted,  &rx->count.known,
			  &rx->in_line,	    &rx->ended,	       &rx->shut,     &tx->reply,
			  &tx->rest_urgent, &tx->ended,	       &tx->active,   &tx->fin_due,
			  &tx->intent.open, &tx->intent.seals, &rx->notified, &tx->notifies };

	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		uint8_t byte;

		memcpy(&byte, flags[i], sizeof(byte));
		*flags[i] = byte != 0;
	}
}

static bool is_rest_sound(uint32_t at, uint32_t len)
{
	const uint32_t room = AW_RECORD_SEALED * AW_FPDU_MAX;

	return len <= room && at <= room - len;
}

static bool is_key_sound(const struct aw_record_key *key)
{
	return !aw_key_is_on(key) || (aw_record_calls.cipher && aw_suite_is_known(key->suite));
}

bool aw_record_is_sound(struct aw_record *record)
{
	const struct aw_record_rx *rx = &record->rx;
	const struct aw_record_tx *tx = &record->tx;
	const struct aw_record_intent *intent = &tx->intent;
	int mark = (int)rx->mark;
	struct aw_frame frame;

	settle_flags(record);
	record->rx.fault = AW_OK;
	record->rx.count.known = false;

	if (!is_key_sound(&rx->key) || !is_key_sound(&tx->key))
		return false;
	if (rx->have > sizeof(rx->bytes) || (rx->reply_due && rx->have > AW_STARTUP_SEALED_MAX))
		return false;
	if (rx->error < 0 || rx->error > ERRNO_MAX || rx->wanted == 0)
		return false;
	/* The FPDU that is held has its last byte in the socket or in the record. */
	if (rx->held && (rx->have < AW_FPDU_HEAD || !aw_frame_read(&rx->key, rx->bytes, &frame) ||
			 rx->have + 1 < frame.len || rx->given > frame.payload))
		return false;
	if (mark != AW_MARK_NONE && mark != AW_MARK_BEHIND &&
	    (mark != AW_MARK_FRONT || !aw_urgent_is_front(rx)))
		return false;

	if (tx->error < 0 || tx->error > ERRNO_MAX)
		return false;
	return is_rest_sound(tx->rest_at, tx->rest) && (!tx->rest_urgent || tx->rest > 0) &&
	       is_rest_sound(intent->rest_at, intent->rest) && intent->count <= AW_RECORD_FPDUS;
}
