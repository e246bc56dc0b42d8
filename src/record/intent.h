// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A note in the record of the FPDUs that a process is about to hand to TCP. If that process is killed before it
// has written down how much TCP took, another process that shares the record goes by the note.
#ifndef RECORD_INTENT_H
#define RECORD_INTENT_H

#include "record/record.h"

/*
 * From open to close, aw_record_tx may be half written, and the note holds. The caller has set intent.count and
 * intent.lens to the FPDUs of the call; count 0: the call sends the rest.
 */
void aw_intent_open(struct aw_record_tx *tx);
/* Notes how many bytes TCP has taken before the record's first one. */
void aw_intent_begin(struct aw_record *record, int fd);
/*
 * The same while the caller seals: a half that was killed in between is broken. When it closes, what was sealed is the rest.
 */
void aw_intent_seal(struct aw_record_tx *tx);
/* taken: what sendmsg returned; at most 0: nothing. */
void aw_intent_close(struct aw_record_tx *tx, ssize_t taken);

#endif
