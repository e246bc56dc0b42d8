// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "net/tls/records.h"

#include <assert.h>
#include <string.h>

#define INNER_MAX (AW_TLS_RECORD_MAX + 1) /* bytes of content, type and padding */

static bool fail(struct aw_tls_records *records, uint8_t alert, const char *fault)
{
	records->alert = alert;
	records->fault = fault;
	return false;
}

bool aw_tls_records_begin(struct aw_tls_records *records, uint16_t suite,
			  const struct aw_tls_secrets *secrets, bool is_client, uint64_t sealed)
{
	const uint8_t *own = is_client ? secrets->client : secrets->server;
	const uint8_t *peers = is_client ? secrets->server : secrets->client;

	records->is_client = is_client;
	if (!aw_aead_begin(&records->seals, suite, own, true))
		return false;
	records->seals.key.seq = sealed;
	if (aw_aead_begin(&records->opens, suite, peers, false))
		return true;
	aw_tls_records_end(records);
	return false;
}

void aw_tls_records_end(struct aw_tls_records *records)
{
	aw_aead_end(&records->seals);
	aw_aead_end(&records->opens);
}

static bool cipher_failed(struct aw_tls_records *records)
{
	return fail(records, AW_TLS_INTERNAL_ERROR, "OpenSSL cannot encrypt: is memory out?");
}

bool aw_tls_records_start(struct aw_tls_records *records, uint8_t *to, size_t len)
{
	assert(len <= AW_TLS_RECORD_MAX);
	aw_tls_put_head(to, len + 1);
	records->at = to + AW_AEAD_HEAD;
	records->left = len;
	return aw_aead_start(&records->seals, to) || cipher_failed(records);
}

bool aw_tls_records_add(struct aw_tls_records *records, const uint8_t *from, size_t len)
{
	uint8_t *at = records->at;

	assert(len <= records->left);
	records->at += len;
	records->left -= len;
	return aw_aead_pass(&records->seals, at, from, len) || cipher_failed(records);
}

bool aw_tls_records_finish(struct aw_tls_records *records, enum aw_tls_content type)
{
	const uint8_t end = (uint8_t)type;

	assert(records->left == 0);
	return (aw_aead_pass(&records->seals, records->at, &end, 1) &&
		aw_aead_seal(&records->seals, records->at + 1)) ||
	       cipher_failed(records);
}

static size_t put(struct aw_tls_records *records, uint8_t *to, enum aw_tls_content type,
		  const uint8_t *content, size_t len)
{
	return aw_tls_records_start(records, to, len) &&
			       aw_tls_records_add(records, content, len) &&
			       aw_tls_records_finish(records, type)
		       ? len + AW_TLS_SEALED_EXTRA
		       : 0;
}

size_t aw_tls_records_put_update(struct aw_tls_records *records, uint8_t *to)
{
	uint8_t message[AW_TLS_UPDATE_LEN];
	size_t len;

	aw_tls_put_update(message);
	len = put(records, to, AW_TLS_HANDSHAKE, message, sizeof(message));
	if (len == 0)
		return 0;
	records->owes_update = false;
	return aw_aead_renew(&records->seals) || cipher_failed(records) ? len : 0;
}

size_t aw_tls_records_put_alert(struct aw_tls_records *records, uint8_t *to, uint8_t alert)
{
	uint8_t content[AW_TLS_ALERT_LEN];

	aw_tls_put_alert(content, alert);
	return put(records, to, AW_TLS_ALERT, content, sizeof(content));
}

bool aw_tls_records_size(struct aw_tls_records *records, const uint8_t head[AW_AEAD_HEAD],
			 size_t *size)
{
	size_t len = aw_tls_record_len(head);

	if (!aw_tls_head_is_right(head))
		return fail(records, AW_TLS_UNEXPECTED_MESSAGE, "unexpected record in the clear");
	if (len > AW_TLS_SEALED_MAX)
		return fail(records, AW_TLS_RECORD_OVERFLOW, "record too long");
	if (len <= AW_AEAD_HEAD + AW_AEAD_TAG)
		return fail(records, AW_TLS_BAD_RECORD_MAC, "record too short");
	*size = len;
	return true;
}

/* RFC 8446 4.6.1. */
static bool is_ticket(const uint8_t *body, size_t len)
{
	size_t at = 8, part;

	if (len < at + 1)
		return false;
	at += 1u + body[at];
	if (len < at + 2)
		return false;
	part = (size_t)body[at] << 8 | body[at + 1];
	at += 2 + part;
	if (part == 0 || len < at + 2)
		return false;
	part = (size_t)body[at] << 8 | body[at + 1];
	return len == at + 2 + part;
}

/* A message is whole, of which its first bytes are kept. body: all of it behind its head, or NULL: it came in several records. */
static bool take_message(struct aw_tls_records *records, const uint8_t *body, size_t len,
			 bool is_last)
{
	bool asked;

	if (records->message[0] == AW_TLS_NEW_SESSION_TICKET) {
		if (body && !is_ticket(body, len))
			return fail(records, AW_TLS_DECODE_ERROR, "a ticket that is none");
		return true;
	}
	/* A KeyUpdate: whatever is behind it is under other keys. */
	if (!is_last)
		return fail(records, AW_TLS_UNEXPECTED_MESSAGE, "bytes behind a key update");
	if (!aw_tls_read_update(records->message, &asked))
		return fail(records, AW_TLS_ILLEGAL_PARAMETER, "bad key update");
	records->owes_update |= asked;
	records->opens_anew = true;
	if (!records->opens.ctx)
		return fail(
			records, AW_TLS_INTERNAL_ERROR,
			"the peer has changed its keys, which this kernel's tls cannot follow: set "
			"ANYWARP_TLS_RECORDS=user here, or run Linux 6.14");
	return aw_aead_renew(&records->opens) || cipher_failed(records);
}

/* A message begins: a peer that sends others wants what was not agreed on. */
static bool judge_message(struct aw_tls_records *records)
{
	bool is_known = records->message[0] == AW_TLS_KEY_UPDATE ||
			(records->message[0] == AW_TLS_NEW_SESSION_TICKET && records->is_client);

	return is_known ||
	       fail(records, AW_TLS_UNEXPECTED_MESSAGE, "unexpected message of the handshake");
}

/* Keeps the next bytes of the message's head, and the first of its body. Returns how many those were. */
static size_t keep_message(struct aw_tls_records *records, const uint8_t *from, size_t len)
{
	size_t kept = 0;

	while (kept < len && records->message_len < AW_TLS_MESSAGE_HEAD)
		records->message[records->message_len++] = from[kept++];
	return kept;
}

/* Messages, or parts of them, which fill the record. */
static enum aw_tls_opened take_messages(struct aw_tls_records *records, const uint8_t *from,
					size_t len)
{
	bool has_update = records->message_len > 0 && records->message[0] == AW_TLS_KEY_UPDATE;

	while (len > 0) {
		size_t kept, part;

		if (records->message_len < AW_TLS_MESSAGE_HEAD) {
			kept = keep_message(records, from, len);
			from += kept;
			len -= kept;
			has_update |= records->message[0] == AW_TLS_KEY_UPDATE;
			if (!judge_message(records))
				return AW_TLS_OPENED_FAULT;
			if (records->message_len < AW_TLS_MESSAGE_HEAD)
				break;
			records->message_left = (uint32_t)aw_tls_message_len(records->message);
		}
		part = len < records->message_left ? len : records->message_left;
		if (records->message_left == aw_tls_message_len(records->message) && part > 0)
			records->message[AW_TLS_MESSAGE_HEAD] = *from;
		records->was_cut |= part < aw_tls_message_len(records->message);
		records->message_left -= (uint32_t)part;
		if (records->message_left > 0)
			break;
		if (!take_message(records, records->was_cut ? NULL : from,
				  aw_tls_message_len(records->message), part == len))
			return AW_TLS_OPENED_FAULT;
		from += part;
		len -= part;
		records->message_len = 0;
		records->was_cut = false;
	}
	return has_update ? AW_TLS_OPENED_OTHER : AW_TLS_OPENED_TICKET;
}

static enum aw_tls_opened refuse(struct aw_tls_records *records, uint8_t alert, const char *fault)
{
	(void)fail(records, alert, fault);
	return AW_TLS_OPENED_FAULT;
}

static enum aw_tls_opened take_alert(struct aw_tls_records *records, const uint8_t *content,
				     size_t len)
{
	if (len != 2)
		return refuse(records, AW_TLS_UNEXPECTED_MESSAGE, "an alert of another length");
	if (content[1] == AW_TLS_CLOSE_NOTIFY)
		return AW_TLS_OPENED_CLOSE;
	/* RFC 8446 6: all others are fatal, whatever their level says. */
	if (content[1] != AW_TLS_USER_CANCELED) {
		records->ended_by_peer = true;
		return refuse(records, content[1], "alert");
	}
	if (records->warnings++ == AW_TLS_WARNINGS_MAX)
		return refuse(records, AW_TLS_UNEXPECTED_MESSAGE, "too many warn alerts");
	return AW_TLS_OPENED_OTHER;
}

static enum aw_tls_opened take_data(struct aw_tls_records *records, size_t len)
{
	if (len > 0) {
		records->empty = 0;
		return AW_TLS_OPENED_DATA;
	}
	if (records->empty++ == AW_TLS_EMPTY_MAX)
		return refuse(records, AW_TLS_UNEXPECTED_MESSAGE, "record too small");
	return AW_TLS_OPENED_OTHER;
}

enum aw_tls_opened aw_tls_records_take(struct aw_tls_records *records, uint8_t type,
				       const uint8_t *content, size_t len)
{
	bool in_message = records->message_len > 0;

	if (type != AW_TLS_ALERT && len > 0)
		records->warnings = 0;
	if (in_message && type != AW_TLS_HANDSHAKE)
		return refuse(records, AW_TLS_UNEXPECTED_MESSAGE,
			      "other bytes within a message of the handshake");
	switch (type) {
	case AW_TLS_DATA:
		return take_data(records, len);
	case AW_TLS_ALERT:
		return take_alert(records, content, len);
	case AW_TLS_HANDSHAKE:
		if (len > 0)
			return take_messages(records, content, len);
		return refuse(records, AW_TLS_UNEXPECTED_MESSAGE, "a message of no bytes");
	default:
		return refuse(records, AW_TLS_UNEXPECTED_MESSAGE, "unexpected record");
	}
}

enum aw_tls_opened aw_tls_records_open(struct aw_tls_records *records, const uint8_t *record,
				       size_t size, uint8_t *to, size_t *len)
{
	size_t inner = size - AW_AEAD_HEAD - AW_AEAD_TAG;
	const uint8_t *text = record + AW_AEAD_HEAD;

	if (!aw_aead_start(&records->opens, record) ||
	    !aw_aead_pass(&records->opens, to, text, inner) ||
	    !aw_aead_open(&records->opens, text + inner))
		return refuse(records, AW_TLS_BAD_RECORD_MAC,
			      "decryption failed or bad record mac");
	if (inner > INNER_MAX)
		return refuse(records, AW_TLS_RECORD_OVERFLOW, "record too long");
	while (inner > 0 && to[inner - 1] == 0)
		inner--;
	if (inner == 0)
		return refuse(records, AW_TLS_UNEXPECTED_MESSAGE, "a record of padding alone");
	*len = inner - 1;
	return aw_tls_records_take(records, to[inner - 1], to, inner - 1);
}
