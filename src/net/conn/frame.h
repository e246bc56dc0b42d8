// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// One MPA start-up frame on its way through a non-blocking socket, in any number of pieces.
// Reading never goes past the frame's end: the bytes behind it belong to the QP.
#ifndef NET_FRAME_H
#define NET_FRAME_H

#include "net/tls/tls.h"
#include "wire/mpa.h"

#include <stddef.h>

struct aw_frame_buf {
	size_t done; /* bytes received, or sent */
	size_t len; /* bytes to send */
	uint8_t octets[MPA_FRAME_MAX];
};

enum aw_frame_io {
	AW_FRAME_DONE,
	AW_FRAME_MORE, /* the socket has no more bytes now, or takes no more */
	AW_FRAME_CLOSED, /* FIN before the frame's end */
	AW_FRAME_LOST, /* the socket failed: errno */
	AW_FRAME_INSECURE, /* the TLS session is over (aw_tls_cause): errno */
	AW_FRAME_BAD_KEY, /* not MPA */
	AW_FRAME_BAD_LENGTH, /* RFC 5044 7.1.1: private data over 512 octets */
};

/* tls: the socket's session, or NULL. frame is written on DONE and borrows from in. */
enum aw_frame_io aw_frame_recv(int fd, struct aw_tls *tls, struct aw_frame_buf *in,
			       struct mpa_frame *frame);
enum aw_frame_io aw_frame_send(int fd, struct aw_tls *tls, struct aw_frame_buf *out);

/* The ULP's private data in a frame to send; borrowed. */
const uint8_t *aw_frame_pd(const struct aw_frame_buf *out, size_t *len);

#endif
