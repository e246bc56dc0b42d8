// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The memfds that a process keeps open for peers that are to open them (net/qp/move.h). A peer that agreed to the move may keep
// its answer for itself, so a memfd is open until the answer comes or until the process has kept so many newer ones. A peer that
// comes after that finds no memfd, and its stream stays on TCP.
#ifndef NET_MEMFDS_H
#define NET_MEMFDS_H

#include <stdint.h>

#define AW_MEMFDS_MAX 256 /* open at a time */
/* That many of the fds that the process may have, for each open memfd. */
#define AW_MEMFDS_SHARE 16

/* How many memfds may be open now: AW_MEMFDS_MAX, or fewer where RLIMIT_NOFILE is low. */
uint32_t aw_memfds_places(void);

/* Takes the memfd over, and closes the oldest where there would be too many. Returns its name here, which is not 0. */
uint64_t aw_memfd_keep(int fd);

/* Closes the memfd of that name, unless that is done or the name is 0. */
void aw_memfd_close(uint64_t name);

#endif
