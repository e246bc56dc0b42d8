// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// MPA start-up frames over a socket of the kernel, never waiting.
#include "kmod/cm/frame.h"

#include <linux/socket.h>
#include <linux/uio.h>

int awk_frame_recv(struct socket *sock, struct awk_frame_buf *in, struct mpa_frame *frame)
{
	size_t want;
	int n;

	for (;;) {
		struct msghdr msg = { 0 };
		struct kvec iov;

		switch (mpa_parse(in->octets, in->done, frame, &want)) {
		case MPA_PARSE_OK:
			return 0;
		case MPA_PARSE_BAD_KEY:
		case MPA_PARSE_BAD_LENGTH:
			return -EPROTO;
		case MPA_PARSE_MORE:
			break;
		}
		iov = (struct kvec){ in->octets + in->done, want - in->done };
		n = kernel_recvmsg(sock, &msg, &iov, 1, iov.iov_len, MSG_DONTWAIT);
		if (n <= 0)
			return n ? n : -ECONNRESET;
		in->done += n;
	}
}

int awk_frame_send(struct socket *sock, struct awk_frame_buf *out)
{
	while (out->done < out->len) {
		struct kvec iov = { out->octets + out->done, out->len - out->done };
		struct msghdr msg = { .msg_flags = MSG_DONTWAIT | MSG_NOSIGNAL };
		int n = kernel_sendmsg(sock, &msg, &iov, 1, iov.iov_len);

		if (n < 0)
			return n;
		out->done += n;
	}
	return 0;
}
