// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The queues are first-in first-out, hold exactly their capacity, and keep every field, also
// where their indices wrap.
#include "prop/prop.h"

#include "core/queue.h"

#include <string.h>

enum {
	STEPS = 200,
	CAPACITY_MAX = 9
};

static struct aw_sge sge_of(uint64_t wr_id, uint32_t i)
{
	return (struct aw_sge){ wr_id * 64 + i, (uint32_t)(wr_id + i) & 0xffff, i + 7 };
}

static bool post_recv(struct aw_rq *rq, uint64_t wr_id, uint32_t count)
{
	struct aw_sge sge[AW_SGE_MAX];

	for (uint32_t i = 0; i < count; i++)
		sge[i] = sge_of(wr_id, i);
	return aw_rq_post(rq, wr_id, sge, count);
}

static void check_recv(const struct aw_rwqe *recv, uint64_t wr_id, uint32_t count)
{
	uint32_t sum = 0;

	PROP(recv->wr_id == wr_id && recv->sge_count == count);
	for (uint32_t i = 0; i < count; i++) {
		struct aw_sge want = sge_of(wr_id, i);

		PROP(memcmp(&recv->sge[i], &want, sizeof(want)) == 0);
		sum += want.len;
	}
	PROP(recv->len == sum);
}

static void run_rq(struct bytes *b)
{
	uint32_t capacity = (uint32_t)bytes_range(b, 0, CAPACITY_MAX);
	uint32_t sge_max = (uint32_t)bytes_range(b, 0, AW_SGE_MAX);
	void *mem = malloc(aw_rq_mem_size(capacity, sge_max));
	uint32_t start = bytes_bool(b) ? 0 : 0u - 20 * capacity;
	uint64_t posted = 0, taken = 0;
	struct aw_rwqe recv;
	struct aw_rq rq;

	aw_rq_init(&rq, mem, capacity, sge_max);
	rq.head = rq.tail = start;
	for (int step = 0; step < STEPS; step++) {
		PROP(aw_rq_count(&rq) == posted - taken);
		if (bytes_bool(b)) {
			bool fits = posted - taken < capacity;

			PROP(post_recv(&rq, posted, (uint32_t)(posted % (sge_max + 1))) == fits);
			posted += fits;
			continue;
		}
		PROP(aw_rq_take(&rq, &recv) == (taken < posted));
		if (taken == posted)
			continue;
		check_recv(&recv, taken, (uint32_t)(taken % (sge_max + 1)));
		taken++;
	}
	free(mem);
}

static void fill(struct aw_swqe *wqe, uint64_t wr_id, uint32_t sge_max, uint32_t inline_max)
{
	struct aw_sge *sge = wqe->sge;
	uint8_t *data = wqe->data;

	wqe->wr_id = wr_id;
	if (wr_id % 2)
		memset(data, (int)wr_id, inline_max);
	for (uint32_t i = 0; wr_id % 2 == 0 && i < sge_max; i++)
		sge[i] = sge_of(wr_id, i);
}

static void check(const struct aw_swqe *wqe, uint64_t wr_id, uint32_t sge_max, uint32_t inline_max)
{
	const struct aw_sge *sge = wqe->sge;
	const uint8_t *data = wqe->data;

	PROP(wqe->wr_id == wr_id);
	for (uint32_t i = 0; wr_id % 2 && i < inline_max; i++)
		PROP(data[i] == (uint8_t)wr_id);
	for (uint32_t i = 0; wr_id % 2 == 0 && i < sge_max; i++) {
		struct aw_sge want = sge_of(wr_id, i);

		PROP(memcmp(&sge[i], &want, sizeof(want)) == 0);
	}
}

static void run_sq(struct bytes *b)
{
	uint32_t capacity = (uint32_t)bytes_range(b, 1, CAPACITY_MAX);
	uint32_t sge_max = (uint32_t)bytes_range(b, 0, AW_SGE_MAX);
	uint32_t inline_max = (uint32_t)bytes_range(b, 0, AW_INLINE_MAX);
	void *mem = malloc(aw_sq_mem_size(capacity, sge_max, inline_max));
	uint64_t posted = 0, done = 0;
	struct aw_sq sq;

	aw_sq_init(&sq, mem, capacity, aw_sq_stride(sge_max, inline_max));
	for (int step = 0; step < STEPS; step++) {
		struct aw_swqe *wqe = aw_sq_reserve(&sq);

		PROP(!wqe == (posted - done == capacity) && aw_sq_count(&sq) == posted - done);
		if (wqe && bytes_bool(b)) {
			fill(wqe, posted++, sge_max, inline_max);
			aw_sq_commit(&sq);
		} else if (done < posted) {
			check(aw_sq_at(&sq, sq.head), done++, sge_max, inline_max);
			sq.head++;
			sq.next = sq.head;
		}
	}
	free(mem);
}

void prop_run(struct bytes *b)
{
	if (bytes_bool(b))
		run_rq(b);
	else
		run_sq(b);
}
