// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The start of receiving, which the files of a record share.
#ifndef RECORD_REPLY_H
#define RECORD_REPLY_H

#include "record/record.h"

/*
 * Takes the Reply, if it is still due. 0, -EAGAIN, -ENODATA at the stream's end, or the
 * negative errno that has ended the connection.
 */
int aw_reply_take(struct aw_record *record, int fd);

/*
 * Takes the next FPDU except its last byte, so that it can be peeked at however small the receive
 * buffer is. 1 when it is held, 0 at the stream's end, or a negative errno.
 */
ssize_t aw_record_hold(struct aw_record *record, int fd);

#endif
