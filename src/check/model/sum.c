// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Fletcher's sum in lanes of 64 bits: a lane's first sum tells a changed word, its second one words that changed places. The
// compiler makes vector additions of it, at the speed of memory.
#include "check/model/sum.h"

#include <string.h>

#define LANES 8
#define ODD UINT64_C(0x9e3779b97f4a7c15) /* 2^64 by the golden ratio */

static uint64_t fold(uint64_t sum, uint64_t word)
{
	sum = (sum ^ word) * ODD;
	return sum ^ sum >> 29;
}

uint64_t aw_sum(uint64_t seed, const void *bytes, size_t len)
{
	const unsigned char *at = bytes;
	uint64_t first[LANES] = { 0 }, second[LANES] = { 0 }, word[LANES], sum = fold(seed, len);

	for (; len >= sizeof(word); at += sizeof(word), len -= sizeof(word)) {
		memcpy(word, at, sizeof(word));
		for (int i = 0; i < LANES; i++) {
			first[i] += word[i];
			second[i] += first[i];
		}
	}
	memset(word, 0, sizeof(word));
	memcpy(word, at, len);
	for (int i = 0; i < LANES; i++)
		sum = fold(fold(fold(sum, first[i]), second[i]), word[i]);
	return sum;
}
