// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// MPA start-up frames over a non-blocking socket.
#include "net/conn/frame.h"

#include "net/base/io_now.h"

#include <errno.h>
#include <sys/socket.h>

static enum aw_frame_io failed(void)
{
	return errno == EAGAIN || errno == EINTR ? AW_FRAME_MORE : AW_FRAME_LOST;
}

enum aw_frame_io aw_frame_recv(int fd, struct aw_frame_buf *in, struct mpa_frame *frame)
{
	for (;;) {
		size_t want;
		ssize_t n;

		switch (mpa_parse(in->octets, in->done, frame, &want)) {
		case MPA_PARSE_OK:
			return AW_FRAME_DONE;
		case MPA_PARSE_BAD_KEY:
			return AW_FRAME_BAD_KEY;
		case MPA_PARSE_BAD_LENGTH:
			return AW_FRAME_BAD_LENGTH;
		case MPA_PARSE_MORE:
			break;
		}
		n = aw_recv_now(fd, in->octets + in->done, want - in->done, 0);
		if (n == 0)
			return AW_FRAME_CLOSED;
		if (n < 0)
			return failed();
		in->done += (size_t)n;
	}
}

enum aw_frame_io aw_frame_send(int fd, struct aw_frame_buf *out)
{
	while (out->done < out->len) {
		ssize_t n = aw_send_now(fd, out->octets + out->done, out->len - out->done);

		if (n < 0)
			return failed();
		out->done += (size_t)n;
	}
	return AW_FRAME_DONE;
}
