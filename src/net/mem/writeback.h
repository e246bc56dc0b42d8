// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Memory that outlasts the host: a shared mapping of a file. A thread writes it back, which may
// take as long as the disk does; it starts with the first write-back and ends when none is left.
#ifndef NET_WRITEBACK_H
#define NET_WRITEBACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * True when all of these bytes, whose range does not wrap, belong to shared mappings of files that
 * still have a name, on file systems that are not memory alone.
 */
bool aw_writeback_can(const uint8_t *at, size_t len);

/*
 * Called by the thread, with no lock held, once the bytes are in the file (err 0), or cannot be
 * written: EIO, ENOMEM (no shared mapping of a file any more), or msync(2)'s.
 */
typedef void aw_writeback_fn(uint32_t handle, uint64_t number, int err);

struct aw_writeback {
	const uint8_t *at;
	size_t len;
	aw_writeback_fn *told;
	uint32_t handle;
	uint64_t number;
};

/*
 * Has the bytes written back behind those of earlier calls. 0, ENOMEM or EAGAIN (no thread), after
 * which told is not called. The memory may be unmapped meanwhile. In the child of a fork those of
 * the parent are forgotten. The caller may hold the lock of a QP.
 */
int aw_writeback_start(const struct aw_writeback *what);

#endif
