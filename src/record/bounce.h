// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A bounce buffer: memory of this process in which FPDUs stand between TCP and the program's buffers. The program does not know it,
// so that a CRC is of the bytes that are sent, or given to the program. One call has it at a time, and leaves nothing in it.
//
// The program's memory belongs to the program: another thread may store there during a call, two
// buffers of a read may overlap, and behind what a read returns nothing may change. Each processor
// keeps one buffer for the next call, so that the caches hold it however many connections there
// are.
#ifndef RECORD_BOUNCE_H
#define RECORD_BOUNCE_H

#include "record/record.h"

#define AW_BOUNCE_BYTES ((size_t)AW_RECORD_FPDUS * AW_FPDU_MAX)
#define AW_BOUNCE_PIECES 256u
/* FPDUs up to this length together stand in the record itself, whose memory a connection keeps. */
#define AW_BOUNCE_SMALL 4096u

struct aw_bounce {
	unsigned home; /* its place while no call has it */
	struct iovec pieces[AW_BOUNCE_PIECES]; /* for a look at more bytes than there is room for */
	_Alignas(64) uint8_t bytes[AW_BOUNCE_BYTES];
};

/* Returns a buffer, which the caller puts back within its call; NULL: there is no memory. Async-signal-safe. */
struct aw_bounce *aw_bounce_take(void);
/* bounce may be NULL. */
void aw_bounce_put(struct aw_bounce *bounce);

#endif
