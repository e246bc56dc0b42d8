// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The messages by which two ends on one host move their stream from TCP into shared memory
// (docs/host-path.md). Each is an FPDU of its own. Its ULPDU is no DDP segment: the version in the
// first octet (RFC 5041 4.1) is 0.
#ifndef WIRE_MOVE_H
#define WIRE_MOVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MOVE_HDR_LEN 2 /* the octet that is no DDP segment's, and the kind */
#define MOVE_HELLO_LEN 28
#define MOVE_VERDICT_LEN 16
#define MOVE_DATA_MAX MOVE_HELLO_LEN

enum move_kind {
	MOVE_MSG_NONE,
	MOVE_HELLO, /* responder: where the memory is */
	MOVE_VERDICT, /* initiator: whether it has opened the memory; if so, its last FPDU over TCP */
	MOVE_LAST, /* responder: its last FPDU over TCP */
};

struct move_msg {
	enum move_kind kind;
	uint8_t data[MOVE_DATA_MAX];
};

/* Octets of a message's data: a kind has one length. */
size_t move_data_len(enum move_kind kind);

/* Writes the ULPDU to p (MOVE_HDR_LEN + MOVE_DATA_MAX octets suffice); returns its length. */
size_t move_put(const struct move_msg *msg, uint8_t *p);

/* True when the ULPDU is one of these messages. *msg is written only then. */
bool move_get(const uint8_t *ulpdu, size_t len, struct move_msg *msg);

#endif
