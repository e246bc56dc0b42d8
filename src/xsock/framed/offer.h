// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The offer that a client's first bytes make.
#ifndef XSOCK_FRAMED_OFFER_H
#define XSOCK_FRAMED_OFFER_H

#include <stddef.h>

#include "record/startup.h"

enum aw_offer {
	AW_OFFER_MORE, /* the beginning of an MPA Request */
	AW_OFFER_RECORD, /* a whole Request, of a record */
	AW_OFFER_ENDPOINT, /* a Request of an endpoint, or of another MPA */
	AW_OFFER_STRANGE, /* no part of a Request */
};

#define AW_OFFER_BYTES_MAX AW_STARTUP_MAX

/* Judges the first `got` bytes of a stream. MORE: *missing is how many more bytes another look needs at least. */
enum aw_offer aw_offer_judge(const void *bytes, size_t got, size_t *missing);

#endif
