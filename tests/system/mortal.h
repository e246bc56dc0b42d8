// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What the two ends of mortal.c share: their options, one PD, one CQ, and the sizes agreed.
#ifndef SYSTEM_MORTAL_H
#define SYSTEM_MORTAL_H

#include "link.h"

#include <stdbool.h>
#include <stdint.h>

#define SLOT_OCTETS 65536
#define MESSAGE_MAX 16384

/* What a client learns with the Reply. */
struct offer {
	uint64_t addr;
	uint32_t rkey;
} __attribute__((packed));

struct mortal {
	unsigned int die_after_us; /* 0: never */
	unsigned int fds_max; /* serve: RLIMIT_NOFILE; 0: as it is */
	unsigned int as_headroom_kib; /* serve: RLIMIT_AS above what is used; 0: as it is */
	unsigned int rounds_max; /* load: then done; 0: never */
	unsigned int seed;
	struct rdma_event_channel *channel;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_comp_channel *comp_channel;
};

extern struct mortal mortal;

/* From now on it may end at any moment, as the options say. */
void mortal_start_dying(void);

/* Makes pd, comp_channel and cq, armed. */
void mortal_create_cq(struct ibv_context *verbs);
struct ibv_qp_init_attr mortal_qp_attr(void);

/* How much is in a directory: of /proc/self/fd, of /proc/self/task. */
int mortal_entries(const char *path);

/* For ever; and until the rounds are done. Port in host byte order. */
void mortal_serve(const char *address, uint16_t port) __attribute__((noreturn));
void mortal_load(const char *address, uint16_t port);

#endif
