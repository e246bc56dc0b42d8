// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Four lanes of multiply and rotate, so that the multiplications of a processor overlap.
#include "check/model/sum.h"

#include <string.h>

#define LANES 4
#define ODD UINT64_C(0x9e3779b97f4a7c15) /* 2^64 by the golden ratio */

static uint64_t lane_fold(uint64_t lane, uint64_t word)
{
	lane = (lane ^ word) * ODD;
	return lane ^ lane >> 29;
}

uint64_t aw_sum(uint64_t seed, const void *bytes, size_t len)
{
	const unsigned char *at = bytes;
	uint64_t lanes[LANES] = { seed, seed + ODD, seed ^ ODD, ~seed }, word[LANES], sum;

	for (; len >= sizeof(word); at += sizeof(word), len -= sizeof(word)) {
		memcpy(word, at, sizeof(word));
		for (int i = 0; i < LANES; i++)
			lanes[i] = lane_fold(lanes[i], word[i]);
	}
	memset(word, 0, sizeof(word));
	memcpy(word, at, len);
	sum = len;
	for (int i = 0; i < LANES; i++)
		sum = lane_fold(sum, lane_fold(lanes[i], word[i]));
	return sum;
}
