// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// How a record begins.
#ifndef RECORD_REPLY_H
#define RECORD_REPLY_H

#include "record/record.h"

/* Takes the Reply, if it is still due. 0; -EAGAIN; -ENODATA: the stream's end; or what has ended the connection. */
int aw_reply_take(struct aw_record *record, const struct aw_record_calls *calls, int fd);

/*
 * Takes the next FPDU, but for its last byte, so that it can be looked at however small the receive buffer is. 1; 0: the stream's
 * end; or a negative errno.
 */
ssize_t aw_record_hold(struct aw_record *record, const struct aw_record_calls *calls, int fd);

#endif
