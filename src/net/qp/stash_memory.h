// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The memory of the stashes of all QPs (core/stash.h), within a bound of the process.
#ifndef NET_QP_STASH_MEMORY_H
#define NET_QP_STASH_MEMORY_H

#include <stddef.h>

/*
 * Peers decide how much is kept. A QP has its own bound, but a listener may have thousands of QPs, and all of them
 * together must not fill the machine's memory. A QP that gets none stops reading its stream until it has taken what
 * it keeps, as towards a peer without that agreement.
 */
#define AW_STASHES_MAX ((size_t)256 << 20)

/* Memory of len bytes, which the caller owns; NULL beyond the bound, or where the process has none. */
void *aw_stash_memory_get(size_t len);
/* Takes it back; len: as it was got. */
void aw_stash_memory_put(void *memory, size_t len);

#endif
