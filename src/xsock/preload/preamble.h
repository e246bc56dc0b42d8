// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Doubt: the first bytes of a client begin like the key of an MPA Request, and no more have come. A call that must not
// wait, of a program that has others to serve, finds nothing there; the kernel tells of the next byte, and who
// waits for anything wakes when the time is over and the connection is plain.
#ifndef XSOCK_PRELOAD_PREAMBLE_H
#define XSOCK_PRELOAD_PREAMBLE_H

#include "xsock/preload/wait.h"
#include "xsock/process/fdtab.h"

/* So many bytes have come on fd. False: its time is over, or no more can come. */
bool aw_preamble_lasts(int fd, size_t octets);
bool aw_preamble_is_over(const struct aw_sock *sock);
/* What can be read there is nothing that the program may see. */
bool aw_preamble_hides(int fd);
/* With the table's lock. rouse: fd has come into a set. end: what sock is is known. */
void aw_preamble_wake(const struct aw_sock *sock);
void aw_preamble_end(struct aw_sock *sock);

/* As aw_deadline_left, but no longer than until a doubt is over. */
const struct timespec *aw_preamble_left(const struct aw_deadline *deadline, struct timespec *left);
/* Settles those that are over. */
void aw_preamble_settle(void);

/* How long the rest of a key may take. */
int aw_preamble_ms(void);

#endif
