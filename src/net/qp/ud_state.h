// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The state of a UD QP, which its row of the statistics shows (net/qp/stat_qp.h). net/ud/ud.h has
// all that is done with it.
#ifndef NET_UD_STATE_H
#define NET_UD_STATE_H

#include <stdbool.h>
#include <stdint.h>

/* As in ibv_qp_state, which the program sees. */
enum aw_ud_state {
	AW_UD_RESET,
	AW_UD_INIT, /* receives may be posted */
	AW_UD_RTR, /* datagrams are received */
	AW_UD_RTS, /* datagrams are received and sent */
	AW_UD_SQD, /* posts wait */
	AW_UD_SQE, /* a send failed: later ones are flushed, receives go on */
	AW_UD_ERR,
};

struct aw_udsock;
struct aw_ud_group;

#define AW_UD_GROUPS 1024 /* multicast groups of a process */
#define AW_UD_GROUPS_OF_QP 64 /* groups that a QP may be attached to */

struct aw_ud {
	struct aw_udsock *sock; /* the socket of its number; fixed after open */
	/* guarded by the QP lock */
	enum aw_ud_state state;
	uint32_t qkey;
	bool waits; /* waits for room in the socket */
	bool told_long, told_short, told_lost, told_key; /* logged already */
	bool looked; /* for the peer of a datagram by LID */
	/* guarded by ud_group.c's lock */
	uint32_t group_count;
	struct aw_ud_group *groups[AW_UD_GROUPS_OF_QP];
};

#endif
