// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// An urgent FPDU that the program has read up to: it stands at the mark. TCP's reads stop at the urgent
// pointer. Therefore all of the FPDU but its last byte, the front, is in the record then, and that
// byte in the socket.
#ifndef RECORD_URGENT_H
#define RECORD_URGENT_H

#include "record/record.h"

#define AW_URGENT_LEN 28u
#define AW_URGENT_FRONT (AW_URGENT_LEN - 1)

/* True when the record has the front of an urgent FPDU, and no more. */
static inline bool aw_urgent_is_front(const struct aw_record_rx *rx)
{
	return rx->have == AW_URGENT_FRONT && !rx->held && aw_frame_is_urgent(rx->bytes);
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
