// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A message as vectors. The file that includes this one has the registers: VECTOR, their octets; vector, their type;
// vector_of, one that begins with a CRC register; take, fold_groups, fold_vector; and add_next, which moves a vector on by
// its own octets and adds it to the next one.
#ifndef CRC_VECTORS_H
#define CRC_VECTORS_H

#include "crc/walk.h"

#define SHORT_MAX 127u /* up to here one word after another is as fast */
#define GROUPS_MIN 512u
/* From here on it pays that no store is in two cache lines, behind a beginning that aligns dst. */
#define ALIGN_MIN 4096u

AW_CRC_INLINE uint32_t fold_all(uint32_t crc, struct crc_walk *walk)
{
	vector v;

	if (walk->left <= SHORT_MAX)
		return fold_next(crc, walk, walk->left);
	if (walk->copies && walk->left >= ALIGN_MIN)
		crc = fold_next(crc, walk, -(uintptr_t)walk->dst % VECTOR);
	v = take(walk, 0) ^ vector_of(crc);
	if (walk->left >= GROUPS_MIN)
		v = fold_groups(v, walk);
	else
		walk_on(walk, VECTOR);
	for (; walk->left >= VECTOR; walk_on(walk, VECTOR))
		v = add_next(v, take(walk, 0));
	return fold_next(fold_vector(v), walk, walk->left);
}

#endif
