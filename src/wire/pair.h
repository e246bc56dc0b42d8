// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The private data of connections that ibv_modify_qp makes: the two QPs of the roce persona that
// the connection is between (docs/roce-persona.md). Octets to values and back.
#ifndef WIRE_PAIR_H
#define WIRE_PAIR_H

#include "wire/gid.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PAIR_LEN 36
#define PAIR_VERSION 1
/* A message waits for its receive for ever. */
#define PAIR_RNR_RETRY_ENDLESS 7

/* The reason of a rejecting Reply; 0 in a Request and in an accepting Reply. */
enum pair_answer {
	PAIR_OK,
	PAIR_NO_QP, /* there is no such QP */
	PAIR_OTHER_PEER, /* the QP was told to connect to another one */
	PAIR_ADDRESS, /* the source GID is not where the TCP connection comes from */
	PAIR_BUSY, /* another connection between the two exists, or is preferred */
	PAIR_MALFORMED, /* no private data of this kind and version */
	PAIR_OTHER_TYPE, /* the QP is of a type that does not talk to the caller's */
};

/* The type of a QP. Ends that know RC alone send 0 and do not look. */
enum pair_type {
	PAIR_RC,
	PAIR_UC,
	PAIR_XRC_INITIATOR,
	PAIR_XRC_TARGET,
};

struct pair {
	enum pair_answer answer;
	uint8_t type; /* of the source QP: enum pair_type, or one of a later version */
	uint32_t incarnation; /* grows each time that the source QP goes to RTR */
	uint32_t src_qpn; /* 24 bits */
	uint32_t dst_qpn; /* likewise */
	uint8_t src_gid[GID_LEN];
	uint8_t rnr_retry; /* of an XRC initiator alone: 0 to PAIR_RNR_RETRY_ENDLESS */
	bool keeps; /* the source knows wire/rnr.h, and receives answers behind a message that waits */
};

/* Writes PAIR_LEN octets. */
void pair_put(const struct pair *pair, uint8_t *p);

/* Octets behind the first PAIR_LEN are for later versions. False: not of this kind, or too short. */
bool pair_get(const uint8_t *p, size_t len, struct pair *pair);

#endif
