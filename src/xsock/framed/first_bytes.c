// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Reads the key, and the whole frame behind it.
#include "xsock/framed/first_bytes.h"

#include <string.h>

#include "record/record.h"

#define KEY "MPA ID Req Frame" /* RFC 5044 7.1 */
#define KEY_LEN 16

enum aw_first_bytes aw_first_bytes_judge(const void *bytes, size_t got, size_t *missing)
{
	const uint8_t *data;
	size_t len, whole;

	if (memcmp(bytes, KEY, got < KEY_LEN ? got : KEY_LEN) != 0)
		return AW_FIRST_BYTES_STRANGE;
	*missing = 1; /* the next byte may tell that it is no key */
	if (got < KEY_LEN)
		return AW_FIRST_BYTES_MORE;
	switch (aw_startup_get(bytes, got, false, &whole, &data, &len)) {
	case AW_STARTUP_MORE:
		*missing = whole - got;
		return AW_FIRST_BYTES_MORE;
	case AW_STARTUP_WHOLE:
		if (aw_record_calls.is_record(data, len, false))
			return AW_FIRST_BYTES_RECORD;
		break;
	case AW_STARTUP_WRONG:
		break;
	}
	return AW_FIRST_BYTES_ENDPOINT;
}
