// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The result of an atomic operation on 64 bits (RFC 7306 5.1). Pure: the driver makes sure that
// nothing happens to the memory between its reading and its writing.
#ifndef CORE_ATOMIC_H
#define CORE_ATOMIC_H

#include "core/types.h"
#include "wire/rdmap.h"

#define AW_ATOMIC_LEN 8 /* octets, at an address that is a multiple of it */

/* True when req->op is one of those defined (RFC 7306 figure 5). */
bool aw_atomic_known(const struct rdmap_atomic_req *req);

/* The value that follows old; req->op is known. */
uint64_t aw_atomic_next(const struct rdmap_atomic_req *req, uint64_t old);

#endif
