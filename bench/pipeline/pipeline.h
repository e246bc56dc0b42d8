// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The filters, and what the two processes agree on.
#ifndef PIPELINE_PIPELINE_H
#define PIPELINE_PIPELINE_H

#include "pipeline/link.h"
#include "worker/json.h"

#include <stddef.h>
#include <stdint.h>

#define LINKS 2u

enum task {
	TASK_TRANSFORM, /* what comes by the first link goes, transformed, by the second */
	TASK_WORK /* a worker at each link */
};

/* One word of a picture, and what the transform filter makes of it. */
static inline uint64_t picture_word(uint64_t at)
{
	return at * 0x9e3779b97f4a7c15u;
}

static inline uint64_t transformed(uint64_t word)
{
	return ~word ^ (word >> 7);
}

uint64_t block_sum(const uint64_t *words, size_t len);

/* The server's end: until KIND_END. */
void transform(struct link **links);
void work(struct link **links);

/* The client's end: the numbers go into json. */
void view_updates(struct link **links, double seconds, size_t block, struct json *json);
void view_bound(struct link **links, double seconds, uint64_t bound_us, struct json *json);
void balance(struct link **links, double seconds, size_t block, struct json *json);

#endif
