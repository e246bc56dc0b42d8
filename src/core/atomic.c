// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// RFC 7306 5.1.1 and 5.1.2, without their loops over 64 bits; and the Atomic Write.
#include "core/atomic.h"

#include "core/promise.h"
#include "wire/octets.h"

#include <string.h>

bool aw_atomic_known(const struct rdmap_atomic_req *req)
{
	return req->op == RDMAP_FETCH_ADD || req->op == RDMAP_CMP_SWAP ||
	       req->op == RDMAP_ATOMIC_WRITE;
}

enum aw_access aw_atomic_right(const struct rdmap_atomic_req *req)
{
	return req->op == RDMAP_ATOMIC_WRITE ? AW_ACCESS_REMOTE_WRITE : AW_ACCESS_REMOTE_ATOMIC;
}

uint64_t aw_atomic_write_data(const uint8_t octets[AW_ATOMIC_LEN])
{
	return get_be64(octets);
}

uint64_t aw_atomic_write_value(const struct rdmap_atomic_req *req)
{
	uint8_t octets[AW_ATOMIC_LEN];
	uint64_t value;

	put_be64(octets, req->add_swap_data);
	memcpy(&value, octets, sizeof(value));
	return value;
}

/*
 * A set mask bit is its field's most significant. Below these bits the sum carries nothing from
 * one field into the next; in them it is the sum of three bits without its carry.
 */
static uint64_t add_fields(uint64_t old, uint64_t add, uint64_t tops)
{
	return ((old & ~tops) + (add & ~tops)) ^ ((old ^ add) & tops);
}

uint64_t aw_atomic_next(const struct rdmap_atomic_req *req, uint64_t old)
{
	AW_PROMISE(aw_atomic_known(req));
	if (req->op == RDMAP_FETCH_ADD)
		return add_fields(old, req->add_swap_data, req->add_swap_mask);
	if (req->op == RDMAP_ATOMIC_WRITE)
		return aw_atomic_write_value(req);
	if ((old ^ req->compare_data) & req->compare_mask)
		return old;
	return (old & ~req->add_swap_mask) | (req->add_swap_data & req->add_swap_mask);
}
