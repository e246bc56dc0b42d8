// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The filters in the middle of a pipeline: one that transforms each block and hands it on, and workers that take their time.
#include "pipeline/pipeline.h"

#include "worker/clock.h"
#include "worker/fail.h"

#include <pthread.h>
#include <sys/prctl.h>
#include <time.h>

/* What a worker takes for a block: a node of its own would compute, and not take our processor. */
#define WORK_NS_PER_OCTET 20

uint64_t block_sum(const uint64_t *words, size_t len)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < len / sizeof(*words); i++)
		sum = sum * 31 + words[i];
	return sum;
}

void transform(struct link **links)
{
	struct header header;
	const void *payload;

	while (link_recv(links[0], &header, &payload)) {
		const uint64_t *from = payload;
		uint64_t *to = link_buffer(links[1]);

		for (size_t i = 0; i < header.len / sizeof(*to); i++)
			to[i] = transformed(from[i]);
		link_send(links[1], &header);
		if (header.kind == KIND_END)
			return;
	}
	fail("the reader is gone");
}

static void rest(uint64_t ns)
{
	const struct timespec time = { .tv_sec = (time_t)(ns / NS_PER_SECOND),
				       .tv_nsec = (long)(ns % NS_PER_SECOND) };

	nanosleep(&time, NULL);
}

static void *work_at(void *arg)
{
	struct link *link = arg;
	struct header header;
	const void *payload;

	prctl(PR_SET_TIMERSLACK, 1L);
	while (link_recv(link, &header, &payload) && header.kind != KIND_END) {
		struct header done = { .kind = KIND_DONE, .id = header.id };

		done.arg = block_sum(payload, header.len);
		rest(header.len * WORK_NS_PER_OCTET * header.arg);
		link_send(link, &done);
	}
	return NULL;
}

void work(struct link **links)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, work_at, links[1]) != 0)
		fail("no thread");
	work_at(links[0]);
	pthread_join(thread, NULL);
}
