// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The kernel module's regions, which are pages, do what one flat stretch of octets would: place, gather and atomics,
// wherever they lie; and between REG_MR and invalidation, with old keys and new ones.
#include "prop/prop.h"

#include "core/atomic.h"

#include "kmod/mr/mr.h"

#include <rdma/ib_umem.h>

#define PAGES 12u
#define COPY_MAX (PAGES * PAGE_SIZE + 64)

/* Pages of a program's or a ULP's; next to each lies one that is nobody's. */
static _Alignas(4096) u8 frames[2 * PAGES + 1][PAGE_SIZE];
static u8 frame_of[PAGES];
static u64 program_base;

static struct awk_device dev;
static struct ib_pd pds[2] = { { &dev.base }, { &dev.base } };

/* What a region is said to be: its octets are those of the pages, in order. */
struct model {
	u64 iova, len;
	u32 stag, access;
	u8 *octets[PAGES];
	u32 shift; /* of a page */
	u64 first; /* octets of the first page that are in front of it */
	bool valid;
};

static u8 *model_at(const struct model *m, u64 offset)
{
	u64 at = m->first + offset;

	return m->octets[at >> m->shift] + (at & ((1u << m->shift) - 1));
}

static struct page *page_of(u64 addr)
{
	u64 page = (addr - program_base) >> PAGE_SHIFT;

	return page < PAGES ? (struct page *)frames[frame_of[page]] : NULL;
}

/* The pages lie anywhere, in any order. */
static void draw_frames(struct bytes *b)
{
	for (unsigned int i = 0; i < PAGES; i++)
		frame_of[i] = 2 * i + 1;
	for (unsigned int i = PAGES - 1; i > 0; i--) {
		unsigned int other = bytes_range(b, 0, i);
		u8 frame = frame_of[i];

		frame_of[i] = frame_of[other];
		frame_of[other] = frame;
	}
	for (unsigned int i = 0; i < 2 * PAGES + 1; i++)
		for (unsigned int at = 0; at < PAGE_SIZE; at++)
			frames[i][at] = (u8)(i * 37 + at * 11 + (at >> 8));
}

/* Edges are as frequent as all the rest. */
static u64 draw_near(struct bytes *b, u64 max)
{
	u8 kind = bytes_u8(b);
	u64 edge = bytes_range(b, 0, PAGES) << PAGE_SHIFT;
	u64 at;

	if (kind < 40)
		return bytes_range(b, 0, max);
	at = kind < 80 ? max - bytes_u8(b) % 10 : edge + bytes_u8(b) % 10 - 5;
	return at <= max ? at : max;
}

static bool is_flat(const struct aw_mr *mr, const struct model *m)
{
	return mr->iova == m->iova && mr->len == m->len && mr->stag == m->stag &&
	       mr->access == m->access;
}

static void check_place(const struct aw_mr *mr, const struct model *m, u64 at, size_t len)
{
	static u8 src[COPY_MAX];

	for (size_t i = 0; i < len; i++)
		src[i] = (u8)(at + i * 5 + 1);
	PROP(awk_mr_place(mr, aw_mr_at(mr, m->iova + at), src, len));
	for (size_t i = 0; i < len; i++)
		PROP(*model_at(m, at + i) == src[i]);
}

static void check_gather(const struct aw_mr *mr, const struct model *m, u64 at, size_t len)
{
	u8 *dst = malloc(len + 1);

	dst[len] = 0xa5;
	PROP(awk_mr_gather(mr, dst, aw_mr_at(mr, m->iova + at), len));
	for (size_t i = 0; i < len; i++)
		PROP(dst[i] == *model_at(m, at + i));
	PROP(dst[len] == 0xa5);
	free(dst);
}

static void check_atomic(struct bytes *b, const struct aw_mr *mr, const struct model *m, u64 at)
{
	const struct rdmap_atomic_req req = {
		.op = bytes_bool(b) ? RDMAP_FETCH_ADD : RDMAP_CMP_SWAP,
		.add_swap_data = bytes_u64(b),
		.add_swap_mask = UINT64_MAX,
		.compare_data = bytes_u64(b),
		.compare_mask = bytes_bool(b) ? 0 : UINT64_MAX,
	};
	u64 before, expected, after;
	bool whole = ((uintptr_t)model_at(m, at) & 7) == 0;

	for (size_t i = 0; i < 8; i++)
		((u8 *)&expected)[i] = *model_at(m, at + i);
	PROP(awk_mr_atomic(mr, aw_mr_at(mr, m->iova + at), &req, &before) == whole);
	if (!whole)
		return;
	for (size_t i = 0; i < 8; i++)
		((u8 *)&after)[i] = *model_at(m, at + i);
	PROP(before == expected && after == aw_atomic_next(&req, expected));
}

/* Pages that no region has, and those in front of one and behind it, keep what they had. */
static u64 strangers_sum(const struct model *m, u64 pages)
{
	u64 sum = 0;

	for (unsigned int i = 0; i < 2 * PAGES + 1; i += 2)
		for (unsigned int at = 0; at < PAGE_SIZE; at++)
			sum = sum * 31 + frames[i][at];
	for (u64 at = 0; at < m->first; at++)
		sum = sum * 31 + m->octets[0][at];
	for (u64 at = m->first + m->len; at < pages << m->shift; at++)
		sum = sum * 31 + *model_at(m, at - m->first);
	return sum;
}

static u64 model_pages(const struct model *m)
{
	return (m->first + m->len + (1ull << m->shift) - 1) >> m->shift;
}

/* One access as the core does it: found, checked, done, given back. Beyond the region nothing is reached. */
static void access_once(struct bytes *b, const struct model *m)
{
	u64 at = draw_near(b, m->len + 9), len = draw_near(b, COPY_MAX);
	const struct aw_mr *mr = awk_mr_get(&dev, m->stag);
	u8 what = bytes_u8(b) % 3;
	u64 strangers;

	PROP(!mr == !m->valid);
	if (!mr)
		return;
	PROP(is_flat(mr, m));
	len = what == 2 ? 8 : len;
	strangers = strangers_sum(m, model_pages(m));
	if (aw_mr_check(mr, &pds[0], NULL, 0, m->iova + at, len) == AW_OK) {
		PROP(at <= m->len && len <= m->len - at);
		if (what == 0)
			check_place(mr, m, at, len);
		else if (what == 1)
			check_gather(mr, m, at, len);
		else
			check_atomic(b, mr, m, at);
	} else {
		PROP(at > m->len || len > m->len - at);
	}
	PROP(strangers == strangers_sum(m, model_pages(m)));
	awk_mr_put(mr);
}

/* An offset that the core never gives, since it checks: it ends at the last page all the same. */
static void access_beyond(struct bytes *b, const struct model *m)
{
	static u8 octets[COPY_MAX];
	u64 end = (model_pages(m) << m->shift) - m->first;
	u64 at = draw_near(b, end), len = end - at + 1 + bytes_u8(b);
	const struct aw_mr *mr = awk_mr_get(&dev, m->stag);

	if (!mr)
		return;
	if (len <= sizeof(octets)) {
		PROP(!awk_mr_gather(mr, octets, aw_mr_at(mr, m->iova + at), len));
		PROP(!awk_mr_place(mr, aw_mr_at(mr, m->iova + end), octets, 1));
	}
	PROP(!awk_mr_gather(mr, octets, (u8 *)(uintptr_t)(UINT64_MAX - bytes_u8(b)), 1));
	awk_mr_put(mr);
}

static void user_region(struct bytes *b)
{
	struct ib_udata udata = { .outlen = 64 };
	int access = bytes_u8(b) & 15;
	struct model m = { .shift = PAGE_SHIFT, .access = access, .valid = true };
	u64 start;
	struct ib_mr *base;

	/* At the top of the address space the last page is not a program's. */
	program_base = bytes_bool(b) ? 0x10000 : ~0ull << 20;
	m.first = draw_near(b, PAGE_SIZE - 1);
	m.len = 1 + draw_near(b, PAGES * PAGE_SIZE - m.first - 1);
	start = program_base + m.first;
	m.iova = bytes_bool(b)	 ? start
		 : bytes_bool(b) ? UINT64_MAX - m.len + 1 - bytes_u8(b) % 3
				 : bytes_u64(b) >> 1;
	for (unsigned int i = 0; i < PAGES; i++)
		m.octets[i] = frames[frame_of[i]];
	PROP(IS_ERR(awk_mr_reg_user(&pds[0], start, 0, m.iova, access, &udata)));
	PROP(IS_ERR(awk_mr_reg_user(&pds[0], start, PAGES * PAGE_SIZE - m.first + 1, m.iova, access,
				    &udata)));
	base = awk_mr_reg_user(&pds[0], start, m.len, m.iova, access, &udata);
	PROP(!IS_ERR(base));
	m.stag = base->rkey;
	for (int i = 0; i < 12; i++)
		access_once(b, &m);
	access_beyond(b, &m);
	PROP(awk_mr_invalidate(&dev, &pds[0], m.stag, false) == AW_E_RDMAP_CANNOT_INVALIDATE);
	PROP(awk_mr_invalidate(&dev, &pds[1], m.stag, true) == AW_E_RDMAP_NOT_ASSOCIATED);
	PROP(awk_mr_register(&dev, &pds[0], m.stag, access) == AW_WC_MW_BIND_ERR);
	PROP(!awk_mr_get(&dev, m.stag ^ 1));
	awk_mr_dereg(base, NULL);
	PROP(!awk_mr_get(&dev, m.stag));
}

struct pieces {
	struct scatterlist sg[PAGES];
	unsigned int count;
	u32 shift; /* of a page; several small ones may lie in a frame */
	u64 first, last; /* octets in front of the first page's, and of the last page */
};

static void draw_pieces(struct bytes *b, struct pieces *p)
{
	u32 size;

	p->shift = bytes_bool(b) ? 12 : 9 + bytes_u8(b) % 3;
	p->count = 1 + bytes_u8(b) % PAGES;
	size = 1u << p->shift;
	p->first = draw_near(b, size - 1);
	p->last = 1 + draw_near(b, size - 1);
	if (p->count == 1 && p->last <= p->first)
		p->last = size;
	for (unsigned int i = 0; i < p->count; i++) {
		u64 from = i == 0 ? p->first : 0;

		p->sg[i].addr = (uintptr_t)frames[frame_of[i]] + from;
		p->sg[i].len = (i == p->count - 1 ? p->last : size) - from;
	}
}

/* Maps pieces that lie in the frames; what came of it is the model's from the next REG_MR on, and until then nothing changes. */
static void fast_map(struct bytes *b, struct ib_mr *base, struct model *next)
{
	struct pieces p;
	unsigned int offset;
	u64 first;
	int mapped;

	draw_pieces(b, &p);
	offset = bytes_u8(b) % 4 == 0 ? bytes_u8(b) % p.sg[0].len : 0;
	base->page_size = 1u << p.shift;
	first = p.first + offset;
	mapped = awk_mr_map_sg(base, p.sg, p.count, &offset);
	for (unsigned int i = 0; i < p.count; i++)
		next->octets[i] = frames[frame_of[i]];
	next->first = first;
	next->shift = p.shift;
	next->iova = base->iova;
	next->len = base->length;
	PROP(mapped == (int)p.count);
	PROP(base->length == ((p.count - 1ull) << p.shift) + p.last - first);
}

static void fast_register(struct bytes *b, struct model *now, const struct model *mapped)
{
	u32 access = bytes_u8(b) & 15, key = (mapped->stag & ~0xffu) | bytes_u8(b);
	enum aw_wc_status status = awk_mr_register(&dev, &pds[bytes_u8(b) % 8 == 0], key, access);

	if (status != AW_WC_SUCCESS)
		return;
	PROP(!now->valid);
	*now = *mapped;
	now->stag = key;
	now->access = access;
	now->valid = true;
}

static void fast_invalidate(struct bytes *b, struct model *now)
{
	bool wrong_key = bytes_u8(b) % 4 == 0, other = bytes_u8(b) % 4 == 0;
	bool by_peer = bytes_bool(b);
	enum aw_error err =
		awk_mr_invalidate(&dev, &pds[other], now->stag ^ (wrong_key ? 0x81 : 0), by_peer);

	if (!now->valid && !by_peer && !other)
		PROP(err == AW_OK);
	else if (!now->valid || wrong_key)
		PROP(err == AW_E_RDMAP_STAG);
	else if (other)
		PROP(err == AW_E_RDMAP_NOT_ASSOCIATED);
	else
		PROP(err == AW_OK);
	now->valid &= err != AW_OK;
}

static void fast_region(struct bytes *b)
{
	struct ib_mr *base = awk_mr_alloc(&pds[0], IB_MR_TYPE_MEM_REG, PAGES);
	struct model now = { .shift = PAGE_SHIFT }, mapped;

	PROP(IS_ERR(awk_mr_alloc(&pds[0], IB_MR_TYPE_MEM_REG, 0)));
	PROP(IS_ERR(awk_mr_alloc(&pds[0], IB_MR_TYPE_MEM_REG, AWK_FAST_PAGES_MAX + 1)));
	PROP(!IS_ERR(base));
	mapped = now;
	mapped.stag = now.stag = base->rkey;
	PROP(!awk_mr_get(&dev, now.stag));
	for (int i = 0; i < 16; i++) {
		u8 what = bytes_u8(b) % 8;

		if (what == 0) {
			fast_map(b, base, &mapped);
		} else if (what == 1 && base->length > 0) {
			fast_register(b, &now, &mapped);
		} else if (what == 2) {
			fast_invalidate(b, &now);
		} else if (now.valid) {
			access_once(b, &now);
			access_beyond(b, &now);
		}
	}
	awk_mr_dereg(base, NULL);
	PROP(!awk_mr_get(&dev, now.stag));
}

void prop_run(struct bytes *b)
{
	kshim_on_bug = prop_failed;
	kshim_page_of = page_of;
	draw_frames(b);
	if (bytes_bool(b))
		user_region(b);
	else
		fast_region(b);
	PROP(kshim_allocated == 0);
}
