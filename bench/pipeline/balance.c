// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Demand-driven load: each of two workers gets its next block when it is done with one. In the midst one becomes slower. The
// time until it gets visibly less than the other is as short as the blocks are small.
#include "pipeline/pipeline.h"

#include "worker/clock.h"
#include "worker/fail.h"

#include <pthread.h>
#include <stdlib.h>

#define OCTETS_PER_SECOND 40e6 /* so that a run takes about the seconds that are wanted */
#define AHEAD 2u /* blocks with a worker */
#define SLOWER 8
#define SLOW_WORKER 1u
#define NOTICED 4u /* so many blocks less since then */

struct work {
	pthread_mutex_t lock;
	uint64_t blocks, taken;
	size_t block;
	uint64_t since[LINKS]; /* taken by each since one is slower */
	uint64_t slow_ns, noticed_ns; /* 0: not yet */
};

struct feeder {
	struct work *work;
	struct link *link;
	unsigned int number;
};

/* The next block for this worker: false when there is none. */
static bool take(struct work *work, unsigned int worker, struct header *header)
{
	bool some;

	pthread_mutex_lock(&work->lock);
	some = work->taken < work->blocks;
	if (some) {
		bool late = work->taken >= work->blocks / 2;

		*header = (struct header){ KIND_WORK, (uint32_t)work->block, work->taken++, 1 };
		if (late && worker == SLOW_WORKER) {
			header->arg = SLOWER;
			if (!work->slow_ns)
				work->slow_ns = clock_ns();
		}
		if (work->slow_ns)
			work->since[worker]++;
		if (work->slow_ns && !work->noticed_ns &&
		    work->since[!SLOW_WORKER] >= work->since[SLOW_WORKER] + NOTICED)
			work->noticed_ns = clock_ns();
	}
	pthread_mutex_unlock(&work->lock);
	return some;
}

static void fill(uint64_t *words, const struct header *header)
{
	for (size_t i = 0; i < header->len / sizeof(*words); i++)
		words[i] = picture_word(header->id + i);
}

static void *feed(void *arg)
{
	struct feeder *feeder = arg;
	struct work *work = feeder->work;
	uint64_t sums[AHEAD + 1];
	uint64_t sent = 0, done = 0;

	for (;;) {
		struct header header;
		const void *payload;

		while (sent - done < AHEAD && take(work, feeder->number, &header)) {
			uint64_t *words = link_buffer(feeder->link);

			fill(words, &header);
			sums[sent++ % (AHEAD + 1)] = block_sum(words, header.len);
			link_send(feeder->link, &header);
		}
		if (sent == done)
			break;
		if (!link_recv(feeder->link, &header, &payload))
			fail("a worker is gone");
		if (header.arg != sums[done++ % (AHEAD + 1)])
			fail("WRONG OUTPUT: a worker's sum is not the block's");
	}
	link_buffer(feeder->link);
	link_send(feeder->link, &(struct header){ .kind = KIND_END });
	return NULL;
}

void balance(struct link **links, double seconds, size_t block, struct json *json)
{
	struct work work = { .lock = PTHREAD_MUTEX_INITIALIZER, .block = block };
	struct feeder feeders[LINKS];
	uint64_t began;
	pthread_t thread;

	work.blocks = (uint64_t)(seconds * OCTETS_PER_SECOND / (double)block);
	if (work.blocks < 32)
		work.blocks = 32;
	for (unsigned int i = 0; i < LINKS; i++)
		feeders[i] = (struct feeder){ &work, links[i], i };
	link_buffer(links[0]);
	link_send(links[0], &(struct header){ .kind = KIND_HELLO, .arg = TASK_WORK });
	began = clock_ns();
	if (pthread_create(&thread, NULL, feed, &feeders[1]) != 0)
		fail("no thread");
	feed(&feeders[0]);
	pthread_join(thread, NULL);
	json_real(json, "work_seconds", (double)(clock_ns() - began) / NS_PER_SECOND);
	if (work.noticed_ns)
		json_real(json, "usec_reaction",
			  (double)(work.noticed_ns - work.slow_ns) / NS_PER_USEC);
	json_count(json, "octets", work.blocks * block);
	json_count(json, "operations", work.blocks);
}
