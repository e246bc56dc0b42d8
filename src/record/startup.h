// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The start-up of a record: MPA's frames (RFC 5044 7.1) with a revision of their own, CRCs, no markers. The caller chooses the
// private data. No I/O.
#ifndef RECORD_STARTUP_H
#define RECORD_STARTUP_H

#include "wire/mpa.h"

#define AW_STARTUP_HEAD MPA_HDR_LEN
#define AW_STARTUP_MAX MPA_FRAME_MAX
/* As a TLS record: with its header, type and tag (record/frame.h). */
#define AW_STARTUP_SEALED_MAX (AW_STARTUP_MAX + 5 + 1 + 16)

enum aw_startup {
	AW_STARTUP_MORE, /* the beginning of a frame */
	AW_STARTUP_WHOLE,
	AW_STARTUP_WRONG, /* no frame, or one with which no record begins */
};

/*
 * Writes a Request (or, with reply, a Reply) with len bytes of private data into frame, which has
 * room for AW_STARTUP_MAX. Returns its length.
 */
size_t aw_startup_put(uint8_t *frame, bool reply, const void *data, size_t len);

/*
 * Reads such a frame at the start of len bytes. *used, unless it is WRONG: its length as far as
 * that is known. *data and *data_len, when it is WHOLE: the private data, which stays in bytes.
 */
enum aw_startup aw_startup_get(const uint8_t *bytes, size_t len, bool reply, size_t *used,
			       const uint8_t **data, size_t *data_len);

#endif
