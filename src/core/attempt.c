// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "core/attempt.h"

uint32_t aw_attempt_pause_ms(uint32_t refusals)
{
	return refusals < AW_ATTEMPT_REFUSALS_MAX ? 1u << refusals : 0;
}

/*
 * A peer of revision 1 may take an enhanced Request for malformed, and close without an octet. The same is seen where its program
 * has just ended or closed its listener, and another listener may be there the next moment: to that one revision 1 would do
 * harm, so the first time the Request is repeated as it was.
 */
enum aw_attempt_next aw_attempt_closed(uint8_t asked, bool again, size_t received)
{
	if (asked <= 1 || received > 0)
		return AW_ATTEMPT_FAILED;
	return again ? AW_ATTEMPT_PLAIN : AW_ATTEMPT_REPEAT;
}

/*
 * RFC 6581 10: a peer that answers a Request of revision 2 with a Reply of revision 1 has taken RFC
 * 6581's octets for private data, so it has agreed to something else than was asked.
 */
enum aw_attempt_next aw_attempt_replied(uint8_t asked, const struct aw_mpa_result *result)
{
	if (result->rejected)
		return AW_ATTEMPT_REJECTED;
	return result->revision < asked ? AW_ATTEMPT_PLAIN : AW_ATTEMPT_STREAM;
}

enum aw_error aw_attempt_terminate(enum aw_setup setup)
{
	switch (setup) {
	case AW_SETUP_NO_RTR:
		return AW_E_MPA_NO_MATCHING_RTR;
	case AW_SETUP_IRD:
		return AW_E_MPA_INSUFFICIENT_IRD;
	case AW_SETUP_OK:
	case AW_SETUP_WRONG_KIND:
	case AW_SETUP_REVISION:
	case AW_SETUP_SHORT_PD:
		break;
	}
	return AW_OK;
}
