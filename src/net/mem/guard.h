// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copies to and from the program's memory, which may be gone: unmapped, protected, or behind the
// end of a file that was cut off. A fault in such a copy ends the copy; any other fault is the
// program's, and its handler runs.
#ifndef NET_GUARD_H
#define NET_GUARD_H

#include "core/types.h"
#include "wire/rdmap.h"

/*
 * Copies len bytes to the program's memory, and from it. False when that memory is not accessible:
 * a part may have been copied. A fault on src or dst is not caught.
 */
bool aw_guard_place(uint8_t *at, const uint8_t *src, size_t len) AW_MUST_USE;
bool aw_guard_gather(uint8_t *dst, const uint8_t *at, size_t len) AW_MUST_USE;

/* As aw_guard_gather, and folds what dst gets into crc. */
bool aw_guard_gather_folding(uint8_t *dst, const uint8_t *at, size_t len,
			     uint32_t *crc) AW_MUST_USE;

/* As aw_guard_gather, by aw_nontemporal_copy: into memory that another core reads next. */
bool aw_guard_gather_nontemporal(uint8_t *dst, const uint8_t *at, size_t len) AW_MUST_USE;

/*
 * Has act read len bytes of the program's memory from `at` on, and nothing else that may be gone; it must leave nothing undone
 * where a fault ends it. False: that memory is not accessible. Only where aw_guard_can_read() is true.
 */
bool aw_guard_read(void (*act)(void *arg), void *arg, const uint8_t *at, size_t len) AW_MUST_USE;
bool aw_guard_can_read(void);

/* As struct aw_ops.atomic. */
bool aw_guard_atomic(uint8_t *at, const struct rdmap_atomic_req *req, uint64_t *before) AW_MUST_USE;

#endif
