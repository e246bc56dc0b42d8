// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Multicast groups of UD QPs. Each group has a socket of its own, which all attached QPs of the
// process share. Each QP gets the datagrams that it has a receive for.
#ifndef NET_UD_GROUP_H
#define NET_UD_GROUP_H

#include "net/qp/uqp.h"

/*
 * Attaches qp to a group (an IPv6 multicast address, or an IPv4 one as ::ffff:a.b.c.d) on that
 * interface, or, with 0, on every interface that has an address. 0, also when qp is attached
 * already; EINVAL: no multicast address; ENOMEM: AW_UD_GROUPS of the process or AW_UD_GROUPS_OF_QP;
 * else the host's error.
 */
int aw_ud_group_join(struct aw_uqp *qp, const uint8_t *addr, uint32_t ifindex);

/* 0, or EINVAL: qp is not attached. */
int aw_ud_group_leave(struct aw_uqp *qp, const uint8_t *addr, uint32_t ifindex);
void aw_ud_group_leave_all(struct aw_uqp *qp);

/* True when qp is in a group that this process has joined; a parent's groups do not count. */
bool aw_ud_group_has(struct aw_uqp *qp);

/* Around a fork. */
void aw_ud_group_fork_prepare(void);
void aw_ud_group_fork_done(void);

#endif
