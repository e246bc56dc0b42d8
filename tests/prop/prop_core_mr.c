// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The MR check agrees with arithmetic that cannot overflow, at every edge of 64 bits.
#include "prop/prop.h"

#include "core/mr.h"

static uint64_t draw_edge(struct bytes *b)
{
	static const uint64_t edges[] = { 0, 1, 4096, UINT32_MAX, UINT64_MAX >> 1, UINT64_MAX };
	uint8_t kind = bytes_u8(b);

	if (kind < 60)
		return bytes_u64(b);
	return edges[kind % 6] + bytes_u8(b) % 9 - 4;
}

/* A sum of two numbers of 64 bits: 65 bits. Not every machine has a type of 128. */
struct sum {
	bool carry;
	uint64_t low;
};

static struct sum sum_of(uint64_t a, uint64_t b)
{
	return (struct sum){ .carry = a + b < a, .low = a + b };
}

static bool is_at_most(struct sum a, struct sum b)
{
	return a.carry == b.carry ? a.low <= b.low : b.carry;
}

static enum aw_error expected(const struct aw_mr *mr, const void *const owner[2], uint32_t access,
			      const uint64_t range[2])
{
	struct sum end = sum_of(range[0], range[1]), limit = sum_of(mr->iova, mr->len);

	if (mr->pd != owner[0] || (mr->qp && mr->qp != owner[1]))
		return AW_E_RDMAP_NOT_ASSOCIATED;
	if ((mr->access & access) != access || (mr->window && access < AW_ACCESS_REMOTE_WRITE))
		return AW_E_RDMAP_ACCESS;
	if (end.carry && end.low > 0)
		return AW_E_RDMAP_TO_WRAP;
	return range[0] >= mr->iova && is_at_most(end, limit) ? AW_OK : AW_E_RDMAP_BOUNDS;
}

void prop_run(struct bytes *b)
{
	static const uint8_t pds[2], qps[2];
	uint8_t bits = bytes_u8(b);
	const void *const owner[2] = { &pds[0], &qps[0] };
	const void *const bound[] = { NULL, &qps[0], &qps[1], NULL };
	struct aw_mr mr = {
		.access = bytes_u8(b),
		.iova = draw_edge(b),
		.pd = &pds[bits & 1],
		.qp = bound[bits >> 1 & 3],
		.window = (bits & 6) == 6,
	};
	uint32_t access = bits & 8 ? 0 : 1u << (bits >> 4 & 3);
	const uint64_t range[2] = { bits & 0x80 ? mr.iova + bytes_u8(b) : draw_edge(b),
				    bits & 0x40 ? bytes_u8(b) : draw_edge(b) };

	mr.len = draw_edge(b);
	/* No MR goes past the end of the address space. */
	if (mr.len > UINT64_MAX - mr.iova)
		mr.len = UINT64_MAX - mr.iova;
	PROP(aw_mr_check(&mr, owner[0], owner[1], access, range[0], range[1]) ==
	     expected(&mr, owner, access, range));
	PROP(aw_mr_check(NULL, owner[0], owner[1], access, range[0], range[1]) == AW_E_RDMAP_STAG);
}
