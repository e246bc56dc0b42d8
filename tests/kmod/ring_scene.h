// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Two QPs of a program, joined by octets in memory, with all the rings that it maps: what a test scribbles in
// lies where the module reads it.
#ifndef KMOD_TEST_RING_SCENE_H
#define KMOD_TEST_RING_SCENE_H

#include "kmod/qp/qp.h"
#include "kmod/verbs/verbs.h"

#define SCENE_BASE 0x7000000000ull /* of the program's memory */
#define SCENE_PAGES 8
#define SCENE_WIRE (1u << 18)

struct ring_end {
	struct awk_qp *qp;
	struct awk_cq *cq;
	unsigned int overflows; /* events of the CQ */
	u8 *wire; /* what it sent, and the other has not got */
	size_t wire_len;
};

struct ring_scene {
	struct awk_device dev;
	struct net_device netdev;
	struct ib_pd pd;
	struct awk_ucontext uctx;
	struct awk_srq *srq; /* of the second end */
	struct ib_mr *mr;
	u32 stag;
	struct ring_end ends[2];
};

/* A queue of so many, of each kind. The streams run. */
struct ring_scene *ring_scene_create(u32 wr_max, u32 cqe_max);
/* Nothing may be left of it. */
void ring_scene_destroy(struct ring_scene *scene);

/* FPDUs that are due onto the end's wire, at most so many; and all of that to the other end. */
void ring_scene_transmit(struct ring_scene *scene, unsigned int end, unsigned int count);
void ring_scene_deliver(struct ring_scene *scene, unsigned int end);

#endif
