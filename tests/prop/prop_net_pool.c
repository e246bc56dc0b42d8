// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Stages of more QPs than there are large places, in any order and where memory is out now and then: what
// waits stays what it is, has the room that it was promised, and large stages are no more than they may be.
#include "prop/prop.h"

#include <stddef.h>
#include <stdlib.h>

static bool memory_is_out;

static void *scarce_malloc(size_t n)
{
	return memory_is_out ? NULL : malloc(n);
}

/* The pool itself, over that. */
#define malloc scarce_malloc
#include "net/mem/pool.c"
#undef malloc

enum {
	QPS = 24,
	STEPS = 80,
	STRIDE = 997, /* between octets that are looked at */
};

static struct aw_stage *waiting[QPS];
static unsigned int others; /* other QPs have so many places for good */
static uint8_t first[QPS]; /* the octets of a rest count from here */

static void check(unsigned int qp)
{
	const struct aw_stage *stage = waiting[qp];

	PROP(stage->len <= stage->size);
	for (size_t i = 0; i < stage->len; i += STRIDE)
		PROP(stage->buf[i] == (uint8_t)(first[qp] + i));
}

static void check_places(void)
{
	unsigned int count = others;

	for (unsigned int qp = 0; qp < QPS; qp++)
		count += waiting[qp] && waiting[qp]->size == AW_STAGE_BYTES;
	for (unsigned int i = 0; i < LANES; i++)
		count += atomic_load(&lanes[i].stage) != NULL;
	PROP(count == large_out && count <= AW_STAGES_LARGE_MAX);
}

/* What a QP may be left with: anything up to all that there is room for. */
static void receive(unsigned int qp, struct bytes *b)
{
	struct aw_stage *stage = waiting[qp];
	size_t edges[] = { 1, AW_STAGE_COPY_MAX, AW_STAGE_COPY_MAX + 1, FPDU_MAX, stage->size };
	size_t len = bytes_bool(b) ? edges[bytes_u8(b) % 5] : bytes_range(b, 1, stage->size);

	PROP(stage->size >= FPDU_MAX);
	stage->len = len < stage->size ? len : stage->size;
	first[qp] = bytes_u8(b);
	for (size_t i = 0; i < stage->len; i += STRIDE)
		stage->buf[i] = (uint8_t)(first[qp] + i);
	waiting[qp] = aw_stage_keep(stage);
	check(qp);
}

static void turn(unsigned int qp, struct bytes *b)
{
	thread_number = 1 + bytes_u8(b) % 3; /* each turn may be another thread's */
	struct aw_stage *stage = waiting[qp] ? aw_stage_resume(waiting[qp]) : aw_stage_get();

	if (!stage) {
		PROP(memory_is_out && !take_from_any_lane());
		return;
	}
	waiting[qp] = stage;
	check(qp);
	if (bytes_u8(b) % 4) {
		receive(qp, b);
		return;
	}
	aw_stage_put(stage);
	waiting[qp] = NULL;
}

static void put_all(void)
{
	for (unsigned int qp = 0; qp < QPS; qp++) {
		if (waiting[qp]) {
			check(qp);
			aw_stage_put(waiting[qp]);
		}
		waiting[qp] = NULL;
	}
}

void prop_run(struct bytes *b)
{
	others = large_out = AW_STAGES_LARGE_MAX - (unsigned int)bytes_range(b, 0, QPS);
	for (int step = 0; step < STEPS && b->left; step++) {
		uint8_t qp = bytes_u8(b);

		memory_is_out = qp % 8 == 7;
		turn(qp % QPS, b);
		check_places();
	}
	put_all();
	aw_pool_flush();
	PROP(large_out == others);
}
