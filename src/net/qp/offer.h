// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The memfds that a process has offered to its peers (net/qp/move.h). A peer that agreed to the move may keep its verdict for
// itself, so a memfd is open until the verdict or until the process has made so many more offers. The peer of an offer that
// was closed so, and that comes only then, finds no memfd, and its stream stays on TCP.
#ifndef NET_OFFER_H
#define NET_OFFER_H

#include <stdint.h>

#define AW_OFFERS_MAX 256 /* memfds that are open at a time */
/* That many of the fds that the process may have, for each open memfd. */
#define AW_OFFERS_SHARE 16

/* How many memfds may be open now: AW_OFFERS_MAX, or fewer where RLIMIT_NOFILE is low. */
uint32_t aw_offers_places(void);

/* Takes the memfd over, and closes that of the oldest offer where there would be too many. The offer's name, which is not 0. */
uint64_t aw_offer_begin(int fd);

/* Closes the memfd unless that is done. */
void aw_offer_end(uint64_t offer);

#endif
