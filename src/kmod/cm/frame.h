// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// One MPA start-up frame on its way through a socket, in any number of pieces. Reading never goes past
// the frame's end: the bytes behind it belong to the QP.
#ifndef KMOD_CM_FRAME_H
#define KMOD_CM_FRAME_H

#include "wire/mpa.h"

#include <linux/net.h>

struct awk_frame_buf {
	size_t done; /* bytes received, or sent */
	size_t len; /* bytes to send */
	u8 octets[MPA_FRAME_MAX];
};

/*
 * 0: the frame is whole; a received one borrows from in. -EAGAIN: the socket has no more now, or
 * takes no more. -ECONNRESET: FIN before the frame's end. -EPROTO: not MPA, or RFC 5044 7.1.1:
 * private data over 512 octets. Otherwise the socket's error.
 */
int awk_frame_recv(struct socket *sock, struct awk_frame_buf *in, struct mpa_frame *frame);
int awk_frame_send(struct socket *sock, struct awk_frame_buf *out);

#endif
