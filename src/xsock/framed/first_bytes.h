// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The first bytes of a client, and the kind of connection that they ask for.
#ifndef XSOCK_FRAMED_FIRST_BYTES_H
#define XSOCK_FRAMED_FIRST_BYTES_H

#include <stddef.h>

#include "record/startup.h"

enum aw_first_bytes {
	AW_FIRST_BYTES_MORE, /* the beginning of an MPA Request */
	AW_FIRST_BYTES_RECORD, /* a whole Request, of a record */
	AW_FIRST_BYTES_ENDPOINT, /* a Request of an endpoint, or of another MPA */
	AW_FIRST_BYTES_STRANGE, /* no part of a Request */
};

#define AW_FIRST_BYTES_MAX AW_STARTUP_MAX

/* Judges the first `got` bytes of a stream. MORE: *missing is how many more bytes another look needs at least. */
enum aw_first_bytes aw_first_bytes_judge(const void *bytes, size_t got, size_t *missing);

#endif
