// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A microscope's picture: the read filter sends full updates, block after block, and a partial update, one block, whenever the
// user pans; the view filter gets them transformed. A partial update waits behind the blocks that are under way: large blocks
// carry more updates, small ones let it pass sooner.
#include "pipeline/pipeline.h"

#include "worker/clock.h"
#include "worker/fail.h"
#include "worker/stats.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define PICTURE (4u << 20)
#define UNDER_WAY_MAX 8 /* blocks of full updates */
#define PAN_EVERY_NS 2000000u /* from one partial update's arrival to the wish for the next */
#define BOUND_PART 0.9
#define NO_PAN UINT64_MAX

struct view {
	struct link *from;
	sem_t room; /* for blocks of full updates */
	_Atomic uint64_t pan_ns; /* when the user wishes the next partial update */
	struct stats *partials;
	uint64_t full_blocks;
};

static uint64_t *picture; /* fixed after picture_make */

static void picture_make(void)
{
	if (picture)
		return;
	picture = malloc(PICTURE);
	if (!picture)
		fail("out of memory");
	for (size_t i = 0; i < PICTURE / sizeof(*picture); i++)
		picture[i] = picture_word(i);
}

/* Every word is compared. */
static void check_block(const struct header *header, const uint64_t *got)
{
	const uint64_t *sent = picture + header->id * header->len / sizeof(*picture);
	uint64_t wrong = 0;

	for (size_t i = 0; i < header->len / sizeof(*got); i++)
		wrong |= got[i] ^ transformed(sent[i]);
	if (wrong)
		fail("WRONG OUTPUT: a block is not the picture's, transformed");
}

static void *view_run(void *arg)
{
	struct view *view = arg;
	struct header header;
	const void *payload;

	while (link_recv(view->from, &header, &payload) && header.kind != KIND_END) {
		check_block(&header, payload);
		if (header.kind == KIND_PARTIAL) {
			uint64_t now = clock_ns();

			stats_add(view->partials, now - header.arg);
			atomic_store(&view->pan_ns, now + PAN_EVERY_NS);
		} else {
			view->full_blocks++;
			sem_post(&view->room);
		}
	}
	return NULL;
}

static void read_block(struct link *link, const struct header *header)
{
	memcpy(link_buffer(link), (char *)picture + header->id * header->len, header->len);
	link_send(link, header);
}

static void read_run(struct link *link, struct view *view, size_t block, uint64_t end_ns)
{
	const uint64_t blocks = PICTURE / block;
	uint64_t now;

	for (uint64_t number = 0; (now = clock_ns()) < end_ns; number++) {
		struct header header = { KIND_FULL, (uint32_t)block, number % blocks, 0 };
		uint64_t pan_ns = atomic_load(&view->pan_ns);

		if (pan_ns <= now) {
			struct header partial = { KIND_PARTIAL, (uint32_t)block,
						  number * 7 % blocks, pan_ns };

			atomic_store(&view->pan_ns, NO_PAN);
			read_block(link, &partial);
		}
		sem_wait(&view->room);
		read_block(link, &header);
	}
	link_buffer(link);
	link_send(link, &(struct header){ .kind = KIND_END });
}

struct seen {
	double updates_per_second;
	uint64_t octets;
};

static struct seen run(struct link **links, struct stats *partials, double seconds, size_t block)
{
	struct view view = { .from = links[1], .partials = partials };
	uint64_t began = clock_ns(), octets;
	pthread_t thread;

	picture_make();
	sem_init(&view.room, 0, UNDER_WAY_MAX);
	atomic_init(&view.pan_ns, began + PAN_EVERY_NS);
	if (pthread_create(&thread, NULL, view_run, &view) != 0)
		fail("no thread");
	read_run(links[0], &view, block, began + (uint64_t)(seconds * NS_PER_SECOND));
	pthread_join(thread, NULL);
	octets = view.full_blocks * block;
	sem_destroy(&view.room);
	return (struct seen){
		(double)octets / PICTURE * NS_PER_SECOND / (double)(clock_ns() - began), octets
	};
}

static void print_partials(struct json *json, const struct stats *partials)
{
	json_open(json, "usec_partial");
	json_real(json, "median", stats_quantile(partials, 0.5) / NS_PER_USEC);
	json_real(json, "p90", stats_quantile(partials, BOUND_PART) / NS_PER_USEC);
	json_real(json, "p99", stats_quantile(partials, 0.99) / NS_PER_USEC);
	json_close(json);
	json_count(json, "partials", partials->count);
}

/* The server's transform filter ends with each run: it is asked again. */
static void hello(struct link **links)
{
	link_buffer(links[0]);
	link_send(links[0], &(struct header){ .kind = KIND_HELLO, .arg = TASK_TRANSFORM });
}

void view_updates(struct link **links, double seconds, size_t block, struct json *json)
{
	struct stats *partials = stats_create();
	struct seen seen;

	hello(links);
	seen = run(links, partials, seconds, block);
	json_real(json, "updates_per_second", seen.updates_per_second);
	json_count(json, "octets", seen.octets);
	print_partials(json, partials);
	stats_destroy(partials);
}

void view_bound(struct link **links, double seconds, uint64_t bound_us, struct json *json)
{
	static const size_t blocks[] = { 4u << 10, 16u << 10, 64u << 10, 256u << 10, 1u << 20 };
	const size_t count = sizeof(blocks) / sizeof(*blocks);
	struct stats *partials = stats_create();
	size_t best_block = 0;
	double best = 0;

	for (size_t i = 0; i < count; i++) {
		struct seen seen;

		stats_clear(partials);
		hello(links);
		seen = run(links, partials, seconds / (double)count, blocks[i]);
		if (stats_quantile(partials, BOUND_PART) <= (double)bound_us * NS_PER_USEC &&
		    partials->count && seen.updates_per_second > best) {
			best = seen.updates_per_second;
			best_block = blocks[i];
		}
	}
	json_real(json, "updates_per_second", best);
	json_count(json, "block", best_block);
	stats_destroy(partials);
}
