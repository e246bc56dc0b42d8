// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A processor's crc32 instruction has a result after three cycles and takes another word in each, so three chains run beside each other.
// The file that includes this one has, beyond what crc/walk.h needs, multiply: the carry-less product of two words of 32 bits.
#ifndef CRC_LANES_H
#define CRC_LANES_H

#include "crc/powers.h"
#include "crc/walk.h"

/* Octets of a lane: many, since to join three costs as much as 40 octets; and few, for an FPDU of one Ethernet frame. */
#define LANE_LONG 1024u
#define LANE_SHORT 128u

/* Folds three lanes of len octets. once and twice move a register one and two lanes on. */
AW_CRC_INLINE uint32_t fold_lanes(uint32_t crc, struct crc_walk *walk, size_t len, uint32_t once,
				  uint32_t twice)
{
	uint64_t first = crc, second = 0, third = 0;

#pragma GCC unroll 4
	for (size_t at = 0; at < len; at += 8) {
		first = fold_word(first, take_word(walk, at));
		second = fold_word(second, take_word(walk, len + at));
		third = fold_word(third, take_word(walk, 2 * len + at));
	}
	walk_on(walk, 3 * len);
	third ^= fold_word(0, multiply((uint32_t)first, twice) ^ multiply((uint32_t)second, once));
	return (uint32_t)third;
}

AW_CRC_INLINE uint32_t fold_all(uint32_t crc, struct crc_walk *walk)
{
	while (walk->left >= 3 * LANE_LONG)
		crc = fold_lanes(crc, walk, LANE_LONG, AW_CRC_SECOND_1024, AW_CRC_SECOND_2048);
	while (walk->left >= 3 * LANE_SHORT)
		crc = fold_lanes(crc, walk, LANE_SHORT, AW_CRC_SECOND_128, AW_CRC_SECOND_256);
	return fold_next(crc, walk, walk->left);
}

#endif
