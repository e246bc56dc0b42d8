// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Words for the error values: RFC 5040 figure 9, RFC 5041 7.2, RFC 5044 8, RFC 6581 8.
#include "wire/error.h"

#include <stddef.h>

static const struct {
	enum aw_error error;
	const char *text;
} texts[] = {
	{ AW_OK, "no error" },
	{ AW_E_LOCAL_CATASTROPHIC, "rdmap: local catastrophic error" },
	{ AW_E_RDMAP_STAG, "rdmap: invalid stag" },
	{ AW_E_RDMAP_BOUNDS, "rdmap: base or bounds violation" },
	{ AW_E_RDMAP_ACCESS, "rdmap: access rights violation" },
	{ AW_E_RDMAP_NOT_ASSOCIATED, "rdmap: stag not associated with the stream" },
	{ AW_E_RDMAP_TO_WRAP, "rdmap: tagged offset wraps" },
	{ AW_E_RDMAP_PROT_CANNOT_INVALIDATE, "rdmap: stag cannot be invalidated (protection)" },
	{ AW_E_RDMAP_PROT_UNSPECIFIED, "rdmap: unspecified protection error" },
	{ AW_E_RDMAP_VERSION, "rdmap: invalid version" },
	{ AW_E_RDMAP_OPCODE, "rdmap: unexpected opcode" },
	{ AW_E_RDMAP_STREAM_CATASTROPHIC, "rdmap: catastrophic error of the stream" },
	{ AW_E_RDMAP_GLOBAL_CATASTROPHIC, "rdmap: catastrophic error, global" },
	{ AW_E_RDMAP_CANNOT_INVALIDATE, "rdmap: stag cannot be invalidated" },
	{ AW_E_RDMAP_OP_UNSPECIFIED, "rdmap: unspecified operation error" },
	{ AW_E_DDP_CATASTROPHIC, "ddp: local catastrophic error" },
	{ AW_E_DDP_TAGGED_STAG, "ddp: invalid stag" },
	{ AW_E_DDP_TAGGED_BOUNDS, "ddp: base or bounds violation" },
	{ AW_E_DDP_TAGGED_NOT_ASSOCIATED, "ddp: stag not associated with the stream" },
	{ AW_E_DDP_TAGGED_TO_WRAP, "ddp: tagged offset wraps" },
	{ AW_E_DDP_TAGGED_VERSION, "ddp: invalid version in a tagged segment" },
	{ AW_E_DDP_QN, "ddp: invalid queue number" },
	{ AW_E_DDP_NO_BUFFER, "ddp: no buffer available" },
	{ AW_E_DDP_MSN_RANGE, "ddp: message sequence number out of range" },
	{ AW_E_DDP_MO, "ddp: invalid message offset" },
	{ AW_E_DDP_TOO_LONG, "ddp: message too long for its buffer" },
	{ AW_E_DDP_UNTAGGED_VERSION, "ddp: invalid version in an untagged segment" },
	{ AW_E_MPA_CLOSED, "mpa: tcp connection closed, terminated or lost" },
	{ AW_E_MPA_CRC, "mpa: crc error" },
	{ AW_E_MPA_MARKER, "mpa: marker and length field disagree" },
	{ AW_E_MPA_FRAME, "mpa: invalid start-up frame" },
	{ AW_E_MPA_LOCAL, "mpa: local catastrophic error" },
	{ AW_E_MPA_INSUFFICIENT_IRD, "mpa: insufficient ird resources" },
	{ AW_E_MPA_NO_MATCHING_RTR, "mpa: no matching rtr option" },
};

const char *aw_error_text(enum aw_error e)
{
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (texts[i].error == e)
			return texts[i].text;
	}
	/* A peer's Terminate may carry any value. */
	return "unknown error";
}
