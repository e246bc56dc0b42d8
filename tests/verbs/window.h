// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Memory windows of a pair: b opens them over its memory, a uses them.
#ifndef TESTS_VERBS_WINDOW_H
#define TESTS_VERBS_WINDOW_H

#include "pair.h"

enum {
	AT = 4096, /* where the windows are in b's memory */
	LEN = 1000, /* and how long */
	RW = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
};

/* The side's memory from AT on, to be read and written. */
struct ibv_mw_bind_info window_info(const struct side *s, size_t length);

/* Posts a signalled bind; what the post answered. */
int window_bind_type1(struct side *s, struct ibv_mw *mw, struct ibv_mw_bind_info info);
int window_bind_type2(struct side *s, struct ibv_mw *mw, uint32_t rkey,
		      struct ibv_mw_bind_info info);
/* Requires that the next completion is a bind's, and good. */
void window_expect_bound(struct side *s);

/* b's window of this type, bound to LEN octets at AT. */
struct ibv_mw *window_make(struct pair *p, enum ibv_mw_type type);

/* A signalled WR over the first octets of the side's memory; rkey is also what is invalidated. */
void side_post(struct side *s, enum ibv_wr_opcode opcode, uint32_t rkey, uint64_t to,
	       uint32_t length);

/* A Read of a's from b's memory tells, since its completion does, how b finds the rkey. */
enum ibv_wc_status window_read(struct pair *p, uint32_t rkey, size_t offset, uint32_t length);

/* a writes LEN octets through b's window and reads them back; b's memory is zero before and after. */
void window_expect_works(struct pair *p, uint32_t rkey);

/* A new pair and window for each of the two types. */
void window_each_type(void **state, void (*test)(struct pair *p, struct ibv_mw *mw));

#endif
