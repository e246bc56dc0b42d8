// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Two UD QPs of one process, and what tests of them do with each.
#ifndef TESTS_VERBS_UD_SCENE_H
#define TESTS_VERBS_UD_SCENE_H

#include "fixture.h"

#define UD_QKEY 0x11111111u
#define UD_GRH 40
#define UD_ROOM \
	8192 /* octets of each buffer: the first half is received into, the other sent from */

struct ud_end {
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t *buf;
};

struct ud_scene {
	struct fixture *f; /* its CQ gets receives */
	struct ibv_cq *sends; /* and this one sends: which of the two is first, nobody promises */
	struct ud_end a, b;
	struct ibv_ah *ah; /* this host */
	uint8_t sgid_index; /* of ::ffff:127.0.0.1 */
	uint32_t mtu;
};

/* As cmocka's: both ends in RTS. */
int ud_setup(void **state);
int ud_teardown(void **state);

struct ibv_qp *ud_qp_make(const struct ud_scene *s, struct ibv_srq *srq);
int ud_to_init(struct ibv_qp *qp, uint32_t qkey);
int ud_to_rts(struct ibv_qp *qp);
void ud_walk(struct ibv_qp *qp, uint32_t qkey);
void ud_end_open(struct ud_scene *s, struct ud_end *end);
void ud_end_close(struct ud_end *end);

/* This host by its IPv4 loopback address. */
struct ibv_ah_attr ud_address(const struct ud_scene *s);

/* One receive of len octets, at the start of the buffer. */
void ud_recv(struct ud_end *end, uint64_t wr_id, uint32_t len);

struct ibv_send_wr ud_wr(const struct ud_scene *s, struct ud_end *to);

/* Sends len octets of text (NULL: of the buffer) to `to` by s->ah, and takes the completion. */
void ud_send(struct ud_scene *s, struct ud_end *from, struct ud_end *to, const char *text,
	     uint32_t len);

/* A datagram from the one to the other. */
void ud_check_way(struct ud_scene *s, struct ud_end *from, struct ud_end *to);

/* No receive completed. */
void ud_none(struct ud_scene *s);

#endif
