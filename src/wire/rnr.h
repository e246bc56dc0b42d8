// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The messages by which a receiver lets its peer hold requests back while one of them waits for a receive
// (docs/extensions.md). Each is an FPDU of its own. Its ULPDU is no DDP segment, as in wire/move.h: the version in
// the first octet (RFC 5041 4.1) is 0.
#ifndef WIRE_RNR_H
#define WIRE_RNR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RNR_LEN 2 /* the octet that is no DDP segment's, and the kind */

/* Kinds 1 to 15 are those of wire/move.h, and of what may join them. */
enum rnr_kind {
	RNR_NOT_READY =
		16, /* its sender takes answers alone: the peer begins and continues no request */
	RNR_READY = 17, /* its sender takes requests again */
};

/* Writes the ULPDU, RNR_LEN octets. */
void rnr_put(enum rnr_kind kind, uint8_t *p);

/* True when the ULPDU is one of these messages. *kind is written only then. */
bool rnr_get(const uint8_t *ulpdu, size_t len, enum rnr_kind *kind);

#endif
