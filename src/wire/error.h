// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The one error type of wire/ and core/: an error is the Terminate that reports it
// (RFC 5040 4.8, RFC 5041 7, RFC 5044 8, RFC 6581 8). The value holds layer, error type and
// error code as they go onto the wire; errno and NULL appear only above this.
#ifndef WIRE_ERROR_H
#define WIRE_ERROR_H

#include <stdint.h>

#define AW_ERROR(layer, type, code) (0x10000 | (layer) << 12 | (type) << 8 | (code))

enum aw_error {
	AW_OK = 0,
	/* RDMAP, layer 0 */
	AW_E_LOCAL_CATASTROPHIC = AW_ERROR(0, 0, 0x00),
	AW_E_RDMAP_STAG = AW_ERROR(0, 1, 0x00),
	AW_E_RDMAP_BOUNDS = AW_ERROR(0, 1, 0x01),
	AW_E_RDMAP_ACCESS = AW_ERROR(0, 1, 0x02),
	AW_E_RDMAP_NOT_ASSOCIATED = AW_ERROR(0, 1, 0x03),
	AW_E_RDMAP_TO_WRAP = AW_ERROR(0, 1, 0x04),
	AW_E_RDMAP_PROT_CANNOT_INVALIDATE = AW_ERROR(0, 1, 0x09),
	AW_E_RDMAP_PROT_UNSPECIFIED = AW_ERROR(0, 1, 0xff),
	AW_E_RDMAP_VERSION = AW_ERROR(0, 2, 0x05),
	AW_E_RDMAP_OPCODE = AW_ERROR(0, 2, 0x06),
	AW_E_RDMAP_STREAM_CATASTROPHIC = AW_ERROR(0, 2, 0x07),
	AW_E_RDMAP_GLOBAL_CATASTROPHIC = AW_ERROR(0, 2, 0x08),
	AW_E_RDMAP_CANNOT_INVALIDATE = AW_ERROR(0, 2, 0x09),
	AW_E_RDMAP_OP_UNSPECIFIED = AW_ERROR(0, 2, 0xff),
	/* DDP, layer 1 */
	AW_E_DDP_CATASTROPHIC = AW_ERROR(1, 0, 0x00),
	AW_E_DDP_TAGGED_STAG = AW_ERROR(1, 1, 0x00),
	AW_E_DDP_TAGGED_BOUNDS = AW_ERROR(1, 1, 0x01),
	AW_E_DDP_TAGGED_NOT_ASSOCIATED = AW_ERROR(1, 1, 0x02),
	AW_E_DDP_TAGGED_TO_WRAP = AW_ERROR(1, 1, 0x03),
	AW_E_DDP_TAGGED_VERSION = AW_ERROR(1, 1, 0x04),
	AW_E_DDP_QN = AW_ERROR(1, 2, 0x01),
	AW_E_DDP_NO_BUFFER = AW_ERROR(1, 2, 0x02),
	AW_E_DDP_MSN_RANGE = AW_ERROR(1, 2, 0x03),
	AW_E_DDP_MO = AW_ERROR(1, 2, 0x04),
	AW_E_DDP_TOO_LONG = AW_ERROR(1, 2, 0x05),
	AW_E_DDP_UNTAGGED_VERSION = AW_ERROR(1, 2, 0x06),
	/* MPA, layer 2 */
	AW_E_MPA_CLOSED = AW_ERROR(2, 0, 0x01),
	AW_E_MPA_CRC = AW_ERROR(2, 0, 0x02),
	AW_E_MPA_MARKER = AW_ERROR(2, 0, 0x03),
	AW_E_MPA_FRAME = AW_ERROR(2, 0, 0x04),
	AW_E_MPA_LOCAL = AW_ERROR(2, 0, 0x05),
	AW_E_MPA_INSUFFICIENT_IRD = AW_ERROR(2, 0, 0x06),
	AW_E_MPA_NO_MATCHING_RTR = AW_ERROR(2, 0, 0x07),
};

static inline uint8_t aw_error_layer(enum aw_error e)
{
	return (uint32_t)e >> 12 & 0xf;
}

static inline uint8_t aw_error_type(enum aw_error e)
{
	return (uint32_t)e >> 8 & 0xf;
}

static inline uint8_t aw_error_code(enum aw_error e)
{
	return (uint32_t)e & 0xff;
}

/*
 * The error that a peer means that sends the Terminate's bit-fields from the wrong end, as Linux's
 * siw does on x86: layer and type change places. Only for a log line: RFC 5040 4.8 has the receiver
 * ignore the reserved bits that give such a peer away.
 */
static inline enum aw_error aw_error_mirrored(enum aw_error e)
{
	return (enum aw_error)AW_ERROR(aw_error_type(e), aw_error_layer(e), aw_error_code(e));
}

/* Words for a log line: "ddp: no buffer available". Static storage; never NULL. */
const char *aw_error_text(enum aw_error e);

#endif
