// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The blocks of pcapng (draft-ietf-opsawg-pcapng), in the byte order of this machine, which the file tells.
#include "cli/pcapng.h"

#include <string.h>

enum block {
	SECTION = 0x0a0d0d0a,
	INTERFACE = 1,
	STATISTICS = 5,
	PACKET = 6,
};

enum option {
	OPTION_END = 0,
	OPTION_COMMENT = 1,
	SECTION_PROGRAM = 4,
	INTERFACE_NAME = 2,
	INTERFACE_RESOLUTION = 9,
	PACKET_FLAGS = 2,
	STATISTICS_RECEIVED = 4,
	STATISTICS_DROPPED = 5,
};

#define BYTE_ORDER_MAGIC 0x1a2b3c4du
#define LENGTH_UNKNOWN UINT64_MAX
#define LINK_TYPE_RAW_IP 101
#define NANOSECONDS 9 // of INTERFACE_RESOLUTION: units of 10^-9 s
#define INBOUND 1u
#define OUTBOUND 2u

// The part of a block between its length and its length again: fields, data, options.
struct body {
	uint8_t fields[32];
	size_t field_len;
	const uint8_t *data;
	size_t data_len;
	uint8_t options[64 + PCAPNG_TEXT_MAX];
	size_t option_len;
};

static size_t padded(size_t len)
{
	return (len + 3) & ~(size_t)3;
}

static void put_field(struct body *body, const void *value, size_t len)
{
	memcpy(body->fields + body->field_len, value, len);
	body->field_len += len;
}

static void put_field32(struct body *body, uint32_t value)
{
	put_field(body, &value, sizeof(value));
}

static void put_option(struct body *body, enum option option, const void *value, size_t len)
{
	uint8_t *at = body->options + body->option_len;
	uint16_t code = (uint16_t)option, bytes = (uint16_t)len;

	memcpy(at, &code, sizeof(code));
	memcpy(at + 2, &bytes, sizeof(bytes));
	if (len > 0)
		memcpy(at + 4, value, len);
	body->option_len += 4 + padded(len);
}

static void put_text(struct body *body, enum option option, const char *text)
{
	put_option(body, option, text, strnlen(text, PCAPNG_TEXT_MAX));
}

static void write_block(FILE *file, enum block block, struct body *body)
{
	static const uint8_t zeros[4];
	size_t data_len = padded(body->data_len);
	uint32_t head[2] = { (uint32_t)block };

	put_option(body, OPTION_END, NULL, 0);
	head[1] = (uint32_t)(12 + body->field_len + data_len + body->option_len);
	fwrite(head, sizeof(head), 1, file);
	fwrite(body->fields, 1, body->field_len, file);
	if (body->data_len > 0)
		fwrite(body->data, 1, body->data_len, file);
	fwrite(zeros, 1, data_len - body->data_len, file);
	fwrite(body->options, 1, body->option_len, file);
	fwrite(&head[1], sizeof(head[1]), 1, file);
}

static void put_time(struct body *body, uint64_t time_ns)
{
	put_field32(body, (uint32_t)(time_ns >> 32));
	put_field32(body, (uint32_t)time_ns);
}

void aw_pcapng_begin(FILE *file, const char *interface)
{
	static const uint16_t version[2] = { 1, 0 }, link_type[2] = { LINK_TYPE_RAW_IP, 0 };
	static const uint8_t resolution = NANOSECONDS;
	static const uint64_t length = LENGTH_UNKNOWN;
	struct body section = { 0 }, description = { 0 };

	put_field32(&section, BYTE_ORDER_MAGIC);
	put_field(&section, version, sizeof(version));
	put_field(&section, &length, sizeof(length));
	put_text(&section, SECTION_PROGRAM, "anywarp " AW_VERSION);
	write_block(file, SECTION, &section);
	put_field(&description, link_type, sizeof(link_type));
	put_field32(&description, 0); // no packet is cut
	put_text(&description, INTERFACE_NAME, interface);
	put_option(&description, INTERFACE_RESOLUTION, &resolution, sizeof(resolution));
	write_block(file, INTERFACE, &description);
}

void aw_pcapng_packet(FILE *file, const struct pcapng_packet *packet)
{
	struct body body = { .data = packet->bytes, .data_len = packet->len };
	uint32_t flags = packet->inbound ? INBOUND : OUTBOUND;

	put_field32(&body, 0); // the interface
	put_time(&body, packet->time_ns);
	put_field32(&body, (uint32_t)packet->len);
	put_field32(&body, (uint32_t)packet->len);
	put_option(&body, PACKET_FLAGS, &flags, sizeof(flags));
	if (packet->comment)
		put_text(&body, OPTION_COMMENT, packet->comment);
	write_block(file, PACKET, &body);
}

void aw_pcapng_end(FILE *file, uint64_t time_ns, uint64_t received, uint64_t dropped)
{
	struct body body = { 0 };

	put_field32(&body, 0); // the interface
	put_time(&body, time_ns);
	put_option(&body, STATISTICS_RECEIVED, &received, sizeof(received));
	put_option(&body, STATISTICS_DROPPED, &dropped, sizeof(dropped));
	write_block(file, STATISTICS, &body);
}
