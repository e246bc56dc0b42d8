// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Words for the error values: RFC 5040 figure 9, RFC 5041 7.2, RFC 5044 8, RFC 6581 8.
#include "wire/error.h"

const char *aw_error_text(enum aw_error e)
{
	switch (e) {
	case AW_OK:
		return "no error";
	case AW_E_LOCAL_CATASTROPHIC:
		return "rdmap: local catastrophic error";
	case AW_E_RDMAP_STAG:
		return "rdmap: invalid stag";
	case AW_E_RDMAP_BOUNDS:
		return "rdmap: base or bounds violation";
	case AW_E_RDMAP_ACCESS:
		return "rdmap: access rights violation";
	case AW_E_RDMAP_NOT_ASSOCIATED:
		return "rdmap: stag not associated with the stream";
	case AW_E_RDMAP_TO_WRAP:
		return "rdmap: tagged offset wraps";
	case AW_E_RDMAP_PROT_CANNOT_INVALIDATE:
		return "rdmap: stag cannot be invalidated (protection)";
	case AW_E_RDMAP_PROT_UNSPECIFIED:
		return "rdmap: unspecified protection error";
	case AW_E_RDMAP_VERSION:
		return "rdmap: invalid version";
	case AW_E_RDMAP_OPCODE:
		return "rdmap: unexpected opcode";
	case AW_E_RDMAP_STREAM_CATASTROPHIC:
		return "rdmap: catastrophic error of the stream";
	case AW_E_RDMAP_GLOBAL_CATASTROPHIC:
		return "rdmap: catastrophic error, global";
	case AW_E_RDMAP_CANNOT_INVALIDATE:
		return "rdmap: stag cannot be invalidated";
	case AW_E_RDMAP_OP_UNSPECIFIED:
		return "rdmap: unspecified operation error";
	case AW_E_DDP_CATASTROPHIC:
		return "ddp: local catastrophic error";
	case AW_E_DDP_TAGGED_STAG:
		return "ddp: invalid stag";
	case AW_E_DDP_TAGGED_BOUNDS:
		return "ddp: base or bounds violation";
	case AW_E_DDP_TAGGED_NOT_ASSOCIATED:
		return "ddp: stag not associated with the stream";
	case AW_E_DDP_TAGGED_TO_WRAP:
		return "ddp: tagged offset wraps";
	case AW_E_DDP_TAGGED_VERSION:
		return "ddp: invalid version in a tagged segment";
	case AW_E_DDP_QN:
		return "ddp: invalid queue number";
	case AW_E_DDP_NO_BUFFER:
		return "ddp: no buffer available";
	case AW_E_DDP_MSN_RANGE:
		return "ddp: message sequence number out of range";
	case AW_E_DDP_MO:
		return "ddp: invalid message offset";
	case AW_E_DDP_TOO_LONG:
		return "ddp: message too long for its buffer";
	case AW_E_DDP_UNTAGGED_VERSION:
		return "ddp: invalid version in an untagged segment";
	case AW_E_MPA_CLOSED:
		return "mpa: tcp connection closed, terminated or lost";
	case AW_E_MPA_CRC:
		return "mpa: crc error";
	case AW_E_MPA_MARKER:
		return "mpa: marker and length field disagree";
	case AW_E_MPA_FRAME:
		return "mpa: invalid start-up frame";
	case AW_E_MPA_LOCAL:
		return "mpa: local catastrophic error";
	case AW_E_MPA_INSUFFICIENT_IRD:
		return "mpa: insufficient ird resources";
	case AW_E_MPA_NO_MATCHING_RTR:
		return "mpa: no matching rtr option";
	}
	/* A peer's Terminate may carry any value. */
	return "unknown error";
}
