// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// DDP segment headers (RFC 5041 4). Octets to values and back, and the version check.
#ifndef WIRE_DDP_H
#define WIRE_DDP_H

#include "wire/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DDP_TAGGED_LEN 14
#define DDP_UNTAGGED_LEN 18
#define DDP_VERSION 1
#define DDP_CTRL_TAGGED 0x80 /* T, in a header's first octet */

/* RFC 5040 5.1: the untagged queues. QN 3 is RFC 7306's. */
enum ddp_qn {
	DDP_QN_SEND = 0,
	DDP_QN_READ = 1,
	DDP_QN_TERMINATE = 2,
	DDP_QN_ATOMIC = 3,
};

struct ddp_hdr {
	bool tagged;
	bool last;
	uint8_t ulp_ctrl; /* RsvdULP's first octet: RDMAP's control octet */
	uint32_t stag; /* tagged */
	uint64_t to; /* tagged */
	uint32_t ulp_rsvd; /* untagged: the other four octets of RsvdULP */
	uint32_t qn; /* untagged */
	uint32_t msn; /* untagged */
	uint32_t mo; /* untagged */
};

static inline size_t ddp_hdr_len(bool tagged)
{
	return tagged ? DDP_TAGGED_LEN : DDP_UNTAGGED_LEN;
}

/* Writes the header; returns its length. */
size_t ddp_put(const struct ddp_hdr *hdr, uint8_t *p);

/*
 * Reads the header at the start of a ULPDU. A ULPDU too short for its header is
 * AW_E_DDP_CATASTROPHIC; a wrong version its tagged or untagged error. *hdr is written only on
 * AW_OK.
 */
enum aw_error ddp_get(const uint8_t *p, size_t len, struct ddp_hdr *hdr);

#endif
