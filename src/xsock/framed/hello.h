// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The private data of a record's Request and Reply.
#ifndef XSOCK_FRAMED_HELLO_H
#define XSOCK_FRAMED_HELLO_H

#include "xsock/stream/msg.h"

/* sealed: within TLS. */
static inline void aw_hello_fill(uint8_t bytes[AW_XS_HELLO_LEN], bool sealed)
{
	const struct aw_xs_hello hello = {
		.net = aw_xs_host_is_net(),
		.anywarp = true,
		.ext = AW_XS_EXT_RECORD | (sealed ? AW_XS_EXT_RECORD_TLS : 0),
	};

	aw_xs_hello_put(bytes, &hello);
}

#endif
