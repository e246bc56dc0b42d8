// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// TLS records of FPDUs, start-up, KeyUpdates and alerts.
#include "record/sealed.h"

#include "record/record.h"
#include "record/startup.h"

#include "core/setup_term.h"
#include "crypto/message.h"
#include "wire/octets.h"
#include "wire/rdmap.h"

#define COPIED_MAX \
	1024u /* a payload up to that is copied: one call of the cipher is cheaper than three */
#define PIECES_MAX 34

static const struct aw_record_cipher *cipher(void)
{
	return aw_record_calls.cipher;
}

/* Seals inner bytes: type and padding are among them. */
static size_t seal_pieces(struct aw_record_key *key, uint8_t *to, const struct iovec *pieces,
			  int count, size_t inner)
{
	aw_tls_put_head(to, inner);
	if (!cipher()->seal(key, to, pieces, count, to + AW_AEAD_HEAD))
		return 0;
	key->seq++;
	return AW_AEAD_HEAD + inner + AW_AEAD_TAG;
}

/* Seals len bytes of content that are in place, and their type behind them. */
static size_t seal_in_place(struct aw_record_key *key, uint8_t *to, size_t len, uint8_t type)
{
	struct iovec piece = { to + AW_AEAD_HEAD, len + 1 };

	to[AW_AEAD_HEAD + len] = type;
	return seal_pieces(key, to, &piece, 1, len + 1);
}

/* The same, with a byte of padding. */
static size_t seal_padded(struct aw_record_key *key, uint8_t *to, size_t len)
{
	struct iovec piece = { to + AW_AEAD_HEAD, len + 2 };

	to[AW_AEAD_HEAD + len] = AW_TLS_DATA;
	to[AW_AEAD_HEAD + len + 1] = 0;
	return seal_pieces(key, to, &piece, 1, len + 2);
}

size_t aw_sealed_put(struct aw_record_key *key, uint8_t *to, struct aw_cursor *from, size_t payload,
		     uint32_t msn)
{
	uint8_t end[] = { AW_TLS_DATA, 0 };
	struct iovec pieces[PIECES_MAX] = { { to + AW_AEAD_HEAD, AW_FPDU_HEAD } };
	size_t covered = 0;
	int count = 1;

	aw_fpdu_put_head(to + AW_AEAD_HEAD, payload, msn);
	if (payload > COPIED_MAX) {
		count += aw_cursor_pieces(from, payload, pieces + 1, PIECES_MAX - 2, &covered);
		pieces[count] = (struct iovec){ end, sizeof(end) };
	}
	if (covered < payload) {
		aw_cursor_get(from, to + AW_SEALED_HEAD, payload);
		return seal_padded(key, to, AW_FPDU_HEAD + payload);
	}
	aw_cursor_skip(from, payload);
	return seal_pieces(key, to, pieces, count + 1, AW_FPDU_HEAD + payload + sizeof(end));
}

size_t aw_sealed_put_urgent(struct aw_record_key *key, uint8_t *to, uint8_t byte, uint32_t msn)
{
	aw_fpdu_put_urgent_head(to + AW_AEAD_HEAD, msn);
	to[AW_SEALED_HEAD] = byte;
	return seal_in_place(key, to, AW_FPDU_HEAD + 1, AW_TLS_DATA);
}

size_t aw_sealed_put_terminate(struct aw_record_key *key, uint8_t *to, enum aw_error error)
{
	uint8_t fpdu[AW_SETUP_TERM_MAX];
	size_t len = aw_setup_term(error, false, fpdu) - FPDU_CRC_LEN;

	memcpy(to + AW_AEAD_HEAD, fpdu, len);
	return seal_padded(key, to, len);
}

size_t aw_sealed_put_alert(struct aw_record_key *key, uint8_t *to, uint8_t alert)
{
	aw_tls_put_alert(to + AW_AEAD_HEAD, alert);
	return seal_in_place(key, to, AW_TLS_ALERT_LEN, AW_TLS_ALERT);
}

size_t aw_sealed_put_update(struct aw_record_key *key, uint8_t *to)
{
	size_t len;

	aw_tls_put_update(to + AW_AEAD_HEAD);
	len = seal_in_place(key, to, AW_TLS_UPDATE_LEN, AW_TLS_HANDSHAKE);
	return len && aw_key_update(key) ? len : 0;
}

size_t aw_sealed_put_startup(struct aw_record_key *key, uint8_t *to, size_t len)
{
	return seal_in_place(key, to, len, AW_TLS_DATA);
}

bool aw_sealed_read(const uint8_t head[AW_AEAD_HEAD], struct aw_frame *frame)
{
	size_t len = aw_tls_record_len(head);

	if (!aw_tls_head_is_right(head) || len > AW_SEALED_MAX)
		return false;
	if (len == AW_SEALED_ALERT)
		*frame = (struct aw_frame){ AW_FRAME_ALERT, len, 0 };
	else if (len == AW_SEALED_UPDATE)
		*frame = (struct aw_frame){ AW_FRAME_UPDATE, len, 0 };
	else if (len == AW_SEALED_URGENT)
		*frame = (struct aw_frame){ AW_FRAME_URGENT, len, 1 };
	else if (len > AW_SEALED_URGENT)
		*frame = (struct aw_frame){ AW_FRAME_DATA, len, len - AW_SEALED_DATA(0u) };
	else
		return false;
	return true;
}

/* Opens a record of len bytes where it is. */
static bool open_record(struct aw_record_key *key, uint8_t *bytes, size_t len)
{
	if (!cipher()->open(key, bytes, bytes + AW_AEAD_HEAD, len - AW_AEAD_HEAD - AW_AEAD_TAG))
		return false;
	key->seq++;
	return true;
}

/* The FPDU's header is right, and its length field and opcode tell what the record's length has told. */
static enum aw_error judge_fpdu(const uint8_t *bytes, const struct aw_frame *frame, uint32_t msn)
{
	const uint8_t *fpdu = bytes + AW_AEAD_HEAD, *end = bytes + AW_SEALED_HEAD + frame->payload;
	bool is_urgent = frame->kind == AW_FRAME_URGENT;
	size_t payload;
	enum aw_error error;

	if (!aw_fpdu_payload(fpdu, &payload) || payload != frame->payload ||
	    end[0] != AW_TLS_DATA || (!is_urgent && end[1] != 0))
		return AW_E_MPA_FRAME;
	error = aw_fpdu_judge(fpdu, msn);
	if (!error && aw_fpdu_is_urgent(fpdu) != is_urgent)
		error = AW_E_RDMAP_OPCODE;
	return error;
}

enum aw_error aw_sealed_open(struct aw_record_key *key, uint8_t *bytes,
			     const struct aw_frame *frame, uint32_t msn,
			     struct aw_sealed_message *message)
{
	const uint8_t *content = bytes + AW_AEAD_HEAD;

	if (!open_record(key, bytes, frame->len))
		return AW_E_MPA_CRC;
	*message = (struct aw_sealed_message){ 0 };
	switch (frame->kind) {
	case AW_FRAME_DATA:
	case AW_FRAME_URGENT:
		return judge_fpdu(bytes, frame, msn);
	case AW_FRAME_UPDATE:
		if (content[AW_TLS_UPDATE_LEN] != AW_TLS_HANDSHAKE ||
		    !aw_tls_read_update(content, &message->asked))
			return AW_E_MPA_FRAME;
		return aw_key_update(key) ? AW_OK : AW_E_MPA_CRC;
	case AW_FRAME_ALERT:
		if (content[AW_TLS_ALERT_LEN] != AW_TLS_ALERT)
			return AW_E_MPA_FRAME;
		message->alert = content[1];
		return AW_OK;
	}
	return AW_E_MPA_FRAME;
}

bool aw_sealed_startup_len(const uint8_t head[AW_AEAD_HEAD], size_t *len)
{
	*len = aw_tls_record_len(head);
	return head[0] == AW_TLS_DATA && *len >= AW_SEALED_ALERT && *len <= AW_STARTUP_SEALED_MAX;
}

bool aw_sealed_open_startup(struct aw_record_key *key, uint8_t *bytes, size_t len, size_t *content)
{
	*content = len - AW_AEAD_HEAD - 1 - AW_AEAD_TAG;
	return open_record(key, bytes, len) && bytes[AW_AEAD_HEAD + *content] == AW_TLS_DATA;
}
