// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Makes and opens the TLS records of a record under TLS (frame.h). Each call counts the key's number, and none uses a number
// twice. No I/O.
#ifndef RECORD_SEALED_H
#define RECORD_SEALED_H

#include "record/cursor.h"
#include "record/frame.h"

/*
 * These write a TLS record to `to`, and return its length; 0: the cipher has failed, and the key must be used no more. Of a payload's
 * bytes, which are where the cursor is, no copy is made but for short ones; the cursor moves.
 */
size_t aw_sealed_put(struct aw_record_key *key, uint8_t *to, struct aw_cursor *from, size_t payload,
		     uint32_t msn);
size_t aw_sealed_put_urgent(struct aw_record_key *key, uint8_t *to, uint8_t byte, uint32_t msn);
/* The Terminate that tells of error (RFC 5040 4.8). */
size_t aw_sealed_put_terminate(struct aw_record_key *key, uint8_t *to, enum aw_error error);
size_t aw_sealed_put_alert(struct aw_record_key *key, uint8_t *to, uint8_t alert);
/* A KeyUpdate; the key is the next one afterwards. */
size_t aw_sealed_put_update(struct aw_record_key *key, uint8_t *to);
/* len bytes that are at to + AW_AEAD_HEAD already: a frame of start-up. */
size_t aw_sealed_put_startup(struct aw_record_key *key, uint8_t *to, size_t len);

/* The content of a TLS record that is no FPDU. */
struct aw_sealed_message {
	bool asked; /* a KeyUpdate: the peer wants one in return */
	uint8_t alert; /* an alert */
};

/*
 * Opens a whole TLS record where it is. AW_OK: its FPDU, at bytes + AW_AEAD_HEAD, is right and has number msn; or it is a
 * KeyUpdate, and the key is the next one; or an alert.
 */
enum aw_error aw_sealed_open(struct aw_record_key *key, uint8_t *bytes,
			     const struct aw_frame *frame, uint32_t msn,
			     struct aw_sealed_message *message);

/* Reads the length of a TLS record whose content is a frame of start-up, or an alert in its place. False: it is neither's. */
bool aw_sealed_startup_len(const uint8_t head[AW_AEAD_HEAD], size_t *len);
/* Opens such a record of len bytes where it is; its content, at bytes + AW_AEAD_HEAD, has *content bytes. */
bool aw_sealed_open_startup(struct aw_record_key *key, uint8_t *bytes, size_t len, size_t *content);

#endif
