// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Closing a socket so that octets TCP already holds reach the peer: FIN, then read and drop what
// still comes until the peer's FIN or a deadline. Closing with unread input would reset instead.
#ifndef NET_LINGER_H
#define NET_LINGER_H

#include <stdbool.h>

#define AW_LINGER_MS 2000

/*
 * Takes fd over, which is in no watch any more; never blocks, never fails (at worst it closes at
 * once). The caller holds an engine reference.
 */
void aw_linger(int fd);

/*
 * The same for a connection that the program never accepted: of those, the one that has lingered longest gives way to the
 * next (AW_FILES_LINGERING). They push out none of the program's own.
 */
void aw_linger_stranger(int fd);

/* Closes what still lingers; called as the engine stops. */
void aw_linger_flush(void);

/*
 * For net/engine.c. The child closes its copies; the connections are the parent's, also where the child
 * carries on with others.
 */
void aw_linger_fork_prepare(void);
void aw_linger_fork_parent(void);
void aw_linger_fork_child(bool carries);

#endif
