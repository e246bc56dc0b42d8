// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// MPA start-up frames over a non-blocking socket.
#include "net/conn/frame.h"

#include <errno.h>

static enum aw_frame_io failed(const struct aw_tls *tls)
{
	if (errno == EAGAIN || errno == EINTR)
		return AW_FRAME_MORE;
	return tls && *aw_tls_cause(tls) ? AW_FRAME_INSECURE : AW_FRAME_LOST;
}

enum aw_frame_io aw_frame_recv(int fd, struct aw_tls *tls, struct aw_frame_buf *in,
			       struct mpa_frame *frame)
{
	if (tls)
		aw_tls_begin_turn(tls);
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
		n = aw_tls_or_plain_recv(fd, tls, in->octets + in->done, want - in->done);
		if (n == 0)
			return AW_FRAME_CLOSED;
		if (n < 0)
			return failed(tls);
		in->done += (size_t)n;
	}
}

enum aw_frame_io aw_frame_send(int fd, struct aw_tls *tls, struct aw_frame_buf *out)
{
	while (out->done < out->len) {
		ssize_t n = aw_tls_or_plain_send(fd, tls, out->octets + out->done,
						 out->len - out->done);

		if (n < 0)
			return failed(tls);
		out->done += (size_t)n;
	}
	return AW_FRAME_DONE;
}

const uint8_t *aw_frame_pd(const struct aw_frame_buf *out, size_t *len)
{
	struct mpa_frame frame = { 0 };
	size_t used, front;

	mpa_parse(out->octets, out->len, &frame, &used);
	front = frame.flags & MPA_FLAG_ENHANCED ? MPA_ENH_LEN : 0;
	*len = frame.pd_len - front;
	return frame.pd + front;
}
