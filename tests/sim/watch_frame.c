// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Framing as RFC 5044 4 has it: markers every 512 octets, length, pad, CRC, and the EMSS.
#include "watch.h"
#include "world.h"

#include <string.h>

uint32_t watch_crc32c(const uint8_t *p, size_t len)
{
	static uint32_t table[256];
	uint32_t crc = 0xffffffff;

	if (!table[1]) {
		for (uint32_t i = 0; i < 256; i++) {
			table[i] = i;
			for (int bit = 0; bit < 8; bit++)
				table[i] = table[i] >> 1 ^ (table[i] & 1 ? 0x82f63b78 : 0);
		}
	}
	while (len--)
		crc = crc >> 8 ^ table[(crc ^ *p++) & 0xff];
	return ~crc;
}

/* Takes the markers out into watch.plain; returns the octets left. */
static size_t strip(struct end *end, const uint8_t *fpdu, size_t len)
{
	struct watch *watch = &end->watch;
	size_t length_at = watch->pos % 512 == 0 ? 4 : 0;
	size_t out = 0;

	for (size_t in = 0; in < len; in++) {
		size_t back = in > length_at ? in - length_at : 0;

		if ((watch->pos + in) % 512 != 0) {
			watch->plain[out++] = fpdu[in];
			continue;
		}
		if (len - in < 4 || fpdu[in] || fpdu[in + 1] ||
		    (size_t)(fpdu[in + 2] << 8 | fpdu[in + 3]) != back)
			world_fail(end->world, "%c: marker at %zu of an FPDU of %zu is wrong",
				   end->name, in, len);
		in += 3;
	}
	return out;
}

static void check_crc(struct end *end, const uint8_t *fpdu, size_t len)
{
	const uint8_t *p = fpdu + len - 4;
	uint32_t crc = (uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[1] << 8 | p[0];

	if (end->qp.stream.crc && crc != watch_crc32c(fpdu, len - 4))
		world_fail(end->world, "%c: an FPDU's CRC is wrong", end->name);
}

/*
 * Where a maximum is smaller than MPA allows (RFC 5044 4.5: MULPDU at least 128) it is void. Large FPDUs go only to a peer that
 * takes them, and never with markers.
 */
static void check_size(struct end *end, size_t len)
{
	const struct aw_stream *stream = &end->qp.stream;

	if (stream->large_fpdus && end->local.large_fpdus != AW_LARGE_ANY &&
	    !end->peer->local.large_fpdus)
		world_fail(end->world, "%c: large FPDUs for a peer that takes none", end->name);
	if (stream->large_fpdus && !stream->markers_tx)
		return;
	if (end->qp.stream.emss >= 256 && len > end->qp.stream.emss)
		world_fail(end->world, "%c: an FPDU of %zu octets exceeds the EMSS of %u",
			   end->name, len, end->qp.stream.emss);
}

size_t watch_frame(struct end *end, const uint8_t *fpdu, size_t len)
{
	struct watch *watch = &end->watch;
	size_t plain, ulpdu;

	if (len < 8 || len > WATCH_FPDU_MAX) {
		world_fail(end->world, "%c: an FPDU of %zu octets", end->name, len);
		return SIZE_MAX;
	}
	if (end->qp.stream.markers_tx) {
		plain = strip(end, fpdu, len);
	} else {
		memcpy(watch->plain, fpdu, len);
		plain = len;
	}
	ulpdu = (size_t)(watch->plain[0] << 8 | watch->plain[1]);
	if (plain != (2 + ulpdu + 3) / 4 * 4 + 4) {
		world_fail(end->world, "%c: an FPDU of %zu octets has a ULPDU of %zu", end->name,
			   plain, ulpdu);
		return SIZE_MAX;
	}
	for (size_t i = 2 + ulpdu; i < plain - 4; i++)
		if (watch->plain[i])
			world_fail(end->world, "%c: pad is not zero", end->name);
	check_crc(end, fpdu, len);
	check_size(end, len);
	watch->pos += len;
	if (watch->fpdus++ == 0)
		watch->first_end = watch->pos;
	return ulpdu;
}
