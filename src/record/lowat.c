// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The kernel counts an FPDU's header and trailer, the program does not.
#include "record/lowat.h"

#include "record/urgent.h"

/*
 * The bytes of the next FPDU that are in the socket or still to come, and the payload that the program
 * gets with the last of them.
 */
struct due {
	size_t bytes, payload;
};

size_t aw_lowat_bytes(const struct aw_record_key *key, size_t payload)
{
	size_t most = aw_frame_payload_max(key), whole = payload / most, rest = payload % most;

	return whole * aw_frame_len(key, most) + (rest ? aw_frame_len(key, rest) : 0);
}

void aw_lowat_set(struct aw_record_rx *rx, int fd, size_t bytes)
{
	int value = (int)bytes;

	if (rx->lowat == bytes || (bytes == 1 && rx->lowat == 0))
		return;
	rx->lowat = (uint32_t)bytes;
	aw_record_calls.setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &value, sizeof(value));
}

/*
 * The bytes after which pollers are told of so much payload. A single byte tells of an FPDU that has
 * not begun: to set SO_RCVLOWAT for each FPDU would cost a call.
 */
static size_t bytes_for(const struct aw_record_key *key, struct due due, size_t wanted)
{
	if (due.payload >= wanted)
		return due.bytes;
	if (due.bytes == 0 && wanted == 1)
		return 1;
	return due.bytes + aw_lowat_bytes(key, wanted - due.payload);
}

void aw_lowat_await(struct aw_record_rx *rx, int fd)
{
	struct due due = { 0 }, none = { 0 };
	struct aw_frame frame;
	size_t bytes;

	if (rx->reply_due) {
		aw_lowat_set(rx, fd, rx->due - 1 + bytes_for(&rx->key, none, rx->wanted));
		return;
	}
	if (rx->have >= aw_frame_field(&rx->key) && aw_frame_read(&rx->key, rx->bytes, &frame)) {
		/* An alert ends the stream, which is for the program. */
		due.payload = frame.kind == AW_FRAME_ALERT ? rx->wanted : frame.payload;
		due.bytes = rx->have < frame.len ? frame.len - rx->have : 1;
		/* At the mark an urgent byte that the program does not have in line is no payload. */
		if (rx->held)
			due.payload -= rx->given;
		else if (rx->mark == AW_MARK_FRONT && !rx->in_line)
			due.payload = 0;
	}
	rx->due = due.bytes ? (uint32_t)due.bytes : 1;
	bytes = bytes_for(&rx->key, due, rx->wanted);
	/* Of an FPDU whose length is not known yet some bytes may have left the socket. */
	if (rx->have < aw_frame_field(&rx->key) && bytes > rx->have)
		bytes -= rx->have;
	aw_lowat_set(rx, fd, bytes);
}

void aw_record_set_wanted(struct aw_record *record, int fd, uint32_t wanted)
{
	record->rx.wanted = wanted;
	aw_lowat_await(&record->rx, fd);
}
