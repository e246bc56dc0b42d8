// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Service ID resolution: the request of rdma_connect in the UDP port space, and its reply, each one
// UDP datagram. Octets to values and back. docs/roce-ud.md.
#ifndef WIRE_SIDR_H
#define WIRE_SIDR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIDR_HDR_LEN 24
#define SIDR_PD_MAX 255 /* octets: the most that the API's length can express */
#define SIDR_MAX (SIDR_HDR_LEN + SIDR_PD_MAX)

enum sidr_kind {
	SIDR_REQUEST = 1,
	SIDR_REPLY = 2,
};

/* The numbers of InfiniBand's status of a SIDR_REP. */
enum sidr_status {
	SIDR_SUCCESS = 0,
	SIDR_REJECTED = 2,
};

struct sidr_msg {
	enum sidr_kind kind;
	uint8_t status; /* replies only */
	uint64_t id; /* random: ties the reply to its request */
	uint32_t qpn; /* replies only, 24 bits */
	uint32_t qkey; /* likewise */
	uint8_t pd_len;
	const uint8_t *pd; /* borrowed from the parsed octets */
};

/* False when it is no such datagram; *msg is written only on success. */
bool sidr_parse(const uint8_t *datagram, size_t len, struct sidr_msg *msg);

/* Writes up to SIDR_MAX octets, and returns their number. */
size_t sidr_build(const struct sidr_msg *msg, uint8_t *p);

#endif
