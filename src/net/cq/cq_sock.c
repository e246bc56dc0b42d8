// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The datagram sockets that the pollers of a CQ serve: one for up to 256 UD QPs, so there are few.
#include "net/cq/cq.h"

#include "net/base/fork.h"
#include "ring/lock.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#define SERVED_MAX 4 /* per poll; where there are more, each has its turn */

struct aw_cq_sock {
	struct aw_udsock *sock;
	const struct aw_cq_sock_ops *ops;
	uint32_t joined;
};

static struct aw_cq_sock *find(const struct aw_cq *cq, const struct aw_udsock *sock)
	AW_REQUIRES(cq->qps_lock)
{
	for (uint32_t i = 0; i < cq->socks_count; i++)
		if (cq->socks[i].sock == sock)
			return &cq->socks[i];
	return NULL;
}

int aw_cq_join_sock(struct aw_cq *cq, struct aw_udsock *sock, const struct aw_cq_sock_ops *ops)
{
	struct aw_cq_sock *known;
	int err = 0;

	aw_lock(&cq->qps_lock);
	known = find(cq, sock);
	if (!known && cq->socks_count == cq->socks_room) {
		uint32_t room = cq->socks_room ? cq->socks_room * 2 : 4;
		struct aw_cq_sock *socks = realloc(cq->socks, room * sizeof(*socks));

		if (socks) {
			cq->socks = socks;
			cq->socks_room = room;
		} else {
			err = ENOMEM;
		}
	}
	if (known)
		known->joined++;
	else if (!err)
		cq->socks[cq->socks_count++] = (struct aw_cq_sock){ sock, ops, 1 };
	aw_unlock(&cq->qps_lock);
	return err;
}

/* A thread of the parent may have held qps_lock over the fork: nobody releases it in the child. */
static bool is_inherited(const struct aw_cq *cq)
{
	return cq->generation != aw_fork_generation();
}

void aw_cq_leave_sock(struct aw_cq *cq, struct aw_udsock *sock)
{
	struct aw_cq_sock *known;

	if (is_inherited(cq))
		return;
	aw_lock(&cq->qps_lock);
	known = find(cq, sock);
	assert(known);
	if (--known->joined == 0)
		*known = cq->socks[--cq->socks_count];
	aw_unlock(&cq->qps_lock);
}

void aw_cq_serve_socks(struct aw_cq *cq)
{
	uint32_t count = cq->socks_count < SERVED_MAX ? cq->socks_count : SERVED_MAX;

	if (is_inherited(cq))
		return;
	for (uint32_t i = 0; i < count; i++) {
		cq->socks_next = (cq->socks_next + 1) % cq->socks_count;
		cq->socks[cq->socks_next].ops->serve(cq->socks[cq->socks_next].sock);
	}
}

void aw_cq_await_socks(struct aw_cq *cq)
{
	if (is_inherited(cq))
		return;
	aw_lock(&cq->qps_lock);
	for (uint32_t i = 0; i < cq->socks_count; i++)
		cq->socks[i].ops->await(cq->socks[i].sock);
	aw_unlock(&cq->qps_lock);
}
