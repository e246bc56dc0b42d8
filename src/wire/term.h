// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The Terminate message's payload (RFC 5040 4.8): the error, and the headers of the segment that
// caused it. Octets at named offsets; no bit-fields.
#ifndef WIRE_TERM_H
#define WIRE_TERM_H

#include "wire/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TERM_CTRL_LEN 4
#define TERM_SEG_LEN_LEN 2
#define TERM_HDR_MAX 18 /* an untagged DDP header */
#define TERM_RDMAP_MAX 28 /* a Read Request's header; RFC 7306 has its own rule for atomics */
#define TERM_MAX (TERM_CTRL_LEN + TERM_SEG_LEN_LEN + TERM_HDR_MAX + TERM_RDMAP_MAX)

struct term_msg {
	enum aw_error error; /* layer, type and code as received, also when unknown to us */
	bool has_seg_len; /* M */
	bool has_ddp; /* D */
	bool has_rdmap; /* R */
	bool mirrored; /* M, D or R where a reversed bit-field has them: see aw_error_mirrored */
	uint16_t seg_len; /* DDP segment length as handed up by MPA */
	uint8_t ddp_len; /* 14 or 18 when has_ddp */
	const uint8_t *ddp; /* borrowed */
	const uint8_t *rdmap; /* borrowed, 28 octets, when has_rdmap */
};

/* Writes msg to p (TERM_MAX octets suffice); returns its length. */
size_t term_put(const struct term_msg *msg, uint8_t *p);

/* Reads a Terminate payload; false when it is too short for what its M, D and R bits promise. */
bool term_get(const uint8_t *p, size_t len, struct term_msg *msg);

#endif
