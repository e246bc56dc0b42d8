// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The start-up frames of a record.
#include "record/startup.h"

/*
 * No revision of MPA: another implementation refuses such a Request (RFC 5044 7.1.1 knows 1, RFC 6581 adds 2), and no program
 * above it sees a connection. FPDUs may follow the Request at once, which RFC 5044 forbids.
 */
#define REVISION 65

size_t aw_startup_put(uint8_t *frame, bool reply, const void *data, size_t len)
{
	const struct mpa_frame mpa = {
		.kind = reply ? MPA_REPLY : MPA_REQUEST,
		.flags = MPA_FLAG_CRC,
		.revision = REVISION,
		.pd_len = (uint16_t)len,
		.pd = data,
	};

	return mpa_build(&mpa, frame);
}

enum aw_startup aw_startup_get(const uint8_t *bytes, size_t len, bool reply, size_t *used,
			       const uint8_t **data, size_t *data_len)
{
	struct mpa_frame mpa;

	switch (mpa_parse(bytes, len, &mpa, used)) {
	case MPA_PARSE_OK:
		/* MPA_FLAG_CRC may be missing: an end that wants no CRCs gets them from one that wants them. */
		if (mpa.kind != (reply ? MPA_REPLY : MPA_REQUEST) || mpa.revision != REVISION ||
		    mpa.flags & (MPA_FLAG_MARKERS | MPA_FLAG_REJECT))
			return AW_STARTUP_WRONG;
		*data = mpa.pd;
		*data_len = mpa.pd_len;
		return AW_STARTUP_WHOLE;
	case MPA_PARSE_MORE:
		return AW_STARTUP_MORE;
	case MPA_PARSE_BAD_KEY:
	case MPA_PARSE_BAD_LENGTH:
		break;
	}
	return AW_STARTUP_WRONG;
}
