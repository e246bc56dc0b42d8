// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The FPDUs of a sockets stream between two anywarp ends: each is one whole RDMAP Send (RFC 5040
// 4.1) whose payload is the stream's next bytes. Writes, reads and checks header and trailer; no
// I/O, no state.
#ifndef RECORD_FPDU_H
#define RECORD_FPDU_H

#include "record/cursor.h"
#include "wire/ddp.h"
#include "wire/error.h"
#include "wire/fpdu.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AW_FPDU_HEAD (FPDU_LEN_FIELD + DDP_UNTAGGED_LEN)
#define AW_FPDU_TRAILER_MAX (3 + FPDU_CRC_LEN) /* pad, CRC */
/*
 * The longest payload that a record sends: programs often read 16 KiB, or several times as much,
 * and whole FPDUs fill that.
 */
#define AW_FPDU_PAYLOAD_MAX 16384u
#define AW_FPDU_MAX (AW_FPDU_HEAD + AW_FPDU_PAYLOAD_MAX + AW_FPDU_TRAILER_MAX)

static inline size_t aw_fpdu_len(size_t payload)
{
	return fpdu_size(DDP_UNTAGGED_LEN + payload);
}

/* Writes a header; payload is 1 to AW_FPDU_PAYLOAD_MAX. */
void aw_fpdu_put_head(uint8_t head[AW_FPDU_HEAD], size_t payload, uint32_t msn);

/*
 * Writes the header of an urgent byte's FPDU: a Send with Solicited Event (RFC 5040 4.1), whose
 * payload is that byte.
 */
void aw_fpdu_put_urgent_head(uint8_t head[AW_FPDU_HEAD], uint32_t msn);
/* True when the header is such a one. */
bool aw_fpdu_is_urgent(const uint8_t head[AW_FPDU_HEAD]);

/* Writes pad and CRC behind an FPDU's header and payload. Returns the FPDU's length. */
size_t aw_fpdu_put_trailer(uint8_t *fpdu, size_t payload);

/* As aw_fpdu_put_head with aw_fpdu_put_trailer, and between the two copies the payload from where the cursor is, which it moves. */
size_t aw_fpdu_put(uint8_t *fpdu, struct aw_cursor *from, size_t payload, uint32_t msn);

/*
 * Reads the payload's length from the length field; false where that has no room for a header and a
 * byte of payload, or is too long (AW_E_MPA_FRAME).
 */
bool aw_fpdu_payload(const uint8_t head[FPDU_LEN_FIELD], size_t *payload);

/* Checks the header of a whole FPDU whose CRC is right; msn is the expected message number. */
enum aw_error aw_fpdu_judge(const uint8_t head[AW_FPDU_HEAD], uint32_t msn);

/* True when the CRC of a whole FPDU is right. */
bool aw_fpdu_is_right(const uint8_t *fpdu, size_t payload);

#endif
