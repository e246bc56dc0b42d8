// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// SO_RCVLOWAT of a record's socket: pollers are told of an FPDU when all of it is there, and of as
// much payload as the program's own SO_RCVLOWAT asks for.
//
// Short FPDUs have more headers, so a poller may be told early, never late; FIONREAD, which looks
// at the FPDUs, corrects the value. Between two FPDUs the value is one byte. The wrappers of poll
// and select look themselves (framed/parts.h); of epoll they do not, because it serves programs
// that take EAGAIN for no error, and the look would cost each event a call.
#ifndef RECORD_LOWAT_H
#define RECORD_LOWAT_H

#include "record/record.h"

/* The least bytes of FPDUs that carry so much payload: the FPDUs are as long as can be. */
size_t aw_lowat_bytes(const struct aw_record_key *key, size_t payload);

/* Sets the kernel's SO_RCVLOWAT, unless it is so. */
void aw_lowat_set(struct aw_record_rx *rx, int fd, size_t bytes);

/* Sets SO_RCVLOWAT to what a program waits for that has got all that it can get of what is here. */
void aw_lowat_await(struct aw_record_rx *rx, int fd);

#endif
