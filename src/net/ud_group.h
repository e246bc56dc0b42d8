// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Multicast groups of UD QPs. A group's datagrams come by a socket of their own, which all QPs of
// the process share that are attached; each gets what it has a receive for.
#ifndef NET_UD_GROUP_H
#define NET_UD_GROUP_H

#include "net/uqp.h"

/*
 * From now on qp gets what is sent to this group (an IPv6 multicast address, or an IPv4 one as
 * ::ffff:a.b.c.d) on that interface, or, 0, on every one that has an address. 0, also where it is attached
 * already; EINVAL: no multicast address; ENOMEM: AW_UD_GROUPS of the process or
 * AW_UD_GROUPS_OF_QP; else why the host refuses.
 */
int aw_ud_group_join(struct aw_uqp *qp, const uint8_t *addr, uint32_t ifindex);

/* 0, or EINVAL: it is not attached. */
int aw_ud_group_leave(struct aw_uqp *qp, const uint8_t *addr, uint32_t ifindex);
void aw_ud_group_leave_all(struct aw_uqp *qp);

/* Around a fork. */
void aw_ud_group_fork_prepare(void);
void aw_ud_group_fork_done(void);

#endif
