// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The result of an atomic operation on 64 bits (RFC 7306 5.1), or of an Atomic Write. Pure: the driver makes sure that
// nothing happens to the memory between its reading and its writing.
#ifndef CORE_ATOMIC_H
#define CORE_ATOMIC_H

#include "core/types.h"
#include "wire/rdmap.h"

#define AW_ATOMIC_LEN 8 /* octets, at an address that is a multiple of it */

/* True when req->op is one of those defined (RFC 7306 figure 5), or an Atomic Write. */
bool aw_atomic_known(const struct rdmap_atomic_req *req);

/* The right that a peer needs for it. */
enum aw_access aw_atomic_right(const struct rdmap_atomic_req *req);

/*
 * An Atomic Write carries octets, not a number: the value of the request's add_swap_data that has
 * these octets, and the value in this host's memory that has those of the request.
 */
uint64_t aw_atomic_write_data(const uint8_t octets[AW_ATOMIC_LEN]);
uint64_t aw_atomic_write_value(const struct rdmap_atomic_req *req);

/* The value that follows old; req->op is known. */
uint64_t aw_atomic_next(const struct rdmap_atomic_req *req, uint64_t old);

#endif
