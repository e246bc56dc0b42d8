// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// How a half's FPDUs stand in TCP's stream. Without TLS an FPDU stands there as it is. Under TLS each is one TLS record
// (RFC 8446 5.2) without pad and CRC, in whose place the tag is:
//
//   23, 3, 3, length | length field, DDP header | payload | 23, 0 | tag
//     5 bytes, clear            20                            2      16
//
// The 0 is a byte of TLS's padding, which an urgent FPDU's record lacks: so the length tells how much payload there is, and
// whether it is urgent, before anything is opened. A KeyUpdate and an alert have lengths of their own. These are the records
// of an anywarp end (its hello says so), and all others are a fault.
#ifndef RECORD_FRAME_H
#define RECORD_FRAME_H

#include "crypto/message.h"
#include "record/fpdu.h"
#include "record/key.h"

#define AW_SEALED_HEAD (AW_AEAD_HEAD + AW_FPDU_HEAD)
#define AW_SEALED_PAYLOAD_MAX 16360u /* a TLS record has 16384 bytes, type and padding aside */
#define AW_SEALED_DATA(payload) (AW_SEALED_HEAD + (payload) + 2u + AW_AEAD_TAG)
#define AW_SEALED_MAX AW_SEALED_DATA(AW_SEALED_PAYLOAD_MAX)
#define AW_SEALED_URGENT (AW_SEALED_DATA(1u) - 1u)
#define AW_SEALED_UPDATE (AW_AEAD_HEAD + AW_TLS_UPDATE_LEN + 1u + AW_AEAD_TAG)
#define AW_SEALED_ALERT (AW_AEAD_HEAD + AW_TLS_ALERT_LEN + 1u + AW_AEAD_TAG)

_Static_assert(AW_SEALED_MAX <= AW_FPDU_MAX, "the buffers of FPDUs have room for TLS records");

enum aw_frame_kind {
	AW_FRAME_DATA, /* without TLS, of an urgent byte, too: aw_frame_is_urgent */
	AW_FRAME_URGENT,
	AW_FRAME_UPDATE,
	AW_FRAME_ALERT,
};

struct aw_frame {
	enum aw_frame_kind kind;
	size_t len; /* in TCP's stream */
	size_t payload; /* of the program's bytes */
};

/* How many bytes tell a frame's length. */
static inline size_t aw_frame_field(const struct aw_record_key *key)
{
	return aw_key_is_on(key) ? AW_AEAD_HEAD : FPDU_LEN_FIELD;
}

/* Where the payload is in a frame that has been opened. */
static inline size_t aw_frame_head(const struct aw_record_key *key)
{
	return aw_key_is_on(key) ? AW_SEALED_HEAD : AW_FPDU_HEAD;
}

static inline size_t aw_frame_payload_max(const struct aw_record_key *key)
{
	return aw_key_is_on(key) ? AW_SEALED_PAYLOAD_MAX : AW_FPDU_PAYLOAD_MAX;
}

/* No frame has fewer bytes beside its payload. */
static inline size_t aw_frame_extra(const struct aw_record_key *key)
{
	return aw_key_is_on(key) ? AW_SEALED_URGENT - 1 : AW_FPDU_HEAD + FPDU_CRC_LEN;
}

static inline size_t aw_frame_len(const struct aw_record_key *key, size_t payload)
{
	return aw_key_is_on(key) ? AW_SEALED_DATA(payload) : aw_fpdu_len(payload);
}

static inline size_t aw_frame_urgent_len(const struct aw_record_key *key)
{
	return aw_key_is_on(key) ? AW_SEALED_URGENT : aw_fpdu_len(1);
}

bool aw_sealed_read(const uint8_t head[AW_AEAD_HEAD], struct aw_frame *frame);

/* Reads a frame's length from its first bytes. False: no frame begins so. */
static inline bool aw_frame_read(const struct aw_record_key *key, const uint8_t *head,
				 struct aw_frame *frame)
{
	size_t payload;

	if (aw_key_is_on(key))
		return aw_sealed_read(head, frame);
	if (!aw_fpdu_payload(head, &payload))
		return false;
	*frame = (struct aw_frame){ AW_FRAME_DATA, aw_fpdu_len(payload), payload };
	return true;
}

/* Returns whether a frame, of which AW_FPDU_HEAD bytes or more are known, is an urgent byte's. */
static inline bool aw_frame_is_urgent(const struct aw_record_key *key, const uint8_t *head)
{
	struct aw_frame frame;

	return aw_key_is_on(key) ? aw_sealed_read(head, &frame) && frame.kind == AW_FRAME_URGENT
				 : aw_fpdu_is_urgent(head);
}

#endif
