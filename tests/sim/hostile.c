// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The hostile peer: an honest end's FPDUs with fields changed and the CRC made right again, and
// FPDUs made up from what such a peer knows: STags, bounds, outstanding Reads.
#include "world.h"

#include "wire/octets.h"

#include <string.h>

enum {
	PLAIN = 2,
	INVENTED_MAX = 400
};

size_t hostile_seal(struct end *end, uint8_t *fpdu, size_t ulpdu)
{
	size_t len = (PLAIN + ulpdu + 3) / 4 * 4;

	memset(fpdu + PLAIN + ulpdu, 0, len - PLAIN - ulpdu);
	put_be16(fpdu, (uint16_t)ulpdu);
	put_le32(fpdu + len, end->qp.stream.crc ? watch_crc32c(fpdu, len) : 0);
	return len + 4;
}

/* An STag that means something at the victim, mostly. */
static uint32_t some_stag(struct end *end, uint64_t *to, uint32_t len)
{
	struct host *host = end->peer->host;
	struct rng *rng = &end->world->rng;
	const struct region *region = &host->region[rng_below(rng, host->region_count)];

	switch (rng_below(rng, 8)) {
	case 0:
		*to = region->mr.iova + region->mr.len - len + 1;
		break;
	case 1:
		*to = region->mr.iova - 1;
		break;
	case 2:
		*to = UINT64_MAX - rng_below(rng, 8);
		break;
	case 3:
		*to = rng_next(rng);
		break;
	case 4:
		*to = region->mr.iova + region->mr.len;
		break;
	default:
		*to = region->mr.iova + rng_below(rng, region->mr.len);
		break;
	}
	return rng_percent(rng, 90) ? region->mr.stag : (uint32_t)rng_next(rng);
}

static size_t put_tagged(struct end *end, uint8_t *p, uint8_t opcode, size_t payload)
{
	struct rng *rng = &end->world->rng;
	const struct watch *victim = &end->peer->watch;
	const struct watch_read *read = &victim->read[victim->read_head % WATCH_READS];
	uint64_t to;

	p[0] = rng_percent(rng, 60) ? 0xc1 : 0x81;
	p[1] = 0x40 | opcode;
	put_be32(p + 2, some_stag(end, &to, (uint32_t)payload));
	/* What a victim waits for: right, shifted, too long, after the end. */
	if (opcode == 2 && victim->read_head != victim->read_tail) {
		put_be32(p + 2, read->sink_stag);
		to = read->sink_to + rng_below(rng, 4) * rng_below(rng, (uint64_t)read->size + 2);
	}
	put_be64(p + 6, to);
	rng_fill(rng, p + 14, payload);
	return 14 + payload;
}

/* RFC 7306: what is due, or next to it; its octets. */
static size_t put_extension(struct end *end, uint8_t *p, uint8_t opcode)
{
	struct rng *rng = &end->world->rng;
	const struct watch *victim = &end->peer->watch;
	uint64_t to;

	if (opcode == 10) {
		put_be32(p, rng_percent(rng, 90) ? 2 * (uint32_t)rng_below(rng, 2)
						 : (uint32_t)rng_below(rng, 16));
		put_be32(p + 8, some_stag(end, &to, 8));
		put_be64(p + 12, rng_percent(rng, 70) ? to & ~7ull : to);
		rng_fill(rng, p + 20, 32);
		return 52;
	}
	if (opcode == 11) {
		put_be32(p, victim->read[victim->read_head % WATCH_READS].sink_stag +
				    (uint32_t)rng_below(rng, 2));
		rng_fill(rng, p + 4, 8);
		return 12;
	}
	put_be32(p + 4, rng_percent(rng, 40) ? UINT32_MAX : (uint32_t)rng_below(rng, 3000));
	return 8;
}

static size_t put_untagged(struct end *end, uint8_t *p, uint8_t opcode, size_t payload)
{
	struct rng *rng = &end->world->rng;
	static const uint8_t qn_of[16] = { [1] = 1, [7] = 2, [10] = 1, [11] = 3 };
	uint32_t qn = rng_percent(rng, 95) ? qn_of[opcode] : (uint32_t)rng_below(rng, 6);
	uint32_t msn = end->watch.msn[qn & 3] + (uint32_t)rng_below(rng, 3);
	uint64_t to;

	p[0] = rng_percent(rng, 60) ? 0x41 : 0x01;
	p[1] = 0x40 | opcode;
	put_be32(p + 2, some_stag(end, &to, 0));
	put_be32(p + 6, qn);
	put_be32(p + 10, msn);
	put_be32(p + 14, rng_percent(rng, 60) ? 0 : (uint32_t)rng_below(rng, 5000));
	rng_fill(rng, p + 18, payload);
	if (opcode == 1 && rng_percent(rng, 90)) {
		payload = 28;
		put_be32(p + 18 + 12, (uint32_t)rng_below(rng, 9000));
		put_be32(p + 18 + 16, some_stag(end, &to, 64));
		put_be64(p + 18 + 20, to);
	}
	if (end->world->plan.extended && opcode >= 8 && rng_percent(rng, 90))
		payload = put_extension(end, p + 18, opcode);
	return 18 + payload;
}

static size_t invent(struct end *end, uint8_t *fpdu)
{
	struct rng *rng = &end->world->rng;
	size_t payload = rng_below(rng, rng_percent(rng, 50) ? 4 : INVENTED_MAX);
	uint8_t opcode = (uint8_t)rng_below(
		rng, rng_percent(rng, 80) && !end->world->plan.extended ? 8 : 16);
	bool tagged = opcode == 0 || opcode == 2;

	if (rng_percent(rng, 10)) {
		rng_fill(rng, fpdu + PLAIN, payload);
		return hostile_seal(end, fpdu, payload);
	}
	if (rng_percent(rng, 3))
		tagged = !tagged;
	if (tagged)
		return hostile_seal(end, fpdu, put_tagged(end, fpdu + PLAIN, opcode, payload));
	return hostile_seal(end, fpdu, put_untagged(end, fpdu + PLAIN, opcode, payload));
}

/* It is ready, or not, whatever it has said before. */
static size_t say_ready(struct end *end, uint8_t *fpdu)
{
	fpdu[PLAIN] = 0;
	fpdu[PLAIN + 1] = (uint8_t)rng_range(&end->world->rng, 0x10, 0x11);
	return hostile_seal(end, fpdu, 2);
}

/* The same Read Request again and again, with the MSNs that are due: more than any IRD. */
static size_t flood(struct end *end, uint8_t *fpdu)
{
	uint32_t msn = end->watch.msn[1] + 1;
	uint32_t count = (uint32_t)rng_range(&end->world->rng, 2, 2 * RD_MAX_SIM + 2);
	size_t len = 0;

	for (uint32_t i = 0; i < count; i++) {
		uint8_t *p = fpdu + len;
		size_t ulpdu = put_untagged(end, p + PLAIN, 1, 28);

		p[PLAIN] = 0x41;
		put_be32(p + PLAIN + 6, 1);
		put_be32(p + PLAIN + 10, msn + i);
		put_be32(p + PLAIN + 14, 0);
		put_be32(p + PLAIN + 18 + 12, 0);
		len += hostile_seal(end, p, ulpdu);
	}
	return len;
}

static void change_field(struct end *end, uint8_t *fpdu, size_t ulpdu)
{
	struct rng *rng = &end->world->rng;
	size_t header = fpdu[PLAIN] & 0x80 ? 14 : 18;
	uint64_t to;

	if (rng_percent(rng, 30) && ulpdu >= 14 && header == 14) {
		put_be32(fpdu + PLAIN + 2, some_stag(end, &to, (uint32_t)(ulpdu - 14)));
		put_be64(fpdu + PLAIN + 6, to);
	} else if (rng_percent(rng, 60)) {
		fpdu[PLAIN + rng_below(rng, ulpdu < header ? ulpdu : header)] ^=
			(uint8_t)(1u << rng_below(rng, 8));
	} else if (rng_percent(rng, 40)) {
		fpdu[PLAIN] ^= 0x40;
	} else {
		fpdu[PLAIN + rng_below(rng, ulpdu)] = (uint8_t)rng_next(rng);
	}
}

size_t hostile_mutate(struct end *end, uint8_t *fpdu, size_t len)
{
	struct rng *rng = &end->world->rng;
	size_t ulpdu = get_be16(fpdu);

	if (end->conn->surgery)
		return surgery_apply(end, fpdu, len);
	if (rng_percent(rng, 100 - end->conn->hostility))
		return len;
	end->conn->torn = true;
	/* With markers on, any change is a wrong FPDU soon after. */
	if (end->qp.stream.markers_tx) {
		fpdu[rng_below(rng, len)] ^= (uint8_t)(1u << rng_below(rng, 8));
		if (rng_percent(rng, 80))
			put_le32(fpdu + len - 4, watch_crc32c(fpdu, len - 4));
		return len;
	}
	if (end->world->plan.hold_percent && end->world->generation > 3 && rng_percent(rng, 10)) {
		TRACE(end, "says that it is ready, or not, instead of %llu octets", len);
		return say_ready(end, fpdu);
	}
	if (rng_percent(rng, 45)) {
		TRACE(end, "makes up an FPDU instead of one of %llu", len);
		return invent(end, fpdu);
	}
	if (rng_percent(rng, 10)) {
		TRACE(end, "floods with Read Requests instead of %llu octets", len);
		return flood(end, fpdu);
	}
	TRACE(end, "changes an FPDU of %llu", len);
	if (rng_percent(rng, 5))
		return 0;
	if (rng_percent(rng, 10)) {
		fpdu[rng_below(rng, len)] ^= 1;
		return len;
	}
	if (rng_percent(rng, 10))
		return hostile_seal(end, fpdu, rng_below(rng, ulpdu + 1));
	change_field(end, fpdu, ulpdu);
	return hostile_seal(end, fpdu, ulpdu);
}
