// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Makes IP packets of a record. The stream in the file begins where the capture met it: with TCP's handshake and MPA's
// two frames, as they could have been, since the dissectors find a stream by them. Sequence numbers go on from there, and
// where FPDUs were dropped the numbers have a gap of their bytes.
#include "cli/capture.h"
#include "cli/pcapng.h"

#include "wire/fpdu.h"
#include "wire/move.h"
#include "wire/mpa.h"
#include "wire/octets.h"

#include <string.h>
#include <sys/socket.h>

enum {
	IPV4_LEN = 20,
	IPV6_LEN = 40,
	TCP_LEN = 20,
	IPV4_MAX = 65535, // RFC 791 3.1: its own header counts
	PAYLOAD_MAX = IPV4_MAX - IPV4_LEN - TCP_LEN,
	PROTOCOL_TCP = 6,
	HOP_LIMIT = 64,
	WINDOW = 65535,
};

enum tcp_flag {
	TCP_SYN = 0x02,
	TCP_PSH = 0x08,
	TCP_ACK = 0x10,
};

#define SPREAD \
	0x9e3779b1u // so that two streams of the same ports differ in their first sequence number

// One TCP segment. seq and ack are absolute.
struct segment {
	bool out;
	uint8_t flags;
	uint32_t seq, ack;
	const uint8_t *payload;
	size_t len;
	const char *comment;
};

static size_t put_ipv4(uint8_t *at, const uint8_t *source, const uint8_t *destination, size_t len)
{
	uint32_t sum = 0;

	memset(at, 0, IPV4_LEN);
	at[0] = 0x45;
	put_be16(at + 2, (uint16_t)(IPV4_LEN + len));
	at[8] = HOP_LIMIT;
	at[9] = PROTOCOL_TCP;
	memcpy(at + 12, source, 4);
	memcpy(at + 16, destination, 4);
	for (int i = 0; i < IPV4_LEN; i += 2)
		sum += get_be16(at + i);
	sum = (sum & 0xffff) + (sum >> 16);
	put_be16(at + 10, (uint16_t) ~(sum + (sum >> 16)));
	return IPV4_LEN;
}

static size_t put_ipv6(uint8_t *at, const uint8_t *source, const uint8_t *destination, size_t len)
{
	put_be32(at, 0x60000000);
	put_be16(at + 4, (uint16_t)len);
	at[6] = PROTOCOL_TCP;
	at[7] = HOP_LIMIT;
	memcpy(at + 8, source, 16);
	memcpy(at + 24, destination, 16);
	return IPV6_LEN;
}

static void write_segment(FILE *file, const struct aw_capture_record *record,
			  const struct segment *segment)
{
	static uint8_t bytes[IPV6_LEN + TCP_LEN + PAYLOAD_MAX];
	const uint8_t *source = segment->out ? record->local : record->peer;
	const uint8_t *destination = segment->out ? record->peer : record->local;
	size_t ip_len = (record->family == AF_INET ? put_ipv4 : put_ipv6)(
		bytes, source, destination, TCP_LEN + segment->len);
	uint8_t *tcp = bytes + ip_len;

	// TCP's checksum stays 0: dissectors do not look at it unless they are told to.
	memset(tcp, 0, TCP_LEN);
	put_be16(tcp, segment->out ? record->local_port : record->peer_port);
	put_be16(tcp + 2, segment->out ? record->peer_port : record->local_port);
	put_be32(tcp + 4, segment->seq);
	put_be32(tcp + 8, segment->flags & TCP_ACK ? segment->ack : 0);
	tcp[12] = TCP_LEN / 4 << 4;
	tcp[13] = segment->flags;
	put_be16(tcp + 14, WINDOW);
	if (segment->len > 0)
		memcpy(tcp + TCP_LEN, segment->payload, segment->len);

	aw_pcapng_packet(file, &(struct pcapng_packet){ .time_ns = record->time_ns,
							.inbound = !segment->out,
							.comment = segment->comment,
							.bytes = bytes,
							.len = ip_len + TCP_LEN + segment->len });
}

static uint32_t first_seq(const struct aw_capture_record *record)
{
	return record->stream * SPREAD;
}

// The sequence number of the stream's first FPDU in the file, in either direction.
static uint32_t stream_seq(const struct aw_capture_record *record)
{
	return first_seq(record) + 1 + MPA_HDR_LEN;
}

// RFC 5044 7.1.1. An end sets M when it wants markers in what the other one sends.
static void write_mpa(FILE *file, const struct aw_capture_record *record, enum mpa_kind kind)
{
	bool out = !(record->flags & AW_CAPTURE_INITIATOR) == (kind == MPA_REPLY);
	bool marked = record->flags & (out ? AW_CAPTURE_MARKED_IN : AW_CAPTURE_MARKED_OUT);
	struct mpa_frame frame = { .kind = kind, .revision = 1 };
	uint8_t bytes[MPA_FRAME_MAX];
	uint32_t seq = first_seq(record) + 1;

	frame.flags = (uint8_t)((marked ? MPA_FLAG_MARKERS : 0) |
				(record->flags & AW_CAPTURE_CRC ? MPA_FLAG_CRC : 0));
	write_segment(file, record,
		      &(struct segment){ .out = out,
					 .flags = TCP_PSH | TCP_ACK,
					 .seq = seq,
					 .ack = kind == MPA_REPLY ? seq + MPA_HDR_LEN : seq,
					 .payload = bytes,
					 .len = mpa_build(&frame, bytes) });
}

static void write_begin(FILE *file, const struct aw_capture_record *record)
{
	bool initiates = record->flags & AW_CAPTURE_INITIATOR;
	struct segment segment = { .out = initiates, .flags = TCP_SYN, .seq = first_seq(record) };
	char comment[PCAPNG_TEXT_MAX];

	snprintf(comment, sizeof(comment),
		 "qp 0x%x: handshake and MPA start-up made up by anywarp capture", record->qpn);
	segment.comment = comment;
	write_segment(file, record, &segment);
	segment = (struct segment){ .out = !initiates,
				    .flags = TCP_SYN | TCP_ACK,
				    .seq = first_seq(record),
				    .ack = first_seq(record) + 1 };
	write_segment(file, record, &segment);
	segment = (struct segment){ .out = initiates,
				    .flags = TCP_ACK,
				    .seq = first_seq(record) + 1,
				    .ack = first_seq(record) + 1 };
	write_segment(file, record, &segment);
	write_mpa(file, record, MPA_REQUEST);
	write_mpa(file, record, MPA_REPLY);
}

// One FPDU, at this offset of the record's, in as many segments as it needs.
static void write_fpdu(FILE *file, const struct aw_capture_record *record, size_t at, size_t len)
{
	const uint8_t *bytes = (const uint8_t *)(record + 1) + at;
	const char *comment = NULL;

	// A dissector calls an FPDU malformed that moves its stream. Such a stream has no markers.
	if (len > FPDU_LEN_FIELD) {
		size_t ulpdu_len = get_be16(bytes);
		struct move_msg msg;

		if (len >= fpdu_size(ulpdu_len) &&
		    move_get(bytes + FPDU_LEN_FIELD, ulpdu_len, &msg))
			comment =
				"no DDP segment: it moves the stream into memory that its two ends share";
	}
	for (size_t done = 0, n; done < len; done += n) {
		n = len - done < PAYLOAD_MAX ? len - done : PAYLOAD_MAX;
		write_segment(file, record,
			      &(struct segment){ .out = record->flags & AW_CAPTURE_OUT,
						 .flags = done + n == len ? TCP_PSH | TCP_ACK
									  : TCP_ACK,
						 .seq = stream_seq(record) + record->seq +
							(uint32_t)(at + done),
						 .ack = stream_seq(record) + record->ack,
						 .comment = comment,
						 .payload = bytes + done,
						 .len = n });
	}
}

void aw_capture_write(FILE *file, const struct aw_capture_record *record,
		      struct capture_counts *counts)
{
	bool out = record->flags & AW_CAPTURE_OUT;
	int marked = record->flags & (out ? AW_CAPTURE_MARKED_OUT : AW_CAPTURE_MARKED_IN);
	const uint8_t *bytes = (const uint8_t *)(record + 1);

	if (record->flags & AW_CAPTURE_FIRST) {
		write_begin(file, record);
		counts->streams++;
	}
	for (size_t at = 0, n; at < record->bytes; at += n) {
		n = fpdu_wire_size(bytes + at, record->bytes - at, record->pos + (uint32_t)at,
				   marked);
		if (n == 0 || n > record->bytes - at)
			n = record->bytes - at;
		write_fpdu(file, record, at, n);
		counts->fpdus++;
	}
}
