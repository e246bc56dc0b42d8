// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// An urgent FPDU that the program has read up to: it stands at the mark. TCP's reads stop at the urgent
// pointer. Therefore all of the FPDU but its last byte, the front, is in the record then, and that
// byte in the socket.
//
// sendmsg(MSG_OOB) sets TCP's urgent pointer to the urgent FPDU's last byte, so that SIGURG,
// POLLPRI, EPOLLPRI and exceptfds are the kernel's own. The receiver's kernel has SO_OOBINLINE on;
// otherwise it would take that byte out of the FPDU. SIOCATMARK tells whether the pointer is at
// that byte; if not, a later urgent byte has overtaken this one, which is data then, as in TCP.
// For recv(MSG_OOB) the record looks at everything in front of the pointer (MSG_PEEK). To take
// POLLPRI back it turns SO_OOBINLINE off, calls recv(MSG_OOB) and turns it on again, with its rx
// lock held, and never while the pointer is at the socket's next byte.
// tests/prop/prop_record_urgent.c compares a record with TCP call by call. They differ in three
// ways: a read at the mark with nothing behind it leaves the urgent byte to MSG_OOB; the fd may be
// readable for an urgent FPDU alone until the program has called read or SIOCATMARK; and a program
// that turns SO_OOBINLINE on after it has received the byte at the mark does not get that byte
// again.
#ifndef RECORD_URGENT_H
#define RECORD_URGENT_H

#include "record/record.h"

/* All of the half's urgent FPDU but its last byte. */
static inline size_t aw_urgent_front(const struct aw_record_rx *rx)
{
	return aw_frame_urgent_len(&rx->key) - 1;
}

/* True when the record has the front of an urgent FPDU, and no more. */
static inline bool aw_urgent_is_front(const struct aw_record_rx *rx)
{
	return rx->have == aw_urgent_front(rx) && !rx->held &&
	       aw_frame_is_urgent(&rx->key, rx->bytes);
}

/* True when TCP's urgent pointer is at the socket's next byte. */
bool aw_urgent_is_at_pointer(int fd);

/*
 * With the front in the record: true when TCP's urgent pointer is at the FPDU's last byte, and so the
 * program at the mark. Otherwise a later urgent byte has overtaken this one, which is data then.
 */
bool aw_urgent_is_mark(struct aw_record_rx *rx, int fd);

/*
 * Begins each of the program's calls: a later urgent byte may have come since the program has come to
 * the mark.
 */
void aw_urgent_renew(struct aw_record *record, int fd);

/*
 * Takes the urgent byte out of the stream for a program that stands at the mark and reads: MSG_OOB
 * gets it no more. 0, or a negative errno. -EAGAIN: the program has not received the byte, and nothing
 * has come behind it. TCP takes it away even then; but a record's fd may have become readable by the
 * urgent FPDU alone, and the program reads for that reason.
 */
int aw_urgent_pass(struct aw_record *record, int fd);

#endif
