// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The Terminate of a failed start-up.
#include "core/setup_term.h"

#include "core/promise.h"
#include "wire/crc32c.h"
#include "wire/ddp.h"
#include "wire/fpdu.h"
#include "wire/octets.h"
#include "wire/rdmap.h"
#include "wire/term.h"

#include <string.h>

enum {
	ULPDU_LEN = DDP_UNTAGGED_LEN + TERM_CTRL_LEN,
	FPDU_SIZE = FPDU_LEN_FIELD + ULPDU_LEN + FPDU_CRC_LEN, /* no pad: a multiple of four */
};

_Static_assert(FPDU_SIZE % 4 == 0 && FPDU_SIZE + FPDU_MARKER_LEN == AW_SETUP_TERM_MAX,
	       "a Terminate without headers has no pad");

size_t aw_setup_term(enum aw_error error, bool markers, uint8_t *buf)
{
	const struct ddp_hdr ddp = {
		.last = true,
		.ulp_ctrl = rdmap_ctrl(RDMAP_TERMINATE),
		.qn = DDP_QN_TERMINATE,
		.msn = 1,
	};
	uint8_t plain[FPDU_SIZE] = { 0 };
	size_t at = FPDU_LEN_FIELD;
	size_t len = FPDU_SIZE;

	put_be16(plain, ULPDU_LEN);
	at += ddp_put(&ddp, plain + at);
	at += term_put(&(struct term_msg){ .error = error }, plain + at);
	AW_PROMISE(at + FPDU_CRC_LEN == FPDU_SIZE);
	if (markers)
		len = fpdu_insert_markers(buf, plain, FPDU_SIZE, 0);
	else
		memcpy(buf, plain, FPDU_SIZE);
	/* Without CRCs the field is there all the same, and ignored. */
	put_le32(buf + len - FPDU_CRC_LEN,
		 crc32c_final(crc32c_update(CRC32C_INIT, buf, len - FPDU_CRC_LEN)));
	return len;
}
